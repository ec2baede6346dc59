// std::conditional, which NVRTC has no header for.
#pragma once

template <bool condition, typename Then, typename Else>
struct Conditional {
    using Type = Then;
};
template <typename Then, typename Else>
struct Conditional<false, Then, Else> {
    using Type = Else;
};

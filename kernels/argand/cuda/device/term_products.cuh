// The products of two operands in terms: those that are kept, in the order of their accumulation.
#pragma once

// Terms of the left and the right operand in each product. Those of a low-order term come first: a
// tensor core truncates what it adds in proportion to the accumulator, which is small then. low x
// low is dropped, because it lies below the operands' roundoff.
template <int Terms>
struct TermProducts {
    static_assert(Terms == 1 || Terms == 2, "a number is one term or two");
    static constexpr int kCount = Terms == 2 ? 3 : 1;  // low x high, high x low, high x high

    static __device__ __forceinline__ constexpr int left(int product) {
        return Terms == 2 && product == 0 ? 1 : 0;
    }
    static __device__ __forceinline__ constexpr int right(int product) {
        return Terms == 2 && product == 1 ? 1 : 0;
    }
    // Whether a low-order term takes part.
    static __device__ __forceinline__ constexpr bool is_low_order(int product) {
        return product + 1 < kCount;
    }
};

"""A kept call is found by the values and the types of its options: after 64, 64.0 is refused."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from argand import beam_power, channelise, dft, gemm, softmax, solve, spectrum

Call = Callable[[Any, Any], Any]
X = np.eye(8, dtype=np.complex64) + 1
CALLS: list[tuple[Call, Any, Any, str]] = [
    (lambda x, n: dft(x, n=n), 8, 8.0, "n must be an integer"),
    (lambda x, axis: dft(x, axis), 1, 1.0, "axis must be an integer"),
    (lambda x, inverse: dft(x, inverse=inverse), True, 1, "inverse must be true or false"),
    (lambda x, check: gemm(x, x, check=check), False, 0, "check must be true or false"),
    (
        lambda x, check: gemm(x, x, precision="7xint8", check=check), True, 1,
        "check must be true or false",
    ),
    (lambda x, bound: gemm(x, x, tolerance=bound), 1, 1 + 0j, "tolerance must be a real number"),
    (lambda x, axis: softmax(x.real, axis), -1, -1.0, "axis must be an integer"),
    (lambda x, scale: softmax(x.real, scale=scale), 2, 2 + 0j, "scale must be a real number"),
    (lambda x, power: softmax(x, power=power), True, 1, "power must be true or false"),
    (lambda x, block: solve(x, x, block=block), 4, 4.0, "block must be an integer"),
    (lambda x, panel: solve(x, x, panel=panel), 4, 4.0, "panel must be an integer"),
    (lambda x, details: solve(x, x, details=details), False, 0, "details must be true or false"),
    (lambda x, bins: beam_power(x, x, integrate=bins), 1, True, "integrate must be an integer"),
    (lambda x, channels: channelise(x, channels, 1), 2, 2.0, "channels must be an integer"),
    (lambda x, taps: channelise(x, 2, taps), 1, True, "taps must be an integer"),
    (
        lambda x, step: channelise(x, 2, 1, oversampling=step), Fraction(1), 1 + 0j,
        "oversampling must be a fraction",
    ),
    (lambda x, length: spectrum(x, length), 4, 4.0, "length must be an integer"),
    (lambda x, flag: spectrum(x, 4, conjugate=flag), True, 1, "conjugate must be true or false"),
]  # fmt: skip
"""A call of an array and an option, a value of it, an equal one that is refused, the message."""
cases = pytest.mark.parametrize(
    ("call", "value", "equal", "message"), CALLS, ids=[message for *_, message in CALLS]
)


def holds(call: Call, x: Any, value: Any, equal: Any, message: str) -> None:
    assert equal == value
    for _ in range(3):
        call(x, value)
    with pytest.raises((TypeError, ValueError), match=message):
        call(x, equal)


@cases
def test_an_equal_value_of_another_type_is_refused(
    call: Call, value: Any, equal: Any, message: str
) -> None:
    holds(call, X, value, equal, message)


@pytest.mark.gpu
@cases
def test_it_is_on_a_gpu(cp: Any, call: Call, value: Any, equal: Any, message: str) -> None:
    holds(call, cp.asarray(X), value, equal, message)


@pytest.mark.gpu
@cases
def test_it_is_for_tensors(cp: Any, call: Call, value: Any, equal: Any, message: str) -> None:
    torch = pytest.importorskip("torch")
    holds(call, torch.asarray(X, device="cuda"), value, equal, message)

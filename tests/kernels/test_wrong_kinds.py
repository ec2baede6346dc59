"""Arguments of a wrong kind are named, with what was given, by every call that takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from argand import apply_gate, dft, gemm, herk, pack, probabilities, softmax

X = np.eye(4, dtype=np.complex64)
TIMES = np.zeros((4, 4), "M8[s]")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gemm(None, X), "a must be an array, got None"),
        (lambda: gemm(X, TIMES), r"b must be numbers, got datetime64\[s\]"),
        (lambda: gemm(X, X, np.array("c")), "c must be numbers, got <U1"),
        (lambda: herk(None), "a must be numbers, got object"),
        (lambda: pack("x", "tf32"), "x must be numbers, got <U1"),
        (lambda: softmax(X.real, axis=(0, 1)), r"axis must be an integer, got \(0, 1\)"),
        (lambda: dft(X, "last"), "axis must be an integer, got 'last'"),
        (lambda: gemm(X, X, alpha="2"), "alpha must be a number, got '2'"),
        (lambda: herk(X, X, beta=None), "beta must be a number, got None"),
        (lambda: gemm(X, X, tolerance="low"), "tolerance must be a real number, got 'low'"),
        (lambda: softmax(X.real, scale=[1]), r"scale must be a real number, got \[1\]"),
        (lambda: dft(X, n=2.5), r"n must be an integer, got 2\.5"),
        (lambda: apply_gate(X[0], X, 3), "targets and controls must be sequences of qubits, got 3"),
        (lambda: probabilities(X[0], 1), "qubits must be a sequence of them, got 1"),
    ],
)
def test_they_are_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()

"""Arrays of other kinds than NumPy's usual ones, and of no elements, which the calls read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import (
    PRECISIONS,
    Gate,
    apply_gate,
    beam_power,
    channelise,
    gemm,
    plan_circuit,
    probabilities,
    run_trajectories,
    softmax,
    solve,
    spectrum,
)

from tests.kernels.empty_cases import check_empty_products, check_empty_rows

X = np.eye(4, dtype=np.complex64)


def test_numbers_in_the_other_byte_order_are_numbers() -> None:
    for x in (X, X.real, X.real.astype(np.float16)):
        swapped = x.astype(x.dtype.newbyteorder())
        power = bool(np.iscomplexobj(x))
        np.testing.assert_array_equal(softmax(swapped, power=power), softmax(x, power=power))
        np.testing.assert_array_equal(gemm(swapped, swapped), gemm(x, x))


def test_a_real_number_may_lie_where_numpy_cannot_read_it() -> None:
    class Tensor:
        dtype = "torch.float32"

        def __float__(self) -> float:
            return 2.0

        def __array__(self, *_: Any, **__: Any) -> Any:
            raise TypeError("can't convert cuda:0 device type tensor to numpy")

    np.testing.assert_array_equal(softmax(X.real, scale=Tensor()), softmax(X.real, scale=2))


def test_objects_of_classes_without_a_module_are_read() -> None:
    """Qiskit's gates are such, and NumPy makes arrays of them."""
    kind = type("Not", (), {"__module__": None, "__array__": lambda *_, **__: np.eye(2)[::-1]})
    state = np.eye(4, dtype=complex)[0]
    assert apply_gate(state, kind(), (1,)).argmax() == 2
    np.testing.assert_array_equal(gemm(kind(), kind()), np.eye(2))
    with pytest.raises(TypeError, match="state must be a NumPy or a CuPy array, got Not"):
        probabilities(kind(), [0])


def test_integers_of_numpy_are_integers() -> None:
    assert beam_power(X, X, integrate=np.array(2)).shape == (4, 2)
    assert channelise(X, 2, 1, conjugate=np.True_).shape == (4, 2, 2)
    gates = [Gate([[0, 1], [1, 0]], (0,))]
    assert len(run_trajectories(np.int64(1), gates, np.int64(3), seed=1)) == 3
    assert run_trajectories(np.uint8(9), gates, 1, seed=1).shape == (1, 512)
    np.testing.assert_array_equal(solve(X, X, block=np.uint8(1)), X)
    with pytest.raises(ValueError, match="channels must be an integer from 2 on"):
        channelise(X[0], np.array(2.5))
    with pytest.raises(ValueError, match="length must be an integer"):
        spectrum(X[0], np.array(2.5))
    for qubits in (0, 60, 10**30):
        with pytest.raises(ValueError, match="qubits must be from 1 to 59"):
            plan_circuit(qubits, [])


@pytest.mark.each_value
@pytest.mark.parametrize("op", ["N", "T", "C"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_gemm(precision: str, op: str) -> None:
    check_empty_products(np, precision, op)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_rows(precision: str) -> None:
    check_empty_rows(np, precision)

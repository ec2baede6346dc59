"""Arrays on a GPU whose elements lie at no multiples of their size are refused by name.

An element is read at once; from such an address that ends the process with an error of CUDA's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from argand import (
    DftPlan,
    GemmPlan,
    Pairs,
    PreparedCircuit,
    SoftmaxPlan,
    apply_gate,
    beam_power,
    channelise,
    contract,
    dft,
    expectation,
    gemm,
    herk,
    image,
    log_softmax,
    logsumexp,
    pack,
    plan_circuit,
    probabilities,
    run_circuit,
    sample,
    softmax,
    solve,
    solve_hermitian,
    spectrum,
    to_pairs,
)
from argand.checks import refuse_misaligned

NOT = [[0, 1], [1, 0]]


class StandIn:
    """An array of CuPy's, where there is no GPU, of elements of 8 bytes."""

    __module__ = "cupy"
    itemsize = 8

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.shape, self.strides, self.size = shape, strides, math.prod(shape)
        self.data = SimpleNamespace(ptr=address)


def shifted(cp: Any, values: Any) -> Any:
    """Return values in an array of CuPy's that begins in the middle of an element."""
    values = np.ascontiguousarray(values)
    item = values.itemsize
    held = cp.zeros(values.nbytes + item, cp.uint8)
    array = cp.ndarray(values.shape, values.dtype, held.data + item // 2)
    held[item // 2 : item // 2 + values.nbytes] = cp.asarray(values.reshape(-1).view(np.uint8))
    assert array.data.ptr % item == item // 2
    return array


@pytest.mark.parametrize(
    ("address", "shape", "strides"),
    [(4, (3,), (8,)), (8, (3, 2), (12, 8)), (8, (2,), (-20,)), (16, (1, 2), (8, 4))],
)
def test_elements_between_multiples_of_their_size_are_named(
    address: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match=rf"x must have elements at multiples .* {address:#x} and"):
        refuse_misaligned("x", StandIn(address, shape, strides))


@pytest.mark.parametrize(
    ("address", "shape", "strides"),
    [(8, (3,), (8,)), (24, (2, 2), (-16, 0)), (4, (0, 2), (16, 8)), (8, (1, 2), (4, 8))],
)
def test_elements_at_multiples_of_their_size_pass(
    address: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    refuse_misaligned("x", StandIn(address, shape, strides))


def test_numpy_reads_them_anywhere() -> None:
    memory = np.arange(1 + 2 * 12, dtype=np.float32)
    x = memory[1:].view(np.complex64).reshape(3, 4)
    assert x.ctypes.data % 8 == 4
    np.testing.assert_array_equal(gemm(x, x.T), gemm(x.copy(), x.T.copy()))
    np.testing.assert_array_equal(dft(x), dft(x.copy()))


def numbers(*shape: int) -> Any:
    return np.ones(shape, np.complex64)


CALLS: list[tuple[str, str, Any, Callable[[Any, Any], Any]]] = [
    ("gemm", "a", numbers(3, 4), lambda x, good: gemm(x, good(4, 3))),
    ("gemm", "b", numbers(4, 3), lambda x, good: gemm(good(3, 4), x, precision="fp32")),
    ("gemm", "c", numbers(3, 3), lambda x, good: gemm(good(3, 4), good(4, 3), x, beta=1)),
    ("gemm", "out", numbers(3, 3), lambda x, good: gemm(good(3, 4), good(4, 3), out=x)),
    ("exact", "b", numbers(4, 3), lambda x, good: gemm(good(3, 4), x, precision="7xint8")),
    ("exact", "out", numbers(3, 3), lambda x, good: gemm(good(3, 4), good(4, 3), out=x,
                                                         tolerance=1e-3)),
    ("power", "out", numbers(3, 3).real, lambda x, good: gemm(good(3, 4), good(4, 3), out=x,
                                                              output="power")),
    ("pack", "x", numbers(3, 4), lambda x, good: pack(x, "tf32")),
    ("to_pairs", "x", numbers(3, 4), lambda x, good: to_pairs(x, "fp16")),
    ("Pairs", "array", numbers(3, 4, 2).real, lambda x, good: Pairs(x, "fp32")),
    ("contract", "a", numbers(3, 4), lambda x, good: contract("ij,k->ik", x, good(4))),
    ("contract", "out", numbers(3, 3), lambda x, good: contract("ij,jk->ik", good(3, 4),
                                                                good(4, 3), power=True, out=x)),
    ("contract", "scale", numbers(3), lambda x, good: contract("ij,jk->ik", good(3, 4),
                                                               good(4, 3), scale=x)),
    ("herk", "a", numbers(3, 4), lambda x, good: herk(x)),
    ("herk", "a", numbers(3, 4).astype(complex), lambda x, good: herk(x, op="T")),
    ("herk", "c", numbers(3, 3), lambda x, good: herk(good(3, 4), x, beta=1)),
    ("herk", "out", numbers(3, 3), lambda x, good: herk(good(3, 4), out=x)),
    ("softmax", "x", numbers(3, 40).real, lambda x, good: softmax(x)),
    ("softmax", "x", numbers(3, 40), lambda x, good: softmax(x, axis=0, power=True)),
    ("log_softmax", "out", numbers(3, 4).real, lambda x, good: log_softmax(good(3, 4).real.copy(),
                                                                           out=x)),
    ("logsumexp", "x", numbers(39).astype(complex), lambda x, good: logsumexp(x, power=True)),
    ("dft", "x", numbers(3, 753), lambda x, good: dft(x)),
    ("dft", "x", numbers(3, 16), lambda x, good: dft(x, axis=0)),
    ("dft", "out", numbers(3, 16), lambda x, good: dft(good(3, 16), out=x)),
    ("channelise", "x", numbers(64), lambda x, good: channelise(x, 8)),
    ("channelise", "out", numbers(5, 8), lambda x, good: channelise(good(64), 8, taps=4, out=x)),
    ("spectrum", "x", numbers(64), lambda x, good: spectrum(x, 16)),
    ("beam_power", "weights", numbers(2, 3), lambda x, good: beam_power(x, good(3, 8))),
    ("beam_power", "samples", numbers(3, 8), lambda x, good: beam_power(good(2, 3), x)),
    ("solve", "a", np.eye(3, dtype=np.complex64), lambda x, good: solve(x, good(3))),
    ("solve", "b", numbers(3), lambda x, good: solve(good(3, 3), x)),
    ("solve_hermitian", "r", np.eye(3, dtype=complex), lambda x, good: solve_hermitian(x, good(3))),
    ("solve_hermitian", "b", numbers(3), lambda x, good: solve_hermitian(good(3, 3), x)),
    ("image", "covariances", numbers(1, 2, 2), lambda x, good: image(
        x, np.zeros((2, 3)), [1e6], np.zeros((4, 3)))),
    ("image", "directions", np.zeros((4, 3)), lambda x, good: image(
        good(1, 2, 2), np.zeros((2, 3)), [1e6], x)),
    ("apply_gate", "state", numbers(8), lambda x, good: apply_gate(x, NOT, [1])),
    ("apply_gate", "matrix", numbers(2, 2), lambda x, good: apply_gate(good(8), x, [1])),
    ("run_circuit", "state", numbers(8), lambda x, good: run_circuit(x, [(NOT, (1,))])),
    ("run_circuit", "reference", numbers(8), lambda x, good: run_circuit(
        good(8), [(NOT, (1,))], reference=x)),
    ("PreparedCircuit", "state", numbers(8), lambda x, good: PreparedCircuit(
        plan_circuit(3, [(NOT, (1,))]), good(8))(x)),
    ("sample", "state", numbers(8), lambda x, good: sample(x, 10, seed=1)),
    ("probabilities", "state", numbers(8), lambda x, good: probabilities(x, [0])),
    ("expectation", "state", numbers(8), lambda x, good: expectation(x, ["ZZZ"])),
]  # fmt: skip
"""The call, the argument that is misaligned, what it holds, and how it is called."""


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("name", "values", "call"), [pytest.param(*case[1:], id="-".join(case[:2])) for case in CALLS]
)
def test_calls_refuse_them_by_name(cp: Any, name: str, values: Any, call: Any) -> None:
    def good(*shape: int) -> Any:
        return cp.ones(shape, cp.complex64)

    x, before = shifted(cp, values), cp.zeros(1)
    with pytest.raises(ValueError, match=f"{name} must have elements at multiples of their"):
        call(x, good)
    cp.cuda.Device().synchronize()
    assert float(before[0]) == 0  # the device still answers


@pytest.mark.gpu
@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("kind", [SoftmaxPlan, DftPlan])
def test_plans_refuse_them(cp: Any, kind: Any, axis: int) -> None:
    values = np.ones((4, 16), np.float32 if kind is SoftmaxPlan else np.complex64)
    with pytest.raises(ValueError, match="x must have elements at multiples of their"):
        kind(shifted(cp, values), axis=axis)
    plan = kind(cp.asarray(values), axis=axis)
    with pytest.raises(ValueError, match="x must have"):
        plan(shifted(cp, values))
    with pytest.raises(ValueError, match="out must have"):
        plan(cp.asarray(values), out=shifted(cp, values))
    cp.cuda.Device().synchronize()


@pytest.mark.gpu
def test_plans_of_products_refuse_them(cp: Any) -> None:
    a, b = cp.ones((3, 4), cp.complex64), cp.ones((4, 3), cp.complex64)
    with pytest.raises(ValueError, match="b must have elements at multiples of their"):
        GemmPlan(a, shifted(cp, b.get()))
    plan = GemmPlan(a, b)
    with pytest.raises(ValueError, match="a must have the planned"):
        plan(shifted(cp, a.get()), b)
    with pytest.raises(ValueError, match="out must have the planned"):
        plan(a, b, out=shifted(cp, np.ones((3, 3), np.complex64)))


@pytest.mark.gpu
def test_tensors_are_refused_by_name(cp: Any) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = torch.from_dlpack(shifted(cp, np.ones((4, 4), np.complex64)))
    with pytest.raises(ValueError, match="b must have elements at multiples of their"):
        gemm(torch.ones(4, 4, dtype=torch.complex64, device="cuda"), x)

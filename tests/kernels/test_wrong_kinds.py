"""Arguments of a wrong kind are named, with what was given, by every call that takes them."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from argand import (
    Gate,
    GemmPlan,
    Pairs,
    PreparedCircuit,
    accelerate,
    apply_gate,
    beam_power,
    channelise,
    contract,
    dft,
    expectation,
    gemm,
    herk,
    logsumexp,
    pack,
    pairs,
    plan_circuit,
    probabilities,
    run_circuit,
    run_trajectories,
    sample,
    softmax,
    solve,
    solve_hermitian,
    spectrum,
)
from argand.checks import share_memory
from argand.runtime.cpu.numpy_calls import NumpyCalls
from scipy.sparse import csr_array

X = np.eye(4, dtype=np.complex64)
MASKED = np.ma.masked_array(X, np.eye(4) * [1, 0, 0, 0])
STRUCTURED = np.ma.masked_array(
    np.zeros((4, 4), [("r", "i1"), ("i", "i1")]), [[(0, 1), *[(0, 0)] * 3], *[[(0, 0)] * 4] * 3]
)
TIMES = np.zeros((4, 4), "M8[s]")


class Labelled:
    """An array with names of its axes, such as xarray's, which numpy.asarray reads."""

    def __init__(self, x: Any) -> None:
        self.shape, self.dtype = x.shape, x.dtype


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gemm(None, X), "a must be an array, got None"),
        (lambda: gemm(X, TIMES), r"b must be numbers, got datetime64\[s\]"),
        (lambda: gemm(X, X, np.array("c")), "c must be numbers, got <U1"),
        (lambda: herk(None), "a must be an array, got NoneType"),
        (lambda: dft(Pairs(np.ones((2, 2), np.int8), "int8")), "x must be an array, got Pairs of"),
        (lambda: pack("x", "tf32"), "x must be numbers, got <U1"),
        (lambda: softmax(X.real, axis=(0, 1)), r"axis must be an integer, got \(0, 1\)"),
        (lambda: dft(X, "last"), "axis must be an integer, got 'last'"),
        (lambda: dft(X, True), "axis must be an integer, got True"),
        (lambda: gemm(X, X, alpha="2"), "alpha must be a number, got '2'"),
        (lambda: herk(X, X, beta=None), "beta must be a number, got None"),
        (lambda: gemm(X, X, tolerance="low"), "tolerance must be a real number, got 'low'"),
        (lambda: softmax(X.real, scale=[1]), r"scale must be a real number, got \[1\]"),
        (lambda: dft(X, n=2.5), r"n must be an integer, got 2\.5"),
        (lambda: apply_gate(X[0], X, 3), "targets and controls must be sequences of qubits, got 3"),
        (lambda: probabilities(X[0], 1), "qubits must be a sequence of them, got 1"),
        (lambda: dft(X, inverse="no"), "inverse must be true or false, got 'no'"),
        (lambda: softmax(X, power=2), "power must be true or false, got 2"),
        (lambda: gemm(X, X, precision="7xint8", check="x"), "check must be true or false"),
        (lambda: contract("ij,jk->ik", X, X, conj_b=1), "conj_b must be true or false, got 1"),
        (lambda: contract("ij,jk->ik", X, X, scale=None), "scale must be a number or an array"),
        (lambda: sample(X[0], 2.5, seed=1), r"shots must be an integer, got 2\.5"),
        (lambda: sample(X[0], 2, seed="a"), "seed must be an integer, got 'a'"),
        (lambda: probabilities(X[0], [1.5]), r"a qubit must be an integer, got 1\.5"),
        (lambda: expectation(X[0], [("XX", "a")]), "coefficient must be a real number, got 'a'"),
        (lambda: contract(None, X, X), "subscripts must be text such as 'ij,jk->ik', got None"),
        (lambda: softmax(X.real, scale=np.complex64(2)), "scale must be a real number"),
        (lambda: softmax(X.real, axis=np.array(1.5)), "axis must be an integer, got array"),
        (lambda: solve(X, X, block=1.5), r"block must be an integer, got 1\.5"),
        (lambda: solve_hermitian(X, X, info=0), "info must be an array of int32, got int"),
        (lambda: plan_circuit(2, [], device="cpu"), r"device must be one of argand\.devices"),
        (lambda: plan_circuit(2, [], width=1.5), r"width must be an integer, got 1\.5"),
        (lambda: run_circuit(X[0], [], reference=1), "reference must be an array, got int"),
        (
            lambda: run_circuit(X[0], [], reference=np.array(list("abcd"))),
            "reference must be numbers, got <U1",
        ),
        (
            lambda: run_trajectories(1, "x", 2, seed=1),
            r"gate 0 must be an argand\.Gate, .* got 'x'",
        ),
        (lambda: run_trajectories(1, None, 2, seed=1), "gates must be a sequence of gates, got N"),
        (lambda: run_trajectories(1, [], 2, seed=1, damping="x"), "damping must be a real number"),
        (lambda: GemmPlan("x", X), "a must be numbers, got <U1"),
        (lambda: GemmPlan(X, X, alpha=[2, 3]), r"alpha must be a number, got \[2, 3\]"),
        (lambda: softmax(X.real, X.real), "axis must be an integer, got array"),
        (lambda: dft(X, rounding=[X]), "rounding must be a name or names, got"),
        (lambda: run_trajectories("2", [], 2, seed=1), "qubits must be an integer, got '2'"),
        (lambda: run_trajectories(1, [], 2, seed=1, first=0.5), r"first must be an integer"),
        (lambda: run_trajectories(1, [], 2, seed="x"), "seed must be an integer, got 'x'"),
        (lambda: herk(X, "c"), "c must be numbers, got <U1"),
        (lambda: herk(X, STRUCTURED.filled(0)), "c must be an array, got Pairs of"),
        (lambda: gemm(csr_array(X), X), "a must be an array, got csr_array"),
        (lambda: gemm(X, X, out=[1]), "out must be an array, got list"),
        (lambda: dft(X, out=Labelled(X)), "out must be an array of NumPy or CuPy, got Labelled"),
        (lambda: logsumexp(X.real, 0, out=True), "out must be an array, got bool"),
        (lambda: contract("ij,jk->ik", X, X, out="y"), "out must be an array, got str"),
        (lambda: contract("ij,jk->ik", X, X, bias="y"), "bias must be numbers, got <U1"),
        (lambda: gemm(X.astype("c32"), X, precision="7xint8"), "up to complex128, got complex256"),
        (lambda: gemm(X, MASKED), r"b has 1 masked elements, .*; give b\.filled\(value\)"),
        (lambda: dft(MASKED), "x has 1 masked elements"),
        (lambda: apply_gate(MASKED[0], X, (0,)), "state has 1 masked elements"),
        (lambda: contract("ij,jk->ik", X, X, scale=MASKED), "scale has 1 masked elements"),
        (lambda: gemm(X, X, alpha=MASKED[0, 0]), "alpha must be a number, got masked"),
        (lambda: Gate(MASKED, (0, 1)), "matrix has 1 masked elements"),
        (lambda: spectrum(X, 4, window=MASKED[0].real), "window has 1 masked elements"),
        (lambda: channelise(X, 4, 1, window=MASKED[0].real), "window has 1 masked elements"),
        (lambda: Pairs(np.ma.masked_all((4, 4, 2), np.int8), "int8"), "array has 32 masked"),
        (lambda: gemm(STRUCTURED, X, precision="7xint8"), "a has 1 masked elements"),
        (lambda: Gate(X, 0), "targets and controls must be sequences of qubits, got 0"),
        (lambda: plan_circuit(2, [(X, (0, 1)), "XY"]), "gate 1 must be an argand.Gate, or a tuple"),
        (lambda: run_circuit(X[0], [(X,)]), r"gate 0 must be an argand\.Gate, or a tuple .*, got"),
        (lambda: run_circuit(X[0], Gate(X, (0, 1))), "gates must be a sequence of gates, got Gate"),
        (lambda: plan_circuit(2, 5), "gates must be a sequence of gates, got 5"),
        (lambda: expectation(X[0], "XX"), "observables must be a sequence of them, got 'XX'"),
        (lambda: expectation(X[0], 5), "observables must be a sequence of them, got 5"),
        (lambda: expectation(X[0], {"XX": 0.5}), "observables must be a sequence of them, got {"),
        (lambda: expectation(X[0], {"XX", "ZZ"}), "observables must be a sequence of them, got {"),
        (lambda: probabilities(X[0], [True, False]), "a qubit must be an integer, got True"),
        (lambda: probabilities(X[0], {1, 0}), "qubits must be a sequence of them, got {0, 1}"),
        (lambda: apply_gate(X[0], X, {1, 0}), "must be sequences of qubits, got {0, 1} and"),
        (lambda: Gate(X, {1: 0, 0: 1}), "targets and controls must be sequences of qubits, got {"),
        (lambda: gemm(X, X, out=np.complex64), "out must be an array, got type"),
        (lambda: gemm(X, X.view("V8")), r"b must be numbers, got \|V8"),
        (lambda: contract("ii,jk->jk", X.astype(object), X), "a must be numbers, got object"),
        (lambda: solve_hermitian(None, None), "r must be an array, got NoneType"),
        (lambda: solve_hermitian(X.astype(object), X), "r and b must be numbers, got object and c"),
        (lambda: solve_hermitian(X, X, info=[0]), "info must be an array of int32, got list"),
        (lambda: Pairs([[1, 2]], "int8"), "array must be an array, got list"),
        (lambda: pack(X, None), "precision must be one of .*, got None"),
        (lambda: dft(X, precision=["fp32"]), r"precision must be one of .*, got \['fp32'\]"),
        (lambda: gemm(X, X, precision="tf32", rounding=True), "rounding must be a name or names"),
        (lambda: dft(X, rounding=1), "rounding must be a name or names, got 1"),
        (lambda: plan_circuit(2, [], costs={}), "costs must be those that argand.measure_gate_c"),
        (lambda: PreparedCircuit([], X[0]), r"plan must be an argand\.CircuitPlan, got list"),
    ],
)
def test_they_are_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: gemm(X, X, alpha=10**400), "alpha"),
        (lambda: gemm(X, X, tolerance=10**400), "tolerance"),
        (lambda: softmax(X.real, scale=10**400), "scale"),
        (lambda: spectrum(X, 4, sample_rate=10**400), "sample_rate"),
        (lambda: contract("ij,jk->ik", X.astype(complex), X, scale=10**400), "scale"),
        (lambda: contract("ij,jk->ik", X, X, bias=10**400), "bias"),
    ],
)
def test_integers_beyond_fp64_are_named(call: Callable[[], Any], name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} must be within the range of fp64$"):
        call()


RAGGED = [[1, 2], [3]]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: gemm(RAGGED, X), "a"),
        (lambda: gemm(X, RAGGED, precision="7xint8"), "b"),
        (lambda: gemm(X, X, RAGGED, beta=1), "c"),
        (lambda: herk(RAGGED), "a"),
        (lambda: dft(RAGGED, 0), "x"),
        (lambda: softmax(RAGGED), "x"),
        (lambda: logsumexp(RAGGED, axis=0), "x"),
        (lambda: contract("ij,jk->ik", RAGGED, X), "a"),
        (lambda: contract("ij,jk->ik", X, X, bias=RAGGED), "bias"),
        (lambda: apply_gate(X[0].copy(), RAGGED, (0,)), "matrix"),
        (lambda: plan_circuit(2, [(RAGGED, (0,))]), "matrix"),
        (lambda: solve(X, RAGGED), "b"),
        (lambda: solve_hermitian(X, RAGGED), "b"),
        (lambda: pack(RAGGED, "fp16"), "x"),
        (lambda: pairs(RAGGED), "array"),
        (lambda: channelise(RAGGED, 4), "x"),
        (lambda: spectrum(X, 4, window=RAGGED), "window"),
        (lambda: GemmPlan(X, RAGGED), "b"),
    ],
)
def test_lists_that_are_no_array_are_refused(call: Callable[[], Any], name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be an array: .* inhomogeneous shape"):
        call()


PREPARED = PreparedCircuit(plan_circuit(2, [(X, (0, 1))]), X[0])
WRITE: list[Callable[[Any], Any]] = [
    lambda out: gemm(X, X, out=out),
    lambda out: gemm(X, X, precision="7xint8", out=out),
    lambda out: herk(X, out=out),
    lambda out: dft(X, out=out),
    lambda out: solve_hermitian(X, X, out=out),
    lambda out: contract("ij,jk->ik", X, X, out=out),
    lambda out: contract("ij,jk->ik", X, X, scale=X, out=out),
]
"""Calls that write a result of the form of X."""


@pytest.mark.parametrize(
    "call", [*WRITE, lambda out: apply_gate(out[0], X, (0, 1)), lambda out: PREPARED(out[0])]
)
def test_what_is_read_only_is_refused(
    monkeypatch: pytest.MonkeyPatch, call: Callable[[Any], Any]
) -> None:
    """At a repeated call NumPy says it itself."""
    monkeypatch.setattr(NumpyCalls, "known", lambda _, key: None)
    out = np.zeros_like(X)
    out.flags.writeable = False
    with pytest.raises(ValueError, match=r"(out|state) must be writeable"):
        call(out)


@pytest.mark.each_value
@pytest.mark.parametrize(
    "call",
    [
        *WRITE,
        lambda out: softmax(X.real, precision="fp32", out=out.real),
        lambda out: beam_power(X, X, out=out.real),
        lambda out: channelise(X, 2, 1, out=out.reshape(4, 2, 2)),
        lambda out: spectrum(X.real, 4, onesided=False, average=1, out=out.real[:, None]),
    ],
)
@pytest.mark.parametrize(
    ("base", "strides"), [(4, (0, 8)), (4, (8, 0)), (7, (8, 8)), (10, (16, 8))]
)
def test_results_whose_numbers_share_memory_are_refused(
    call: Callable[[Any], Any], base: int, strides: tuple[int, int]
) -> None:
    """Also by a call of a form that was made before."""
    with contextlib.suppress(ValueError):  # those that take contiguous results alone
        call(np.zeros((4, 4), X.dtype))
    out = np.lib.stride_tricks.as_strided(np.zeros(base, X.dtype), (4, 4), strides)
    with pytest.raises(ValueError, match="out must have memory for each of its numbers"):
        call(out)


@pytest.mark.gpu
@pytest.mark.parametrize("call", [gemm, herk, dft, solve_hermitian])
def test_results_of_cupys_broadcast_are_refused(cp: Any, call: Callable[..., Any]) -> None:
    """CuPy's broadcast arrays may be written to."""
    operands = (cp.asarray(X),) * (2 if call in (gemm, solve_hermitian) else 1)
    out = cp.broadcast_to(cp.zeros(4, X.dtype), (4, 4))
    for _ in range(2):
        call(*operands, out=cp.zeros_like(operands[0]))
        with pytest.raises(ValueError, match="out must have memory for each of its numbers"):
            call(*operands, out=out)


def test_results_of_any_order_of_axes_have_memory_for_each_number() -> None:
    x = np.zeros((3, 4, 10))[:, ::-2, 3:8]
    for axes in itertools.permutations(range(3)):
        turned = x.transpose(axes)
        assert not share_memory(turned.shape, turned.strides, turned.itemsize)
    assert not share_memory((1, 0, 3), (0, 0, 0), 8)
    assert share_memory((1, 2, 3), (0, 0, 8), 8)


def test_masked_arrays_without_a_masked_element_are_arrays() -> None:
    plain = np.ma.masked_array(X)
    np.testing.assert_array_equal(gemm(plain, X), X)
    structured = np.ma.masked_array(STRUCTURED.data)
    np.testing.assert_array_equal(gemm(structured, X), np.zeros_like(X))
    out = np.ma.masked_array(np.zeros_like(X))
    assert gemm(X, X, out=out) is out
    np.testing.assert_array_equal(out, X)
    state = np.ma.masked_array(X[0].copy())
    assert apply_gate(state, [[0, 1], [1, 0]], (1,)) is state
    assert state.argmax() == 2


@pytest.mark.parametrize("wrong", [{"precision": "fp8"}, {"tolerance": -1}, {"tolerance": 0}])
def test_products_within_accelerate_are_checked_at_its_beginning(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be "), accelerate(**wrong):
        pass

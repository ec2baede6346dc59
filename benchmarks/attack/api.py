"""Calls of the API with nasty data: within the bound of the precision, or the documented error."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable
from typing import Any

import argand
import numpy as np
from argand import PRECISIONS, Precision
from scipy import special

from benchmarks.attack import array_calls, product_calls
from benchmarks.attack.campaign import Attempt, require
from benchmarks.attack.isolation import isolated
from benchmarks.attack.nasty import (
    LENGTHS,
    Array,
    Rng,
    Verdict,
    any_precision,
    arranged,
    numbers,
    target,
    verdict,
)  # fmt: skip
from workflow.accuracy.bounds import accumulator_roundoff, operand_roundoff
from workflow.accuracy.gate_bounds import evolution_bound, gate_bound
from workflow.accuracy.matrix_product_accuracy import assess_product
from workflow.accuracy.references import product_reference, softmax_reference, spectrum_reference
from workflow.accuracy.softmax_accuracy import assess_softmax, rounding_bound
from workflow.accuracy.underflow import underflow
from workflow.spectra import transforms

_CALLS = 25
"""Calls of one attempt, all in one process."""


def _largest(precision: Precision) -> float:
    """Return the magnitude of numbers whose products and sums stay in the range of results."""
    return 1e140 if precision.output == "complex128" else 1e16


def _dtype(rng: Rng, *kinds: str) -> str:
    return str(rng.choice(kinds))


def _broadcast(rng: Rng, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape that broadcasts to this one: with axes of 1, or without the first ones."""
    found = tuple(1 if rng.random() < 0.2 else length for length in shape)
    return found[int(rng.integers(0, len(found) + 1)) :] if rng.random() < 0.2 else found


def gemm(rng: Rng) -> tuple[str, Verdict]:
    """Try alpha op(a) op(b) + beta c, also of packed operands."""
    precision = any_precision(rng)
    m, n, k = (int(rng.choice(LENGTHS)) for _ in range(3))
    batch = [(), (0,), (1,), (2,), (3, 1), (3, 2)][int(rng.integers(6))]
    batch_a, batch_b = (_broadcast(rng, batch) for _ in "ab")
    batch = np.broadcast_shapes(batch_a, batch_b)
    op_a, op_b = (str(rng.choice(["N", "T", "C"])) for _ in "ab")
    kinds = ("complex64", "complex128", "float32", "float64", "int16")
    large = _largest(precision)
    a = numbers(rng, (*batch_a, *((m, k) if op_a == "N" else (k, m))), _dtype(rng, *kinds), large)
    b = numbers(rng, (*batch_b, *((k, n) if op_b == "N" else (n, k))), _dtype(rng, *kinds), large)
    alpha = complex(rng.choice([1, 1, 0, -2.5, 1 + 1j]))
    beta = complex(rng.choice([0, 0, 1, 0.5j]))
    c = numbers(rng, (*batch, m, n), precision.output, large) if beta else None
    (way_a, a), (way_b, b) = arranged(rng, a), arranged(rng, b)
    where, a, out = target(rng, a, (*batch, m, n), precision.output)
    what = f"gemm {precision.name} {op_a}{a.shape}{a.dtype} {way_a}, {op_b}{b.shape}{b.dtype} "
    what += f"{way_b}, alpha {alpha}, beta {beta}, {where}"
    scalars: dict[str, Any] = {"alpha": alpha, "beta": beta, "op_a": op_a, "op_b": op_b}
    truth = a.copy()
    reference = product_reference(truth, b, c, **scalars)
    given: Any = a
    if where == "no out" and rng.random() < 0.3:
        what += ", packed"
        given = argand.pack(a, precision, op=op_a)  # type: ignore[arg-type]
        scalars["op_a"] = "N"
    got = argand.gemm(given, b, c, **scalars, precision=precision, out=out)
    if out is not None and got is not out:
        return what, "out is not what is returned"
    if out is None and not np.array_equal(a, truth, equal_nan=True):
        return what, "an operand was changed"
    return what, verdict(assess_product(reference, got, precision, backend="cpu"))


def pairs(rng: Rng) -> tuple[str, Verdict]:
    """Try products of pairs: those of the same numbers; complex-half is them rounded once."""
    precision = PRECISIONS[str(rng.choice(["fp16", "bf16", "3xfp16", "tf32", "fp32"]))]
    m, n, k = (int(rng.choice(LENGTHS)) for _ in range(3))
    kind = _dtype(rng, "int8", "int16", "float16", "float32")
    x = numbers(rng, (m, k, 2), kind, 1e4)
    way, x = arranged(rng, x)
    b = numbers(rng, (k, n), "complex64", 1e4)
    what = f"pairs {precision.name} {x.shape}{x.dtype} {way} by {b.shape}"
    with np.errstate(all="ignore"):
        plain = x[..., 0].astype("f4") + np.complex64(1j) * x[..., 1].astype("f4")
    plain.real, plain.imag = x[..., 0], x[..., 1]  # inf times 1j would be NaN
    got = argand.gemm(argand.pairs(x), b, precision=precision)
    reference = product_reference(plain, b)
    return what, verdict(assess_product(reference, got, precision, backend="cpu"))


def softmax(rng: Rng) -> tuple[str, Verdict]:
    """Try softmax, log_softmax and logsumexp over rows, beside SciPy's in fp64."""
    precision = any_precision(rng)
    name = str(rng.choice(["softmax", "log_softmax", "logsumexp"]))
    rows = [(), (0,), (1,), (3,), (2, 2)][int(rng.integers(5))]
    columns = int(rng.choice([0, 1, 2, 3, 7, 64, 1000, 40_000]))
    axis = int(rng.integers(-1 - len(rows), len(rows) + 1))
    place = axis % (len(rows) + 1)
    real = precision.real_output
    made = (*rows[:place], columns, *rows[place:])
    x = numbers(rng, made, _dtype(rng, "float32", real, "float16", "int16"), 300.0)
    way, x = arranged(rng, x)
    shape = rows if name == "logsumexp" else x.shape
    where, x, out = target(rng, x, shape, real)
    what = f"{name} {precision.name} {x.shape}{x.dtype} {way}, axis {axis}, {where}"
    truth = np.moveaxis(np.array(x), axis, -1).copy()
    got = getattr(argand, name)(x, axis, precision=precision, out=out)
    if name != "logsumexp":
        got = np.moveaxis(got, axis, -1)
    if name == "softmax":
        reference = softmax_reference(truth)
        return what, verdict(assess_softmax(reference, got, precision, backend="cpu"))
    with np.errstate(all="ignore"):
        exact = getattr(special, name)(truth.astype(float), axis=-1)
    return what, _near(got, exact, _logarithm_bound(truth, exact, precision))


def _logarithm_bound(x: Array, exact: Array, precision: Precision) -> Array:
    """Return the error bound of a logarithm of a sum, or of an element less it, for each element.

    Rounding x moves an element and the sum's logarithm by at most e = v |x| each, e of the row's
    largest; `rounding_bound` is relative of the sum, so absolute of its logarithm; differences and
    the result itself are rounded a few times more, relative to the largest number among them.
    """
    u, v = accumulator_roundoff(precision), operand_roundoff(precision)
    size = np.where(np.isfinite(x), np.abs(x.astype(float)), 0).max(axis=-1, initial=0)
    base, slope = rounding_bound(precision, x.shape[-1], "cpu")
    lost = underflow(precision, "cpu")
    moved = v * size + lost.of_largest * size + lost.operand
    rest = math.log1p(base) + (slope + 8 * u) * (2 * size + math.log(x.shape[-1]))
    bound = np.asarray(2 * moved + rest + lost.result)
    return np.broadcast_to(bound if exact.ndim < x.ndim else bound[..., None], exact.shape)


def _near(got: Array, exact: Array, bound: Array) -> Verdict:
    """Return whether numbers are within a bound, and those that are none are the same."""
    if got.shape != exact.shape:
        return f"the shape is {got.shape} instead of {exact.shape}"
    plain = np.isfinite(exact)
    other = ~plain & ~((got == exact) | (np.isnan(got) & np.isnan(exact)))
    if other.any():
        return f"{got[other][:3]} instead of {exact[other][:3]}"
    error = np.abs(got[plain].astype(exact.dtype) - exact[plain])
    wrong = ~(error <= bound[plain])
    if not wrong.any():
        return ""
    return f"off by {error[wrong].max():.3g}, bound {bound[plain][wrong].max():.3g}"


def dft(rng: Rng) -> tuple[str, Verdict]:
    """Return the transforms of any length, cut or filled up, along any axis."""
    precision = any_precision(rng)
    length = int(rng.choice([0, 1, 2, 3, 4, 7, 13, 16, 60, 64, 127, 257, 1000]))
    shape = [(length,), (3, length), (0, length), (2, length, 3)][int(rng.integers(4))]
    axis = shape.index(length)
    kinds = ("complex64", "complex128", "float32", "int16")
    x = numbers(rng, shape, _dtype(rng, *kinds), _largest(precision))
    way, x = arranged(rng, x)
    n = int(rng.choice([length, length, 1, 5, 32, 100]))
    inverse, norm = bool(rng.integers(2)), str(rng.choice(["backward", "ortho", "forward"]))
    made = (*shape[:axis], n, *shape[axis + 1 :])
    where, x, out = target(rng, x, made, precision.output)
    what = f"dft {precision.name} {x.shape}{x.dtype} {way}, axis {axis}, n {n}, {norm}, "
    what += f"{'inverse, ' * inverse}{where}"
    fitted = np.zeros(made, complex)
    kept = (slice(None),) * axis + (slice(0, min(n, length)),)
    fitted[kept] = x[kept]
    got = argand.dft(x, axis, n=n, inverse=inverse, norm=norm, precision=precision, out=out)
    if 0 in made:
        return what, "" if got.shape == made else f"the shape is {got.shape}"
    reference = spectrum_reference(
        np.ascontiguousarray(np.moveaxis(fitted, axis, -1)), inverse=inverse, norm=norm
    )
    turned = np.ascontiguousarray(np.moveaxis(got, axis, -1))
    return what, verdict(
        transforms.assess_transform(reference, turned, precision, backend="cpu", ran="")
    )


def gates(rng: Rng) -> tuple[str, Verdict]:
    """Return one gate with controls, or a circuit, on a state, beside dense matrices in fp64."""
    precision = any_precision(rng)
    qubits = int(rng.integers(1, 8))
    largest = 1e100 if precision.output == "complex128" else 1e10
    state = numbers(rng, (1 << qubits,), precision.output, largest)
    count = 1 if rng.random() < 0.5 else int(rng.integers(0, 12))
    circuit = []
    for _ in range(count):
        width = int(rng.integers(1, min(qubits, 4) + 1))
        order = [int(qubit) for qubit in rng.permutation(qubits)]
        matrix = np.linalg.qr(_random(rng, 1 << width))[0]
        controls = order[width : width + int(rng.integers(0, 3))]
        circuit.append(argand.Gate(matrix, tuple(order[:width]), tuple(controls)))
    what = f"{count} gates {precision.name} on {qubits} qubits"
    exact = state.astype(complex)
    with np.errstate(all="ignore"):
        for gate in circuit:
            exact = _dense(exact, gate, qubits)
    before = state.copy()
    if count == 1:
        gate = circuit[0]
        argand.apply_gate(
            state, gate.matrix, gate.targets, controls=gate.controls, precision=precision
        )
        bound = gate_bound(precision, len(gate.targets), "cpu")
    else:
        record = argand.run_circuit(state, circuit, precision=precision)
        widths = [len(one.qubits) for one in record.plan.passes]
        bound = evolution_bound(precision, widths, "cpu")
    if not np.isfinite(before).all():
        # Fused gates multiply more amplitudes by 0: only one gate's are known not to be reached.
        spread = count == 1 and not np.isfinite(state[np.isfinite(exact)]).all()
        return what, "NaN where the gate does not bring it" if spread else ""
    lost = (count + 1) * 2.0**qubits * underflow(precision, "cpu").result * 64
    error = float(np.linalg.norm(state.astype(complex) - exact))
    allowed = bound * float(np.linalg.norm(before.astype(complex))) + lost
    return what, "" if error <= allowed else f"off by {error:.3g}, bound {allowed:.3g}"


def _random(rng: Rng, size: int) -> Array:
    return rng.standard_normal((size, size)) + 1j * rng.standard_normal((size, size))


def _dense(state: Array, gate: argand.Gate, qubits: int) -> Array:
    """Return a gate applied amplitude by amplitude, as it is defined."""
    found = state.copy()
    on = sum(1 << qubit for qubit in gate.controls)
    mask = sum(1 << qubit for qubit in gate.targets)
    for base in range(1 << qubits):
        if base & mask or base & on != on:
            continue
        places = [
            base + sum(1 << qubit for bit, qubit in enumerate(gate.targets) if number >> bit & 1)
            for number in range(1 << len(gate.targets))
        ]
        found[places] = np.asarray(gate.matrix) @ state[places]
    return found


FUNCTIONS: dict[str, Callable[[Rng], tuple[str, Verdict]]] = {
    "gemm": gemm, "pairs": pairs, "softmax": softmax, "dft": dft, "gates": gates,
    **array_calls.FUNCTIONS, **product_calls.FUNCTIONS,
}  # fmt: skip


def fuzz(name: str) -> Callable[[Attempt], None]:
    """Return the attack on a function of `FUNCTIONS`: some calls in one process."""

    def make(attempt: Attempt) -> None:
        found = isolated(lambda: _calls(name, attempt.rng))
        require(found.how == "returned", f"{name}: {found}")
        require(not found.value, str(found.value))

    return make


def _calls(name: str, rng: Rng) -> str:
    """Return the first call that goes wrong, with its number, or nothing."""
    for number in range(_CALLS):
        try:
            what, fault = FUNCTIONS[name](rng)
        except (ValueError, TypeError) as error:
            if len(str(error)) < 15 or not _ours(error):
                return f"{name}, call {number}: {type(error).__name__}: {error}"
            continue
        if fault:
            return f"{what}: {fault} (call {number})"
    return ""


def _ours(error: BaseException) -> bool:
    """Return whether a statement of Argand raised an error, not what it called, such as NumPy."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    file = trace.tb_frame.f_code.co_filename
    return "/argand/" in file and linecache.getline(file, trace.tb_lineno).strip().startswith(
        "raise"
    )

"""Calls of an instrument's operations with nasty data, beside their references in fp64."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import argand
import numpy as np
from argand import Precision
from argand.beam_power.problem import beam_power_problem
from argand.channelise.prototype import prototype
from argand.hermitian.bounds import residual_bound
from argand.spectrum.problem import spectrum_problem
from argand.spectrum.window import window_of

from benchmarks.attack import nasty
from benchmarks.attack.nasty import Array, Rng, Verdict
from workflow.accuracy.beam_power_accuracy import assess_beam_power, beam_power_reference
from workflow.accuracy.channelise_accuracy import assess_channelise, channelise_reference
from workflow.accuracy.image_accuracy import assess_image, image_reference
from workflow.accuracy.matrix_product_accuracy import assess_product
from workflow.accuracy.references import product_reference
from workflow.accuracy.spectra_accuracy import assess_spectra, spectra_reference

_KINDS = ("complex64", "complex128", "float32", "float64", "int16")


def _leading(rng: Rng) -> tuple[int, ...]:
    return [(), (0,), (1,), (2,), (3, 1)][int(rng.integers(5))]


def _largest(precision: Precision, single: float) -> float:
    """Return a magnitude of numbers whose results stay in the range of the precision."""
    return single**8 if precision.output == "complex128" else single


def _one_of(rng: Rng, *words: str) -> Any:
    """Return one of some words, of whichever Literal they are."""
    return str(rng.choice(words))


def _shape(got: Array, shape: tuple[int, ...]) -> Verdict:
    return "" if got.shape == shape else f"the shape is {got.shape} instead of {shape}"


def herk(rng: Rng) -> tuple[str, Verdict]:
    """Try alpha op(a) op(a)^H + beta c, Hermitian to the bit, of the lower half of C alone."""
    precision, leading = nasty.any_precision(rng), _leading(rng)
    n, k = (int(rng.choice(nasty.LENGTHS)) for _ in range(2))
    op, form = _one_of(rng, "N", "T", "C"), _one_of(rng, "full", "triangle")
    large = _largest(precision, 1e16)
    shape = (*leading, *((n, k) if op == "N" else (k, n)))
    a = nasty.numbers(rng, shape, str(rng.choice(_KINDS)), large)
    alpha, beta = float(rng.choice([1, 1, 0, -2.5])), float(rng.choice([0, 0, 1, 0.5]))
    way, a = nasty.arranged(rng, a)
    made = (*leading, n, n) if form == "full" else (*leading, n * (n + 1) // 2)
    where, a, out = nasty.target(rng, a, made, precision.output)
    what = f"herk {precision.name} {op}{a.shape}{a.dtype} {way}, alpha {alpha}, beta {beta}, "
    what += f"{form}, {where}"
    given = c = None
    rows, columns = np.tril_indices(n)
    if beta:
        lower = np.tril(nasty.numbers(rng, (*leading, n, n), precision.output, large))
        with np.errstate(all="ignore"):
            c = lower + np.tril(lower, -1).conj().swapaxes(-1, -2)
        c[..., np.arange(n), np.arange(n)] = c[..., np.arange(n), np.arange(n)].real
        given = np.where(np.tri(n, dtype=bool), lower, np.nan).astype(precision.output)
        given = given if form == "full" else given[..., rows, columns]
    truth = a.copy()
    x = truth if op == "N" else truth.swapaxes(-1, -2)
    x = x.conj() if op == "C" else x
    reference = product_reference(x, x, c, alpha=alpha, beta=beta, op_b="C")
    got = argand.herk(a, given, alpha=alpha, beta=beta, op=op, precision=precision,
                      form=form, out=out)  # fmt: skip
    if out is not None and got is not out:
        return what, "out is not what is returned"
    if form == "triangle":
        square = np.zeros((*leading, n, n), got.dtype)
        square[..., rows, columns] = got
        square[..., columns, rows] = got.conj()
        square[..., np.arange(n), np.arange(n)] = got[..., rows == columns]
        got = square
    diagonal = np.einsum("...ii->...i", got).imag
    if diagonal.any() and not np.isnan(diagonal).any():
        return what, "a diagonal is not real"
    if not np.array_equal(got, got.conj().swapaxes(-1, -2), equal_nan=True):
        return what, "not Hermitian"
    return what, nasty.verdict(assess_product(reference, got, precision, backend="cpu"))


def beam_power(rng: Rng) -> tuple[str, Verdict]:
    """Try power and Stokes parameters of beams, also of pairs of int8."""
    precision, leading = nasty.any_precision(rng), _leading(rng)
    beams, antennas = (int(rng.choice(nasty.LENGTHS)) for _ in range(2))
    integrate = int(rng.choice([1, 2, 7, 16]))
    times = int(rng.choice([0, 1, 5, 16, 33, 100]))
    detect = _one_of(rng, "power", "stokes")
    outer = (*leading, 2) if detect == "stokes" else leading
    large = _largest(precision, 1e8)
    w = nasty.numbers(rng, (*outer, beams, antennas), str(rng.choice(_KINDS)), large)
    x = nasty.numbers(rng, (*outer, antennas, times), str(rng.choice(_KINDS)), large)
    (way_w, w), (way_x, x) = nasty.arranged(rng, w), nasty.arranged(rng, x)
    problem = beam_power_problem(
        w.shape, x.shape, detect=detect, integrate=integrate, precision=precision,
    )  # fmt: skip
    out = np.full(problem.shape, np.nan, precision.real_output) if rng.random() < 0.5 else None
    what = f"beam_power {precision.name} {w.shape}{w.dtype} {way_w} by {x.shape}{x.dtype} {way_x} "
    what += f"{detect} of {integrate}"
    got = argand.beam_power(
        w, x, detect=detect, integrate=integrate, precision=precision, out=out,
    )  # fmt: skip
    if not got.size:
        return what, _shape(got, problem.shape)
    reference = beam_power_reference(problem, w, x)
    return what, nasty.verdict(assess_beam_power(reference, got, precision, backend="cpu"))


def channelise(rng: Rng) -> tuple[str, Verdict]:
    """Try filter banks, oversampled or not, of real and complex samples."""
    precision, leading = nasty.any_precision(rng), _leading(rng)
    channels, taps = int(rng.choice([2, 3, 8, 12, 37, 64])), int(rng.choice([1, 2, 8]))
    oversampling = Fraction(str(rng.choice(["1", "2", "4/3"]))) if channels % 4 == 0 else 1
    samples = channels * taps + int(rng.integers(-2, 3 * channels))
    x = nasty.numbers(rng, (*leading, samples), str(rng.choice(_KINDS)), _largest(precision, 1e16))
    way, x = nasty.arranged(rng, x)
    what = f"channelise {precision.name} {x.shape}{x.dtype} {way} to {channels} by {taps}, "
    what += f"oversampled {oversampling}"
    got = argand.channelise(
        x, channels, taps, oversampling=oversampling, precision=precision
    )  # fmt: skip
    if not got.size:
        hop = int(channels / Fraction(oversampling))
        spectra = max(0, (samples - channels * taps) // hop + 1)
        bins = channels if x.dtype.kind == "c" else channels // 2 + 1
        return what, _shape(got, (*leading, spectra, bins))
    reference = channelise_reference(
        x, prototype("hamming", channels, taps), channels, Fraction(oversampling)
    )
    shaped = got.reshape(reference.values.shape)
    return what, nasty.verdict(assess_channelise(reference, shaped, precision, backend="cpu"))


def spectrum(rng: Rng) -> tuple[str, Verdict]:
    """Return the means of power over segments, with and without trends."""
    precision, leading = nasty.any_precision(rng), _leading(rng)
    length = int(rng.choice([1, 2, 3, 8, 16, 37, 64]))
    options: dict[str, Any] = {
        "overlap": int(rng.integers(0, length)), "average": [1, 2, "all"][int(rng.integers(3))],
        "detrend": [None, None, "constant", "linear"][int(rng.integers(4))],
        "scaling": str(rng.choice(["density", "spectrum"])),
    }  # fmt: skip
    samples = max(0, length + int(rng.integers(-2, 3 * length)))
    x = nasty.numbers(rng, (*leading, samples), str(rng.choice(_KINDS)), _largest(precision, 1e15))
    way, x = nasty.arranged(rng, x)
    what = f"spectrum {precision.name} {x.shape}{x.dtype} {way} by {length} {options}"
    scaling = options["scaling"]
    problem = spectrum_problem(
        x.shape, length=length, overlap=options["overlap"], average=options["average"],
        real=x.dtype.kind != "c", onesided=None, precision=precision, detrend=options["detrend"],
    )  # fmt: skip
    window = window_of("hann" if length > 2 else "boxcar", length)
    got = argand.spectrum(x, length, window=window, precision=precision, **options)
    if not got.size:
        return what, _shape(got, problem.shape)
    reference = spectra_reference(x, window, problem, scaling=scaling, sample_rate=1.0)
    shaped = got.reshape(reference.power.shape)
    return what, nasty.verdict(assess_spectra(reference, shaped, precision, backend="cpu"))


def image(rng: Rng) -> tuple[str, Verdict]:
    """Try power over directions of Hermitian matrices."""
    precision = nasty.any_precision(rng)
    images, channels, antennas = (int(rng.choice([1, 2, 3, 8, 17])) for _ in range(3))
    shape = (images, channels, antennas, antennas)
    r = nasty.numbers(rng, shape, str(rng.choice(_KINDS[:4])), _largest(precision, 1e16))
    with np.errstate(all="ignore"):
        lower = np.tril(r, -1)
        r = lower + lower.conj().swapaxes(-1, -2) + np.tril(np.triu(r.real)).astype(r.dtype)
    way, r = nasty.arranged(rng, r.astype(lower.dtype))
    positions = rng.normal(0, 100, (antennas, 3))
    positions -= positions.mean(axis=0)
    lm = rng.uniform(-0.7, 0.7, (int(rng.choice([1, 5, 64])), 2))
    directions = np.column_stack([lm, np.sqrt(1 - np.square(lm).sum(axis=1))])
    frequencies = np.linspace(1e8, 2e8, channels)
    what = f"image {precision.name} {r.shape}{r.dtype} {way} to {len(lm)}"
    got = argand.image(r, positions, frequencies, directions, precision=precision)
    reference = image_reference(
        r[:, None], positions, frequencies, directions, (1, len(directions))
    )
    shaped = got.reshape(reference.power.shape)
    return what, nasty.verdict(assess_image(reference, shaped, precision, backend="cpu"))


def solve_hermitian(rng: Rng) -> tuple[str, Verdict]:
    """Try definite systems and others, scaled by powers of two as far as their type goes."""
    systems, n, columns = (int(rng.choice([1, 2, 3, 8, 17])) for _ in range(3))
    dtype = str(rng.choice(["complex64", "complex128"]))
    kind = np.dtype(dtype)
    v = rng.standard_normal((systems, n, n + 3, 2)).view(complex)[..., 0]
    scale = 2.0 ** int(rng.integers(-30, 31) if dtype == "complex64" else rng.integers(-300, 301))
    r = (scale * (v @ v.conj().swapaxes(-1, -2))).astype(kind)
    b = nasty.numbers(rng, (systems, n, columns), dtype, 1e8)
    spoiled = int(rng.integers(systems)) if rng.random() < 0.3 else None
    if spoiled is not None:
        r[spoiled, n - 1, n - 1] = rng.choice([np.nan, np.inf, -1.0, 0.0])
    truth = np.where(np.tri(n, dtype=bool), r, 0)
    truth = truth + np.tril(truth, -1).conj().swapaxes(-1, -2)
    r = np.where(np.tri(n, dtype=bool), r, np.nan).astype(kind)  # the rest is not read
    (way_r, r), (way_b, b) = nasty.arranged(rng, r), nasty.arranged(rng, b)
    where, b, out = nasty.target(rng, b, b.shape, dtype)
    what = f"solve_hermitian {r.shape}{dtype} {way_r}, {b.shape} {way_b}, {where}"
    info, right = np.full(systems, -1, np.int32), b.astype(complex)
    x = argand.solve_hermitian(r, b, out=out, info=info).astype(complex)
    expected = np.zeros(systems, bool)
    expected[[] if spoiled is None else spoiled] = True
    if not np.array_equal(info != 0, expected):
        return what, f"info is {info} where {expected} is not definite"
    lost = np.isnan(x).all(axis=(-1, -2))
    if not lost[expected].all():
        return what, "x of a matrix that is not definite is not NaN"
    known = ~expected & np.isfinite(right).all(axis=(-1, -2)) & np.isfinite(x).all(axis=(-1, -2))
    if not known[~expected & np.isfinite(right).all(axis=(-1, -2))].all() and scale > 1e-5:
        return what, "x is not finite where its system is"
    r, right, x = truth[known].astype(complex), right[known], x[known]
    off = np.linalg.norm(right - r.astype(np.clongdouble) @ x.astype(np.clongdouble), axis=-2)
    tiny = float(np.finfo(kind).tiny) * n * (1 + np.abs(r).max(initial=0))
    excess = off / (residual_bound(r, right, x, dtype) + tiny)
    worst = float(excess.max(initial=0))
    return what, "" if worst <= 1 else f"a residual is {worst:.3g} times its bound"


def readout(rng: Rng) -> tuple[str, Verdict]:
    """Try marginals, expectation values and counts of states, beside sums in fp64."""
    qubits = int(rng.integers(1, 8))
    dtype = str(rng.choice(["complex64", "complex128"]))
    state = nasty.numbers(rng, (1 << qubits,), dtype, 1e100 if dtype == "complex128" else 1e16)
    before, order = state.copy(), [int(qubit) for qubit in rng.permutation(qubits)]
    some = order[: int(rng.integers(1, qubits + 1))]
    letters = ["".join(rng.choice(list("IXYZ"), qubits)) for _ in range(3)]
    what = f"readout of {some} and {letters} on {qubits} qubits of {dtype}"
    with np.errstate(all="ignore"):
        squares = np.square(np.abs(before.astype(complex)))
        total = float(squares.sum())
    places = sum(((np.arange(len(state)) >> q) & 1) << bit for bit, q in enumerate(some))
    exact = np.bincount(places, squares, 1 << len(some))
    allowed = 2.0**-50 * len(state) * float(squares[np.isfinite(squares)].sum())
    if np.isfinite(total) and total > 0:
        counts = argand.sample(state, 100, seed=1, qubits=some)
        if int(np.sum(counts.counts)) != 100 or not (exact[counts.outcomes] > 0).all():
            return what, f"counts {counts}"
    else:
        try:
            argand.sample(state, 100, seed=1)
            return what, "a state without a finite norm was measured"
        except ValueError:
            pass
    found, known = argand.probabilities(state, some), np.isfinite(exact)
    misplaced = (np.isfinite(found) != known).any()
    if misplaced or (np.abs(found[known] - exact[known]) > allowed).any():
        return what, f"probabilities {found} instead of {exact}"
    values = argand.expectation(state, letters)
    for value, pauli in zip(values, letters, strict=True):
        with np.errstate(all="ignore"):
            wanted = float(np.vdot(before.astype(complex), _turned(before, pauli)).real)
        if np.isfinite(total) and not abs(value - wanted) <= allowed:
            return what, f"{pauli} is {value} instead of {wanted}"
        if not np.isfinite(total) and np.isfinite(value):
            return what, f"{pauli} of a state without a finite norm is {value}"
    return what, "" if np.array_equal(state, before, equal_nan=True) else "the state was changed"


def _turned(state: Array, pauli: str) -> Array:
    """Return P |state>, a letter at a time."""
    found, places = state.astype(complex), np.arange(len(state))
    for qubit, letter in enumerate(reversed(pauli)):
        bit = places >> qubit & 1
        if letter in "XY":
            found = found[places ^ (1 << qubit)]
        if letter == "Z":
            found = np.where(bit, -found, found)
        if letter == "Y":
            found = np.where(bit, 1j, -1j) * found
    return found


FUNCTIONS = {
    "herk": herk, "beam_power": beam_power, "channelise": channelise, "spectrum": spectrum,
    "image": image, "solve_hermitian": solve_hermitian, "readout": readout,
}  # fmt: skip
"""Functions that draw a call and judge its result, by operation."""

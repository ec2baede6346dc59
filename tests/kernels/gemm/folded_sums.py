"""Folded transforms as tensor cores sum them: the GPU's tables, order and truncation.

The CPU backend rounds and splits as kernels do but leaves sums to BLAS, which does not truncate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from argand import PRECISIONS
from argand.dft.cpu import HEADROOM
from argand.dft.fragments import fragments
from argand.dft.hankel import HankelPlan, core_matrix_table, gather_offsets
from argand.dft.plan import DensePlan, Plan
from argand.rounding import power_of_two, scale_exponents, split

from tests.kernels.tensor_core_sums import added

Array = npt.NDArray[Any]
ROW = PRECISIONS["3xfp16"]
MMA_K = 16
TABLE = 2.0**ROW.operand.scaled_exponent


@dataclass(frozen=True)
class Folded:
    """The products of a kernel: the elements that it loads and stores, and its tables.

    Attributes:
        taken, given: (K,) and (N,) of 1 to L - 1; numbers from `half` on are zeros.
        cosines, sines: terms of (K, N), times `TABLE`.
        undone: (N,) factors of the sums, which remove bias compensation that is too much.
        promotion: the k-tile before whose high-order products sums are promoted; 0: never. Their
            compensation is ``too_much``, relatively.
    """

    taken: Array
    given: Array
    cosines: list[Array]
    sines: list[Array]
    undone: Array
    promotion: int = 0
    too_much: float = 0.0


def folded(plan: Plan) -> Folded:
    """The folded product of a plan with one, or of the first row copy of a Hankel plan."""
    return _hankel(plan) if isinstance(plan, HankelPlan) else _dense(plan)


def _dense(plan: Plan) -> Folded:
    assert isinstance(plan, DensePlan)
    half = plan.length // 2
    words = fragments(plan.length, plan.warps, ROW)
    slices, tiles = words.shape[:2]
    found = np.zeros((4, slices * MMA_K, tiles * 8))
    numbers = words.view(np.float16).astype(float)  # (slices, tiles, terms, lanes, 8)
    for lane in range(32):
        n = 8 * np.arange(tiles) + lane // 4 // 2 + 4 * (lane // 4 % 2)
        for term in range(2):
            for j in range(4):
                k = MMA_K * np.arange(slices) + lane % 4 + 4 * j
                for which in range(2):
                    found[2 * which + term][np.ix_(k, n)] = numbers[:, :, term, lane, 4 * which + j]
    order = 1 + np.arange(half)
    terms = [matrix[:, :half] for matrix in found]
    return Folded(order, order, terms[:2], terms[2:], np.ones(half))


def _hankel(plan: HankelPlan) -> Folded:
    half, tiles = plan.length // 2, core_matrix_table(plan, ROW).view(np.float16).astype(float)
    blocks = plan.warpgroups * plan.columns // 8
    terms = [
        np.block([[term[k + n].T for n in range(blocks)] for k in range(2 * plan.num_k_tiles)])
        for term in tiles
    ]
    where, shift = gather_offsets(plan).astype(int) // 8, min(plan.columns_per_copy, half)
    eights = blocks - 1 - np.arange(shift) // 8
    return Folded(
        where[plan.columns_before_last_copy :][:half],
        where[plan.columns_before_last_copy :][:shift],
        [term[:, :shift] for term in terms[:2]], [term[:, :shift] for term in terms[2:]],
        (1 - 8 * plan.bias_step(ROW) * eights).astype(np.float32).astype(float),
        plan.promotion_k_tile(ROW),
        MMA_K * (plan.num_k_tiles - plan.promotion_k_tile(ROW)) * plan.bias_step(ROW),
    )  # fmt: skip


def transformed(x: Array, plan: Plan) -> tuple[Array, Array]:
    """Which of each row's numbers are found, and these: x is (rows, L) of complex64."""
    made, length = folded(plan), x.shape[1]
    exponent = scale_exponents(x, -1, ROW.operand) - HEADROOM
    given = x * power_of_two(exponent)
    low, high = given[:, made.taken], given[:, length - made.taken]
    p, q = (
        _sums(part, terms, made)
        for part, terms in ((low + high, made.cosines), (low - high, made.sines))
    )
    # Of odd lengths: X_n and X_(L-n) from P and Q.
    below, above = (
        given[:, :1] + both.astype(np.complex64) * (made.undone / TABLE)
        for both in (p - 1j * q, p + 1j * q)
    )
    found = np.concatenate([below, above], axis=1) * power_of_two(-exponent).astype(float)
    return np.concatenate([made.given, length - made.given]), found.astype(np.complex64)


def _sums(x: Array, terms: list[Array], made: Folded) -> Array:
    parts = [_real_sums(part, terms, made) for part in (x.real, x.imag)]
    return np.asarray(parts[0] + 1j * parts[1])


def _real_sums(x: Array, terms: list[Array], made: Folded) -> Array:
    """Low-order products of all k-tiles, then high-order ones."""
    depth = terms[0].shape[0]
    padded = np.zeros((len(x), depth), np.float32)
    padded[:, : x.shape[1]] = x
    own = [term.astype(float) for term in split(padded, ROW)]
    slices = [slice(start, start + MMA_K) for start in range(0, depth, MMA_K)]
    sums, promoted = np.zeros((2, len(x), terms[0].shape[1]))
    for k in slices:
        sums = added(sums, own[1][:, k], terms[0][k])
        sums = added(sums, own[0][:, k], terms[1][k])
    for index, k in enumerate(slices):
        if made.promotion and index == made.promotion:
            promoted = _powers_of_four(sums)
            sums = sums - promoted
        sums = added(sums, own[0][:, k], terms[0][k])
    return np.asarray((promoted * (1 - made.too_much) + sums).astype(np.float32).astype(float))


def _powers_of_four(x: Array) -> Array:
    """Twice the one below each number, with its sign: the first byte of fp32."""
    bits = x.astype(np.float32).view(np.uint32) & np.uint32(0xFF000000) | np.uint32(0x00800000)
    return bits.view(np.float32).astype(float)

"""The folded matrices as the kernels' lanes read them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from argand.dft.cpu import table_exponent
from argand.dft.plan import depth, folded_tiles
from argand.dft.registers import WARP
from argand.dft.tables import folded_matrices, roots
from argand.dft.truncation import cut_of
from argand.precision import FP16, TF32, Precision
from argand.rounding import Array, split


@lru_cache(maxsize=64)
def fragments(length: int, warps: int, precision: Precision) -> npt.NDArray[np.uint32]:
    """(slices, tiles, terms, lanes, 4) words of 32 bits; see ``cuda/dft/folded_product.cuh``.

    Of each term a lane has two words of the cosines, then two of the sines. Slices are larger by
    what will be cut of their large products, by their own instruction and by those after it.
    """
    half, step = length // 2, depth(precision)
    slices, tiles = -(-half // step), folded_tiles(length, warps) * warps
    lane = np.arange(WARP)
    column, t = lane // 4, lane % 4
    n = (8 * np.arange(tiles)[:, None] + (column // 2 + 4 * (column % 2))[None, :]).ravel()
    # Which k stand in a lane's two words, in order.
    k = np.arange(slices)[:, None, None] * step + t[:, None] + 4 * np.arange(step // 4)
    given = 1 + cut_of(precision) * (slices - np.arange(slices)).repeat(step)[:half, None]
    words = []
    for matrix in folded_matrices(length):
        whole = np.zeros((slices * step, tiles * 8))
        whole[:half, :half] = matrix * given
        scaled = np.ldexp(whole, table_exponent(precision))
        held = [
            term[k[:, None], n.reshape(tiles, WARP)[None, :, :, None]]
            for term in split(scaled, precision)
        ]
        words.append(np.stack([_words(term, precision) for term in held], axis=2))
    return np.ascontiguousarray(np.concatenate(words, axis=-1))


@lru_cache(maxsize=64)
def fused_twiddles(
    first: int, second: int, tile_rows: int, *, inverse: bool = False
) -> tuple[Array, Array]:
    """W_N^(n2 k1) as the lanes of the first stage need them, and W_N2^n2 for the mirrored k1.

    (tile rows, tiles, rows, lanes, 2) and (16 tile rows,), complex64; see
    ``cuda/dft/two_factor_stages.cuh``.
    """
    tiles, lane = folded_tiles(first, 1), np.arange(WARP)
    n = (
        16 * np.arange(tile_rows)[:, None, None, None, None]
        + 8 * np.arange(2)[:, None, None]
        + (lane // 4)[:, None]
    )
    k = 8 * np.arange(tiles)[:, None, None, None] + 1 + (lane % 4)[:, None] + 4 * np.arange(2)
    together = roots(n * k, first * second, inverse=inverse).astype(np.complex64)
    turns = roots(np.arange(16 * tile_rows), second, inverse=inverse).astype(np.complex64)
    return np.ascontiguousarray(together), turns


def _words(values: Array, precision: Precision) -> npt.NDArray[np.uint32]:
    """Numbers that a precision holds exactly, as registers hold them."""
    single = np.ascontiguousarray(values, np.float32)
    if precision.operand is TF32:
        return single.view(np.uint32)
    if precision.operand is FP16:
        return single.astype(np.float16).view(np.uint32)
    return (single.view(np.uint32) >> 16).astype(np.uint16).view(np.uint32)

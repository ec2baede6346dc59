"""The folded matrices as fragments of tensor-core operands. Needs no GPU."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from argand.dft.cpu import table_exponent
from argand.dft.plan import folded_tiles
from argand.dft.tables import folded_matrices, roots
from argand.dft.truncation import truncation_bias
from argand.multiprocessor import WARP
from argand.precision import Precision
from argand.rounding import Array, encode, split


@lru_cache(maxsize=64)
def fragments(length: int, warps: int, precision: Precision) -> npt.NDArray[np.uint32]:
    """Return words (num_k_tiles, tiles, terms, lanes, 4) of 32 bits for folded_product.cuh.

    A lane has two words of the cosines and two of the sines of each term. Bias compensation: each
    k-tile is enlarged by the average truncation of its products by its own MMA and those after it.
    """
    half, mma_k = length // 2, precision.operand.mma_k
    num_k_tiles, tiles = -(-half // mma_k), folded_tiles(length, warps) * warps
    lane = np.arange(WARP)
    column, t = lane // 4, lane % 4
    n = (8 * np.arange(tiles)[:, None] + (column // 2 + 4 * (column % 2))[None, :]).ravel()
    # The k of a lane's two words, in order.
    k = np.arange(num_k_tiles)[:, None, None] * mma_k + t[:, None] + 4 * np.arange(mma_k // 4)
    compensation = (
        1
        + truncation_bias(precision)
        * (num_k_tiles - np.arange(num_k_tiles)).repeat(mma_k)[:half, None]
    )
    words = []
    for matrix in folded_matrices(length):
        whole = np.zeros((num_k_tiles * mma_k, tiles * 8))
        whole[:half, :half] = matrix * compensation
        scaled = np.ldexp(whole, table_exponent(precision))
        held = [
            term[k[:, None], n.reshape(tiles, WARP)[None, :, :, None]]
            for term in split(scaled, precision)
        ]
        packed = [encode(term, precision.operand).view(np.uint32) for term in held]
        words.append(np.stack(packed, axis=2))
    return np.ascontiguousarray(np.concatenate(words, axis=-1))


@lru_cache(maxsize=64)
def fused_twiddles(
    first: int, second: int, tile_rows: int, *, inverse: bool = False
) -> tuple[Array, Array]:
    """Return W_N^(n2 k1) in the order of the first stage's lanes, and W_N2^n2 for mirrored k1.

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
    twiddles = roots(n * k, first * second, inverse=inverse).astype(np.complex64)
    mirrored = roots(np.arange(16 * tile_rows), second, inverse=inverse).astype(np.complex64)
    return np.ascontiguousarray(twiddles), mirrored

"""Triton's kernel of the peer `triton_planar`, its operands, and the choice of its configuration.

Planes are split, rounded, padded to whole tiles, so that no load or store has a mask, and B's laid
with k contiguous. The fastest of a handful of configurations is taken for each shape and precision.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import partial
from typing import Any

import cupy
import torch
import triton
import triton.language as tl
from triton.errors import TritonError

from benchmarks.peers._peer import CannotRunError, seconds_to_choose_by

_INPUT_PRECISION = {"tf32": "tf32", "3xtf32": "tf32x3", "fp16": "ieee"}
_GROUP = 8
"""Rows of tiles that are taken together, so that tiles that share columns meet in L2."""


@dataclass(frozen=True)
class Tile:
    """A configuration: the tile of a block, its depth along k, stages and warps.

    ``apart``: ai bi has an accumulator of its own, subtracted at the end; else ai is negated in
    registers, which saves the accumulator but takes ai from shared memory by way of them.
    """

    m: int
    n: int
    k: int
    stages: int
    warps: int
    apart: bool

    def __str__(self) -> str:
        """Return the plan for the column of algorithms."""
        sign = "ai bi apart" if self.apart else "ai negated"
        return f"{self.m}x{self.n}x{self.k}, {self.stages} stages, {self.warps} warps, {sign}"


_BOTH = (False, True)
_TILES = {
    "tf32": (
        *(Tile(128, 128, 32, 3, 8, apart) for apart in _BOTH),
        *(Tile(128, 64, 32, 3, 4, apart) for apart in _BOTH),
        *(Tile(128, 64, 32, 4, 8, apart) for apart in _BOTH),
        Tile(128, 128, 32, 2, 8, True),
        Tile(64, 128, 32, 3, 4, True),
    ),
    # Each split operand takes registers: other tiles spill a kilobyte or more a thread.
    "3xtf32": (
        *(Tile(128, 64, 32, 3, 8, apart) for apart in _BOTH),
        *(Tile(128, 64, 32, 4, 8, apart) for apart in _BOTH),
        *(Tile(128, 64, 16, 4, 8, apart) for apart in _BOTH),
        *(Tile(64, 64, 16, 4, 4, apart) for apart in _BOTH),
    ),
    "fp16": (
        *(Tile(128, 128, 64, 3, 8, apart) for apart in _BOTH),
        *(Tile(128, 128, 32, 3, 8, apart) for apart in _BOTH),
        *(Tile(128, 64, 64, 3, 4, apart) for apart in _BOTH),
        Tile(128, 128, 32, 4, 8, True),
        Tile(128, 64, 32, 3, 4, False),
    ),
}
"""Tiles that are tried on sm_90, few enough for a suite; none spills more than 8 bytes."""
_EVERY = [tile for tiles in _TILES.values() for tile in tiles]
_PAD_LINES = math.lcm(*(size for tile in _EVERY for size in (tile.m, tile.n)))
_PAD_K = math.lcm(*(tile.k for tile in _EVERY))
"""Planes are padded to multiples of these, whole tiles of each configuration."""


@triton.jit  # type: ignore[untyped-decorator]
def _product(  # type: ignore[no-untyped-def]
    a_re, a_im, b_re, b_im, c_re, c_im, m, n, k, mode: tl.constexpr, apart: tl.constexpr,
    block_m: tl.constexpr, block_n: tl.constexpr, block_k: tl.constexpr, group: tl.constexpr,
):  # fmt: skip
    tiles_m, tiles_n = m // block_m, n // block_n
    first = tl.program_id(0) // (group * tiles_n) * group
    place = tl.program_id(0) % (group * tiles_n)
    height = min(tiles_m - first, group)
    rows = (first + place % height) * block_m + tl.arange(0, block_m)
    columns = place // height * block_n + tl.arange(0, block_n)
    ks = tl.arange(0, block_k)
    a_at = rows[:, None] * k + ks[None, :]
    b_at = columns[None, :] * k + ks[:, None]
    re = tl.zeros((block_m, block_n), tl.float32)
    im = tl.zeros((block_m, block_n), tl.float32)
    both_im = tl.zeros((block_m, block_n), tl.float32)
    for _ in range(0, k, block_k):
        ar, ai = tl.load(a_re + a_at), tl.load(a_im + a_at)
        br, bi = tl.load(b_re + b_at), tl.load(b_im + b_at)
        re = tl.dot(ar, br, re, input_precision=mode)
        im = tl.dot(ar, bi, im, input_precision=mode)
        if apart:
            both_im = tl.dot(ai, bi, both_im, input_precision=mode)
        else:
            re = tl.dot(-ai, bi, re, input_precision=mode)
        im = tl.dot(ai, br, im, input_precision=mode)
        a_at += block_k
        b_at += block_k
    if apart:
        re -= both_im
    c_at = rows[:, None] * n + columns[None, :]
    tl.store(c_re + c_at, re)
    tl.store(c_im + c_at, im)


_WRONG = 0.02
"""A relative difference that no rounding makes: tf32 and fp16 are below 0.002."""
_CHOSEN: dict[tuple[str, tuple[int, int, int]], Tile] = {}
"""The fastest for each precision and padded (m, n, k): the copies of a candidate share it."""


def prepare(precision: str, a: Any, b: Any) -> tuple[Any, ...]:
    """Return the tile, the planes of A (m, k), B (n, k) and C (m, n), padded, and C's size.

    Raises CannotRunError for a batch, for planes of 2^31 elements, and where no configuration runs.
    """
    if a.ndim != 2:
        raise CannotRunError("this kernel multiplies two matrices, not a batch of them")
    left, right = _planes(precision, a), _planes(precision, b.T)
    (m, k), n = left[0].shape, right[0].shape[0]
    if max(m * k, n * k, m * n) > 2**31 - 1:
        raise CannotRunError("this kernel addresses planes by 32 bits")
    out = torch.full((2, m, n), float("nan"), device="cuda").unbind()
    if (precision, (m, n, k)) not in _CHOSEN:
        _CHOSEN[precision, (m, n, k)] = _fastest(precision, left, right, out)
    return _CHOSEN[precision, (m, n, k)], left, right, out, (a.shape[0], b.shape[1])


def _planes(precision: str, x: Any) -> tuple[Any, Any]:
    """Return real and imaginary part of complex64 (lines, k), with zeros up to whole tiles."""
    dtype = torch.float16 if precision == "fp16" else torch.float32
    lines, k = (
        -(-size // step) * step for size, step in zip(x.shape, (_PAD_LINES, _PAD_K), strict=True)
    )
    planes = torch.zeros((2, lines, k), dtype=dtype, device="cuda")
    planes[:, : x.shape[0], : x.shape[1]] = torch.view_as_real(torch.from_dlpack(x)).permute(
        2, 0, 1
    )
    re, im = planes.unbind()
    return re, im


def _fastest(precision: str, a: Any, b: Any, out: Any) -> Tile:
    """Return the fastest of those that fit the card and whose result is right.

    Triton 3.6 compiles some of them to kernels whose imaginary part is wrong. Raises CannotRunError
    where none is left.
    """
    times: dict[Tile, float] = {}
    refused = []
    exact = _exact(a, b)
    for tile in _TILES[precision]:
        for part in out:
            part.fill_(float("nan"))
        try:
            seconds = seconds_to_choose_by(partial(_multiply, precision, tile, a, b, out))
        except TritonError as error:
            refused.append(f"{tile}: {error}")
            continue
        wrong = max(_difference(*pair) for pair in zip(out, exact, strict=True))
        if wrong <= _WRONG:
            times[tile] = seconds
        else:
            refused.append(f"{tile}: compiled to a wrong result, off by {wrong:.2g}")
    if refused:
        print(*refused, sep="\n", file=sys.stderr)
    if not times:
        raise CannotRunError("; ".join(refused))
    return min(times, key=times.__getitem__)


def _exact(a: Any, b: Any) -> tuple[Any, Any]:
    """Return both parts of the product, by torch in fp32."""
    (ar, ai), (br, bi) = ([x.float() for x in pair] for pair in (a, b))
    return ar @ br.T - ai @ bi.T, ar @ bi.T + ai @ br.T


def _difference(found: Any, exact: Any) -> float:
    """Return Frobenius norm of the difference over that of the product; NaN becomes infinity."""
    ratio = float((found - exact).norm() / exact.norm())
    return math.inf if math.isnan(ratio) else ratio


def _multiply(precision: str, tile: Tile, a: Any, b: Any, out: Any) -> None:
    (m, k), n = a[0].shape, b[0].shape[0]
    _product[(m // tile.m * (n // tile.n),)](
        *a, *b, *out, m, n, k, _INPUT_PRECISION[precision], tile.apart,
        tile.m, tile.n, tile.k, _GROUP, num_stages=tile.stages, num_warps=tile.warps,
    )  # fmt: skip


def compute(
    precision: str, tile: Tile, a: Any, b: Any, out: Any, size: tuple[int, int]
) -> tuple[Any, tuple[int, int]]:
    """Return the product of what `prepare` made: planes of C, padded, and C's size."""
    _multiply(precision, tile, a, b, out)
    return out, size


def joined(computed: tuple[Any, tuple[int, int]]) -> Any:
    """Return complex64 (m, n) in CuPy of padded planes."""
    (re, im), (m, n) = computed
    return cupy.from_dlpack(torch.complex(re, im))[:m, :n]

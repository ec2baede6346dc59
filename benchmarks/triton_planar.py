"""A peer: a complex product in Triton on planar operands, four real dots into two accumulators.

The planes (and at fp16 their conversion) are made before the clock starts, which favours it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import cupy
import torch
import triton
import triton.language as tl
from argand import get_precision

from benchmarks.gemm_ours import unscaled
from benchmarks.measuring import Candidate, CannotRunError

# block m, n, k, stages, warps: the fastest of a search on an H200.
_TILES = {"tf32": (128, 64, 32, 3, 4), "3xtf32": (128, 64, 32, 3, 8), "fp16": (128, 128, 32, 3, 8)}
_INPUT_PRECISION = {"tf32": "tf32", "3xtf32": "tf32x3", "fp16": "ieee"}
# At tf32 the tensor cores get the bits of fp32 and drop the low ones; tf32x3 rounds its terms.
_PRECISIONS = {
    "tf32": get_precision("tf32", "toward_zero"),
    "3xtf32": get_precision("3xtf32"),
    "fp16": unscaled(get_precision("fp16")),
}


@triton.jit  # type: ignore[untyped-decorator]
def _product(  # type: ignore[no-untyped-def]
    a_re, a_im, b_re, b_im, out, m, n, k, mode: tl.constexpr,
    block_m: tl.constexpr, block_n: tl.constexpr, block_k: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * block_m + tl.arange(0, block_m)
    columns = tl.program_id(1) * block_n + tl.arange(0, block_n)
    steps = tl.arange(0, block_k)
    re = tl.zeros((block_m, block_n), tl.float32)
    im = tl.zeros((block_m, block_n), tl.float32)
    for start in range(0, k, block_k):
        inner = start + steps
        a_mask = (rows[:, None] < m) & (inner[None, :] < k)
        b_mask = (columns[None, :] < n) & (inner[:, None] < k)
        a_at = rows[:, None].to(tl.int64) * k + inner[None, :]
        b_at = columns[None, :].to(tl.int64) * k + inner[:, None]
        ar = tl.load(a_re + a_at, a_mask, 0.0)
        ai = tl.load(a_im + a_at, a_mask, 0.0)
        br = tl.load(b_re + b_at, b_mask, 0.0)
        bi = tl.load(b_im + b_at, b_mask, 0.0)
        re = tl.dot(ar, br, re, input_precision=mode)
        re = tl.dot(-ai, bi, re, input_precision=mode)
        im = tl.dot(ar, bi, im, input_precision=mode)
        im = tl.dot(ai, br, im, input_precision=mode)
    at = 2 * (rows[:, None].to(tl.int64) * n + columns[None, :])
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(out + at, re, mask)
    tl.store(out + at + 1, im, mask)


def candidates() -> list[Candidate]:
    """One for each precision; only products without a batch."""
    return [_candidate(name) for name in _TILES]


def _candidate(precision: str) -> Candidate:
    return Candidate(
        "triton", _PRECISIONS[precision], "planar 4M, planes made before the clock",
        partial(_prepare, torch.float16 if precision == "fp16" else torch.float32),
        partial(_compute, precision), cupy.from_dlpack, input="planar",
    )  # fmt: skip


def _prepare(dtype: Any, a: Any, b: Any) -> tuple[Any, ...]:
    if a.ndim != 2:
        raise CannotRunError("this kernel multiplies two matrices, not a batch of them")
    left, right = torch.from_dlpack(a), torch.from_dlpack(b).T
    planes = [part.contiguous().to(dtype) for x in (left, right) for part in (x.real, x.imag)]
    out = torch.full((a.shape[0], b.shape[1]), float("nan"), dtype=torch.complex64, device="cuda")
    return (*planes, out)


def _compute(precision: str, a_re: Any, a_im: Any, b_re: Any, b_im: Any, out: Any) -> Any:
    m, k = a_re.shape
    n = b_re.shape[0]
    block_m, block_n, block_k, stages, warps = _TILES[precision]
    grid = (triton.cdiv(m, block_m), triton.cdiv(n, block_n))
    _product[grid](
        a_re, a_im, b_re, b_im, torch.view_as_real(out), m, n, k, _INPUT_PRECISION[precision],
        block_m, block_n, block_k, num_stages=stages, num_warps=warps,
    )  # fmt: skip
    return out

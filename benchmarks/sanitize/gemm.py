"""Small ragged calls for compute-sanitizer: ``python -m benchmarks.sanitize.gemm tf32``.

Each array is an allocation of its own, so that an access beyond it is one beyond what is allocated.
Every result is verified against its bound, too. The exit status is 1 where one is outside.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np
from argand import PRECISIONS, Precision, gemm, pack, to_pairs
from argand.device import ARCHITECTURES, gpu
from argand.gemm.candidates import candidates
from argand.gemm.choice import GemmChoice
from argand.gemm.families import Family
from argand.gemm.fma.plan import fma_plans
from argand.gemm.operands import OPS
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.sm80.plan import CLUSTER_SIZES
from argand.gemm.sm80.tiles import mma_tiles
from argand.gemm.sm90 import plan as wgmma_plan
from argand.multiprocessor import CLUSTER_SM
from argand.runtime.plan import WGMMA_TARGET

from benchmarks.gemm.operands import random_operands
from benchmarks.gemm.shapes import Shape
from benchmarks.harness.samples import on_host
from benchmarks.peers import unscaled
from workflow.accuracy import Accuracy
from workflow.accuracy.matrix_product_accuracy import assess_product
from workflow.accuracy.references import product_reference

SHAPES = (
    Shape(1, 1, 1), Shape(7, 5, 3), Shape(65, 33, 17), Shape(129, 131, 67), Shape(200, 72, 260),
    Shape(1, 300, 40), Shape(300, 1, 40), Shape(64, 64, 1000), Shape(33, 20, 47, batch=3),
)  # fmt: skip
"""One-sized, prime, one line on either side, tall k, a batch; none a multiple of a tile."""
TILED = (
    (Shape(131, 139, 45), "N", "T"), (Shape(66, 34, 62), "C", "N"),
    (Shape(34, 20, 302, batch=3), "N", "N"),
)  # fmt: skip
"""A little more than a tile either way, and less than one; op_a and op_b.

The first has odd rows, and k is contiguous in both operands; in the second it is in neither, and
two numbers are one copy. Both have warps inside the matrix, and k-tiles inside k.
"""
HOPPER_SHAPES = (
    Shape(65, 34, 18), Shape(130, 132, 1100), Shape(34, 20, 46, batch=3), Shape(67, 35, 1101),
)  # fmt: skip
"""Ragged, with pitches that TMA reads, even and odd; two have a k for split-K and stream-K."""
SHORT = Shape(131, 69, 9, batch=2)
"""A k that the fma family takes, in several tiles of its largest plan."""
LONG = Shape(66, 34, 4500)
"""Products of split precisions whose accumulators, of a long k and its split-K slices, spill."""
WAVES = Shape(1540, 1500, 308)
"""More tiles than multiprocessors: overlapped epilogues, and stream-K splits of the last wave."""
SPILL_INTERVAL = 16
"""Stages between accumulator spills, for `gemm.sm90.plan.SPILL_INTERVAL`: the least that all tiles
allow, so that accumulators of these shapes are spilled."""
THROTTLE = (4, 1)
"""Stages between waits of the CTA throttle and its maximum lead, in place of `find_throttle`'s,
so that blocks wait wherever they may."""
_REPORT_SECONDS = 10
_ALPHA, _BETA = 2 - 1j, 0.5j
_SEED = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run all calls of one precision."""
    found = argparse.ArgumentParser(description=__doc__)
    found.add_argument("precision", choices=PRECISIONS)
    precision = PRECISIONS[found.parse_args(argv).precision]
    import cupy

    cupy.cuda.set_allocator(None)
    from argand.gemm.sm90 import launch as cuda_wgmma

    wgmma_plan.SPILL_INTERVAL = SPILL_INTERVAL
    cuda_wgmma.find_throttle = lambda *_: THROTTLE  # type: ignore[attr-defined]
    wrong, reported = 0, time.monotonic()
    calls = itertools.chain(
        products(precision, cupy), products_by_tile(precision), short_products(precision),
        hopper_products(precision), products_in_waves(precision),
    )  # fmt: skip
    for count, (name, accuracy) in enumerate(calls, 1):
        if time.monotonic() - reported > _REPORT_SECONDS:
            reported = time.monotonic()
            print(f"{precision.name}: {count} calls, the last {name}", flush=True)
        if not accuracy.verified:
            wrong += 1
            print(f"{name}: {accuracy.reason}")
    print(f"{precision.name}: {wrong} results outside their bound")
    return int(wrong > 0)


def products(precision: Precision, arrays: Any) -> Iterator[tuple[str, Accuracy]]:
    """Yield (call, its result's accuracy): every op, alpha and beta, packed and half operands.

    ``arrays`` is the module of the arrays, cupy (or numpy).
    """
    backend = "cpu" if arrays is np else "cuda"
    for shape in SHAPES:
        a, b = (x.astype(precision.output) for x in random_operands(shape, _SEED))
        c = np.ones((*shape.leading, shape.m, shape.n), precision.output)
        for op_a, op_b in itertools.product(OPS, OPS):
            x, y = _stored(a, op_a), _stored(b, op_b)
            reference = product_reference(
                x, y, c, alpha=_ALPHA, beta=_BETA, op_a=op_a, op_b=op_b, seed=_SEED
            )
            result = gemm(
                arrays.array(x), arrays.array(y), arrays.array(c), alpha=_ALPHA, beta=_BETA,
                op_a=op_a, op_b=op_b, precision=precision,
            )  # fmt: skip
            found = assess_product(reference, on_host(result), precision, backend=backend)
            yield f"gemm {shape} {op_a}{op_b}", found
        reference = product_reference(a, b, seed=_SEED)
        left, right = arrays.array(a), arrays.array(b)
        for kernels in _families(precision, backend):
            packed = pack(right, precision, side="b", kernels=kernels)
            result = gemm(left, packed, precision=precision, kernels=kernels)
            found = assess_product(reference, on_host(result), precision, backend=backend)
            yield f"gemm {shape} packed{f' {kernels}' if kernels else ''}", found
            # With the phases of the product itself, since a square has none.
            squares = gemm(left, right, precision=precision, output="power", kernels=kernels)
            result = gemm(left, right, precision=precision, kernels=kernels)
            turned = arrays.sqrt(squares) * arrays.exp(1j * arrays.angle(result))
            found = assess_product(
                reference, on_host(turned.astype(precision.output)), precision, backend=backend
            )
            yield f"gemm {shape} squared{f' {kernels}' if kernels else ''}", found
        if precision.operand.bytes == 2 and precision.terms == 1:
            halves = (to_pairs(x, precision.operand.name) for x in (left, right))
            result = gemm(*halves, precision=precision)
            found = assess_product(reference, on_host(result), unscaled(precision), backend=backend)
            yield f"gemm {shape} complex-half", found


def products_by_tile(precision: Precision) -> Iterator[tuple[str, Accuracy]]:
    """Yield (call, its accuracy): every tile of the mma.sync family, with stages for an A100.

    Scaled precisions find the row absmax by each block in the one k, by the absmax kernel in the
    other. Where the card has clusters, their blocks also take slices of k.
    """
    if precision.exact_operands:
        return
    import cupy

    arch = gpu(cupy.cuda.Device().id).require_arch()
    tiles = mma_tiles(precision, ARCHITECTURES[0])
    if arch.sm >= CLUSTER_SM:
        sliced = (replace(x, cluster=n) for x, n in zip(tiles, cycle(CLUSTER_SIZES[1:])))
        tiles += tuple(x for x in sliced if x.shared_bytes <= arch.shared_bytes)
    for shape, op_a, op_b in TILED:
        left, right = random_operands(shape, _SEED)
        a, b = _stored(left, op_a), _stored(right, op_b)
        c = np.ones((*shape.leading, shape.m, shape.n), precision.output)
        how: dict[str, Any] = {"alpha": _ALPHA, "beta": _BETA, "op_a": op_a, "op_b": op_b}
        reference = product_reference(a, b, c, **how, seed=_SEED)
        for tile in tiles:
            choice = GemmChoice(mma=tile)
            result = _computed(choice, precision, a, b, c, **how)
            found = assess_product(reference, result, precision, backend="cuda")
            yield f"gemm {shape} {op_a}{op_b} {choice.name}", found


def short_products(precision: Precision) -> Iterator[tuple[str, Accuracy]]:
    """Yield (call, its result's accuracy): every plan of the fma family, which Hopper takes."""
    if precision.exact_operands:
        return
    a, b = random_operands(SHORT, _SEED)
    c = np.ones((*SHORT.leading, SHORT.m, SHORT.n), precision.output)
    reference = product_reference(a, b, c, alpha=_ALPHA, beta=_BETA, seed=_SEED)
    for plan in fma_plans(precision, SHORT.k):
        choice = GemmChoice(fma=plan)
        result = _computed(choice, precision, a, b, c, alpha=_ALPHA, beta=_BETA)
        yield (
            f"gemm {SHORT} {choice.name}",
            assess_product(reference, result, precision, backend="cuda"),
        )


def hopper_products(precision: Precision) -> Iterator[tuple[str, Accuracy]]:
    """Yield (call, its result's accuracy): every storage, role and split-K of the wgmma family.

    Small products would be left to mma.sync. For a packed B only the plans with fused packing of A:
    the others read planes as they do after packing. Nothing on a GPU without the family.
    """
    for shape in (*HOPPER_SHAPES, *(LONG,) * (precision.terms > 1)):
        a, b = random_operands(shape, _SEED)
        c = np.ones((*shape.leading, shape.m, shape.n), precision.output)
        reference = product_reference(a, b, c, alpha=_ALPHA, beta=_BETA, seed=_SEED)
        for choice in _choices(precision, shape):
            if shape is LONG and choice.split_k_slices > 1:
                continue  # the other shapes have them
            result = _computed(choice, precision, a, b, c, alpha=_ALPHA, beta=_BETA)
            found = assess_product(reference, result, precision, backend="cuda")
            yield f"gemm {shape} {choice.name}", found
        for choice in _choices(precision, shape, packed=True):
            if choice.wgmma is None or not choice.wgmma.fused_pack:
                continue
            result = _computed(choice, precision, a, b, packed=True)
            reference = product_reference(a, b, seed=_SEED)
            found = assess_product(reference, result, precision, backend="cuda")
            yield f"gemm {shape} packed {choice.name}", found


def products_in_waves(precision: Precision) -> Iterator[tuple[str, Accuracy]]:
    """Yield (call, its result's accuracy): blocks of the wgmma family with several tiles each."""
    a, b = random_operands(WAVES, _SEED)
    reference = product_reference(a, b, seed=_SEED)
    for choice in _choices(precision, WAVES):
        result = _computed(choice, precision, a, b)
        found = assess_product(reference, result, precision, backend="cuda")
        yield f"gemm {WAVES} {choice.name}", found


def _families(precision: Precision, backend: str) -> Sequence[Family | None]:
    """Return the families here for a packed operand; None is the only one of the CPU."""
    if backend == "cpu" or precision.exact_operands:
        return (None,)
    import cupy

    hopper = gpu(cupy.cuda.Device().id).target == WGMMA_TARGET
    return ("wgmma", "mma.sync") if hopper else ("mma.sync",)


def _choices(precision: Precision, shape: Shape, *, packed: bool = False) -> list[GemmChoice]:
    """Return for each storage, role and split-K the largest tile of the wgmma family."""
    import cupy

    card = gpu(cupy.cuda.Device().id)
    sizes = GemmSizes(shape.batch, shape.m, shape.n, shape.k)
    found: dict[Any, GemmChoice] = {}
    b = OperandTraits(packed=True) if packed else OperandTraits(k_major=False)
    question = Question(precision, sizes, OperandTraits(), b)
    for choice in candidates(question, card.require_arch(), card.sm_count):
        if choice.wgmma is not None:
            key = (
                choice.wgmma.storage,
                choice.wgmma.fused_pack,
                choice.wgmma.cluster > 1,
                choice.swapped,
                choice.split_k_slices,
            )
            found.setdefault(key, choice)
    return list(found.values())


def _computed(
    choice: GemmChoice, precision: Precision, *operands: Any, packed: bool = False, **how: Any
) -> Any:
    """Return the result of NumPy operands on the GPU, in NumPy; B `packed` beforehand."""
    import cupy
    from argand.gemm.prepare import PLAN_OVERRIDE

    arrays = list(map(cupy.array, operands))
    if packed:
        arrays[1] = pack(arrays[1], precision, side="b", kernels="wgmma")
    with PLAN_OVERRIDE.use(choice):
        return gemm(*arrays, precision=precision, **how).get()


def _stored(x: Any, op: str) -> Any:
    """Return the array whose op is x."""
    if op == "N":
        return x
    turned = np.ascontiguousarray(x.swapaxes(-1, -2))
    return turned.conj() if op == "C" else turned


if __name__ == "__main__":
    sys.exit(main())

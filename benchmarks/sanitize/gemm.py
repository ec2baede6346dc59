"""Small ragged calls for compute-sanitizer: ``python -m benchmarks.sanitize.gemm tf32``.

Each array is an allocation of its own, so that an access beyond it is one beyond what is allocated.
Every result is held to its bound, too. The exit status is 1 where one is outside.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from argand import PRECISIONS, Precision, gemm, pack, to_pairs
from argand.device import ARCHITECTURES, gpu
from argand.gemm import sm90_plan as wgmma_plan
from argand.gemm.families import Family
from argand.gemm.heuristics import GemmChoice, GemmSizes, OperandTraits, candidates
from argand.gemm.operands import OPS
from argand.gemm.sm80_plan import candidates as mma_tiles
from argand.runtime.plan import TARGET

from benchmarks.gemm.operands import random_operands
from benchmarks.gemm.shapes import Shape
from benchmarks.harness.samples import on_host
from benchmarks.peers import unscaled
from workflow.accuracy import Accuracy, assess_product, product_reference

SHAPES = (
    Shape(1, 1, 1), Shape(7, 5, 3), Shape(65, 33, 17), Shape(129, 131, 67), Shape(200, 72, 260),
    Shape(1, 300, 40), Shape(300, 1, 40), Shape(64, 64, 1000), Shape(33, 20, 47, batch=3),
)  # fmt: skip
"""One-sized, prime, one line on either side, tall k, a batch; none a multiple of a tile."""
TILED_SHAPES = (Shape(131, 139, 45), Shape(34, 20, 302, batch=3))
"""One more than a tile either way, and less than one."""
HOPPER_SHAPES = (Shape(65, 34, 18), Shape(130, 132, 1100), Shape(34, 20, 46, batch=3))
"""Ragged, with pitches that the copy engine reads; the second has k to cut."""
LONG = Shape(66, 34, 4500)
"""For split precisions: totals of a long k, and of its pieces, wait in memory."""
IN_TURNS = Shape(1540, 1500, 308)
"""More tiles than multiprocessors: results leave behind the next head, the last are split."""
SEGMENT = 8
"""Stages after which totals of split precisions move to memory, for `gemm.sm90_plan.SEGMENT`:
the least that all tiles allow, so that those of these shapes do."""
PACE = (4, 1)
"""Stages: blocks keep pace wherever they may, in place of `find_pace`."""
_TELL_SECONDS = 10
_ALPHA, _BETA = 2 - 1j, 0.5j
_SEED = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run all calls of one precision."""
    import cupy

    found = argparse.ArgumentParser(description=__doc__)
    found.add_argument("precision", choices=PRECISIONS)
    precision = PRECISIONS[found.parse_args(argv).precision]
    cupy.cuda.set_allocator(None)
    from argand.gemm import sm90_launch as cuda_wgmma

    wgmma_plan.SEGMENT = SEGMENT
    cuda_wgmma.find_pace = lambda *_: PACE
    wrong, told = 0, time.monotonic()
    calls = itertools.chain(
        products(precision, cupy), products_by_tile(precision), hopper_products(precision),
        products_in_turns(precision),
    )  # fmt: skip
    for count, (name, accuracy) in enumerate(calls, 1):
        if time.monotonic() - told > _TELL_SECONDS:
            told = time.monotonic()
            print(f"{precision.name}: {count} calls, the last {name}", flush=True)
        if not accuracy.verified:
            wrong += 1
            print(f"{name}: {accuracy.reason}")
    print(f"{precision.name}: {wrong} results outside their bound")
    return int(wrong > 0)


def products(precision: Precision, arrays: Any) -> Iterator[tuple[str, Accuracy]]:
    """(call, its result's judgement): every op, alpha and beta, packed and half operands.

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
            judged = assess_product(reference, on_host(result), precision, backend=backend)
            yield f"gemm {shape} {op_a}{op_b}", judged
        reference = product_reference(a, b, seed=_SEED)
        left, right = arrays.array(a), arrays.array(b)
        for kernels in _families(precision, backend):
            packed = pack(right, precision, side="b", kernels=kernels)
            result = gemm(left, packed, precision=precision, kernels=kernels)
            judged = assess_product(reference, on_host(result), precision, backend=backend)
            yield f"gemm {shape} packed{f' {kernels}' if kernels else ''}", judged
        if precision.operand.bytes == 2 and precision.terms == 1:
            halves = (to_pairs(x, precision.operand.name) for x in (left, right))
            result = gemm(*halves, precision=precision)
            judged = assess_product(
                reference, on_host(result), unscaled(precision), backend=backend
            )
            yield f"gemm {shape} complex-half", judged


def products_by_tile(precision: Precision) -> Iterator[tuple[str, Accuracy]]:
    """(call, its result's judgement): every tile of the mma.sync family, with stages for an A100.

    Scaled precisions look for their scales in the one k, and scan in the other.
    """
    if precision.exact_operands:
        return
    for shape in TILED_SHAPES:
        a, b = random_operands(shape, _SEED)
        c = np.ones((*shape.leading, shape.m, shape.n), precision.output)
        reference = product_reference(a, b, c, alpha=_ALPHA, beta=_BETA, seed=_SEED)
        for tile in mma_tiles(precision, ARCHITECTURES[0]):
            choice = GemmChoice(tile=tile)
            result = _forced(choice, precision, a, b, c, alpha=_ALPHA, beta=_BETA)
            judged = assess_product(reference, result, precision, backend="cuda")
            yield f"gemm {shape} {choice.name}", judged


def hopper_products(precision: Precision) -> Iterator[tuple[str, Accuracy]]:
    """(call, its result's judgement): every storage, role and cut of k of the wgmma family.

    Small products would be left to mma.sync. Of a B that is packed beforehand those that pack A on
    the way: the others read planes as they do after packing. Nothing on a GPU without the family.
    """
    for shape in (*HOPPER_SHAPES, *(LONG,) * (precision.terms > 1)):
        a, b = random_operands(shape, _SEED)
        c = np.ones((*shape.leading, shape.m, shape.n), precision.output)
        reference = product_reference(a, b, c, alpha=_ALPHA, beta=_BETA, seed=_SEED)
        for choice in _ways(precision, shape):
            if shape is LONG and choice.parts > 1:
                continue  # the other shapes have them
            result = _forced(choice, precision, a, b, c, alpha=_ALPHA, beta=_BETA)
            judged = assess_product(reference, result, precision, backend="cuda")
            yield f"gemm {shape} {choice.name}", judged
        for choice in _ways(precision, shape, packed=True):
            if choice.plan is None or not choice.plan.packs:
                continue
            result = _forced(choice, precision, a, b, packed=True)
            reference = product_reference(a, b, seed=_SEED)
            judged = assess_product(reference, result, precision, backend="cuda")
            yield f"gemm {shape} packed {choice.name}", judged


def products_in_turns(precision: Precision) -> Iterator[tuple[str, Accuracy]]:
    """(call, its result's judgement): blocks of the wgmma family that take several tiles."""
    a, b = random_operands(IN_TURNS, _SEED)
    reference = product_reference(a, b, seed=_SEED)
    for choice in _ways(precision, IN_TURNS):
        result = _forced(choice, precision, a, b)
        judged = assess_product(reference, result, precision, backend="cuda")
        yield f"gemm {IN_TURNS} {choice.name}", judged


def _families(precision: Precision, backend: str) -> Sequence[Family | None]:
    """Those that there are here for an operand that is packed; None is the only one of the CPU."""
    if backend == "cpu" or precision.exact_operands:
        return (None,)
    import cupy

    hopper = gpu(cupy.cuda.Device().id).target == TARGET
    return ("wgmma", "mma.sync") if hopper else ("mma.sync",)


def _ways(precision: Precision, shape: Shape, *, packed: bool = False) -> list[GemmChoice]:
    """Of each storage, role and cut of k the largest tile of the wgmma family."""
    import cupy

    arch = gpu(cupy.cuda.Device().id).require_arch()
    sizes = GemmSizes(shape.batch, shape.m, shape.n, shape.k)
    found: dict[Any, GemmChoice] = {}
    b = OperandTraits(packed=True) if packed else OperandTraits(k_fast=False)
    for choice in candidates(precision, arch, sizes, OperandTraits(), b):
        if choice.plan is not None:
            way = (choice.plan.storage, choice.plan.packs, choice.swapped, choice.parts)
            found.setdefault(way, choice)
    return list(found.values())


def _forced(
    choice: GemmChoice, precision: Precision, *operands: Any, packed: bool = False, **how: Any
) -> Any:
    """The result of NumPy operands on the GPU, in NumPy; B `packed` beforehand."""
    import cupy
    from argand.gemm.launch import forced

    arrays = list(map(cupy.array, operands))
    if packed:
        arrays[1] = pack(arrays[1], precision, side="b", kernels="wgmma")
    with forced.to(choice):
        return gemm(*arrays, precision=precision, **how).get()


def _stored(x: Any, op: str) -> Any:
    """The array whose op is x."""
    if op == "N":
        return x
    turned = np.ascontiguousarray(x.swapaxes(-1, -2))
    return turned.conj() if op == "C" else turned


if __name__ == "__main__":
    sys.exit(main())

"""Small exact products for compute-sanitizer: ``python -m benchmarks.sanitize.exact complex64``.

Every plan of both families, every number of moduli, split-K slices, pieces, packed operands,
integers in pairs and the proof. Each array is an allocation of its own, so that an access beyond it
is one beyond what is allocated. Every result is compared with the CPU's, bit for bit, in an output
that was poisoned. The exit status is 1 where one differs.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from argand import gemm, pack, pairs
from argand.gemm.families import Family
from argand.gemm.modular.moduli import MAX_MODULI, MIN_PRECISION_MODULI
from argand.gemm.modular.problem import Piece
from argand.gemm.modular.product_plan import MMA_PLANS, WGMMA_PLANS

from benchmarks.harness.samples import on_host
from benchmarks.sanitize.verdicts import exit_status

TYPES = ("complex64", "complex128")
SHAPES = ((7, 5, 3), (1, 1, 1), (33, 257, 77), (150, 141, 300))
"""m, n and k: none a multiple of a tile; lines of less than a block of norms, and of two."""
_MULTIPROCESSORS = 3


def _launched_on_few(problem: Any, device: Any, *others: Any, adds: bool) -> Any:
    """Return `product_launch` for a card of few multiprocessors, each of many tiles."""
    from argand.gemm.modular.product_launch import product_launch

    return product_launch(problem, replace(device, cores=_MULTIPROCESSORS), *others, adds=adds)


def _in_parts(problem: Any, *_: Any) -> list[Piece]:
    """Return whole products, each in as many parts of k as it has blocks that are encoded."""
    rows, columns = problem.a.rows, problem.b.rows
    parts = problem.k_blocks
    return [Piece(product, 1, 0, rows, 0, columns, parts) for product in range(problem.batch)]


def _in_groups(problem: Any, *_: Any) -> list[Piece]:
    """Return whole products, whose planes are multiplied in groups."""
    rows, columns = problem.a.rows, problem.b.rows
    return [
        Piece(product, 1, 0, rows, 0, columns, plane_groups=4) for product in range(problem.batch)
    ]


OVERRIDES: tuple[tuple[str, dict[str, Any]], ...] = (
    *((plan.name, {"choose_plan": lambda *_, plan=plan: plan,
                     **({"product_launch": _launched_on_few} if plan.family == "wgmma" else {})})
      for plan in (*WGMMA_PLANS, *MMA_PLANS)),
    ("2 slices", {"choose_slices": lambda *_: 2}),
    ("pieces", {"most_workspace": lambda *_: 0}),
    ("parts of k", {"choose_pieces": _in_parts}),
    ("groups of planes", {"choose_pieces": _in_groups}),
)  # fmt: skip
"""Names of `argand.gemm.modular.launch` that a call replaces by something else."""
_COUNT = 7
_SEED = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run all calls of one type."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dtype", choices=TYPES)
    dtype = parser.parse_args(argv).dtype
    import cupy

    cupy.cuda.set_allocator(None)
    results = itertools.chain(products(dtype, cupy), overridden_products(dtype, cupy))
    return exit_status((name, "" if equal else "not the CPU's bits") for name, equal in results)


def products(dtype: str, arrays: Any) -> Iterator[tuple[str, bool]]:
    """Yield (call, whether its bits are the CPU's) of the plans that calls take.

    ``arrays`` is the module of the arrays, cupy (or numpy).
    """
    rng = np.random.default_rng(_SEED)
    for count in range(MIN_PRECISION_MODULI, MAX_MODULI + 1):
        m, n, k = SHAPES[count % len(SHAPES)]
        a, b = _normal(rng, m, k, dtype=dtype), _normal(rng, k, n, dtype=dtype)
        yield f"{count} moduli, proved", _equal(arrays, a, b, precision=f"{count}xint8", check=True)
    for family, (m, n, k) in itertools.product(_families(arrays), SHAPES):
        for op_a, op_b in itertools.product("NTC", "NTC"):
            a = _normal(rng, *((m, k) if op_a == "N" else (k, m)), dtype=dtype)
            b = _normal(rng, *((k, n) if op_b == "N" else (n, k)), dtype=dtype)
            yield f"{family} {m}x{n}x{k} {op_a}{op_b}", _equal(
                arrays, a, b, _normal(rng, m, n, dtype=dtype), op_a=op_a, op_b=op_b, alpha=1 - 2j,
                beta=0.5j, precision=f"{_COUNT}xint8", kernels=family,
            )  # fmt: skip
    a, b = _normal(rng, 3, 50, 90, dtype=dtype), _normal(rng, 90, 40, dtype=dtype)
    precision = f"{_COUNT}xint8"
    yield "batch", _equal(arrays, a, b, precision=precision)
    packed = pack(arrays.asarray(b), precision, side="b")
    found = gemm(arrays.asarray(a), packed, precision=precision)
    expected = gemm(a, b, precision=precision)
    yield "packed", bool(np.array_equal(on_host(found), expected))
    x, y = (rng.integers(-128, 128, (40, 40, 2)).astype("int8") for _ in range(2))
    expected = gemm(pairs(x), pairs(y), precision="exact")
    found = gemm(pairs(arrays.asarray(x)), pairs(arrays.asarray(y)), precision="exact")
    yield "int8 in pairs", bool(np.array_equal(on_host(found), expected))


def overridden_products(dtype: str, arrays: Any) -> Iterator[tuple[str, bool]]:
    """Yield (call, whether its bits are the CPU's) of large calls' plans, slices and pieces."""
    rng = np.random.default_rng(_SEED)
    a, b = _normal(rng, 2, 150, 500, dtype=dtype), _normal(rng, 2, 500, 141, dtype=dtype)
    for name, members in OVERRIDES:
        with _in_place_of(members):
            yield name, _equal(arrays, a, b, precision=f"{_COUNT}xint8")
            yield f"{name}, proved", _equal(arrays, a, b, precision=f"{_COUNT}xint8", check=True)


@contextmanager
def _in_place_of(members: dict[str, Any]) -> Iterator[None]:
    from argand.gemm.gpu_calls import CALLS
    from argand.gemm.modular import launch
    from argand.gemm.modular.kept_launches import launch_for

    held = {name: getattr(launch, name) for name in members}
    try:
        for name, value in members.items():
            setattr(launch, name, value)
        launch_for.cache_clear()
        CALLS.clear()
        yield
    finally:
        for name, value in held.items():
            setattr(launch, name, value)
        launch_for.cache_clear()
        CALLS.clear()


def _equal(arrays: Any, a: Any, b: Any, c: Any = None, **options: Any) -> bool:
    kernels = options.pop("kernels", None)
    expected = gemm(a, b, c, **options)
    out = arrays.full(expected.shape, complex(np.nan, 7), expected.dtype)
    given: list[Any] = [None if x is None else arrays.asarray(x) for x in (a, b, c)]
    gemm(*given, **options, kernels=kernels, out=out)
    return bool(np.array_equal(on_host(out), expected))


def _families(arrays: Any) -> Sequence[Family | None]:
    return (None,) if arrays is np else ("wgmma", "mma.sync")


def _normal(rng: np.random.Generator, *shape: int, dtype: str) -> np.ndarray[Any, Any]:
    parts = rng.standard_normal((2, *shape))
    return np.asarray(parts[0] + 1j * parts[1]).astype(dtype)


if __name__ == "__main__":
    sys.exit(main())

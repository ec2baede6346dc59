"""Products by wgmma whose k is cut among the blocks of a cluster (an sm_90 GPU)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from argand import Pairs, gemm, launched, to_pairs
from argand.gemm.choice import GemmChoice
from argand.gemm.question import GemmSizes
from argand.precision import HALF_FORMATS

from tests.kernels.gemm.product_cases import OPS, check, normal, repeats_bit_for_bit, stored
from tests.kernels.gemm.sm90.wgmma_cases import choices, overridden
from tests.kernels.precisions import TENSOR

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma")]


def clustered(
    cp: Any, precision: str, shape: tuple[int, int, int, int], output: str = "complex64",
    *, half: bool = False,
) -> list[GemmChoice]:  # fmt: skip
    """A candidate of each storage, tile and cluster, in one role; fewer slices than k has stages.

    Odd lines take more shared memory: stages that they do not leave are no candidates of theirs.
    """
    found: dict[Any, GemmChoice] = {}
    _, _, n, k = shape
    odd = n % 2 == 1 or k % 2 == 1
    sizes = GemmSizes(
        *shape, half_output=output == "complex-half", power=output == "power"
    )  # fmt: skip
    for choice in choices(cp, precision, sizes, odd_pitch=odd, half=half):
        plan = choice.wgmma
        assert plan is not None
        if plan.cluster > 1 and choice.swapped == (plan.block_n // 8 + plan.cluster) % 2:
            found.setdefault((plan.storage, plan.block_m, plan.block_n, plan.cluster), choice)
    return list(found.values())


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("shape", [(1, 67, 52, 640), (1, 67, 51, 640), (2, 130, 70, 517)], ids=str)
def test_every_cluster(
    cp: Any, rng: np.random.Generator, precision: str, shape: tuple[int, int, int, int]
) -> None:
    """Sides that end within a part of a tile; slices of unequal k, some of them empty."""
    batch, m, n, k = shape
    a, b = normal(rng, batch, m, k), normal(rng, batch, k, n)
    found = clustered(cp, precision, shape)
    assert found
    for choice in found:
        with overridden(choice), launched() as names:
            check(cp, a, b, precision=precision)
        assert any("a cluster of" in name for name in names)


@pytest.mark.pairwise
@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("op_a", OPS)
@pytest.mark.parametrize("op_b", OPS)
def test_ops_with_alpha_and_beta(
    cp: Any, rng: np.random.Generator, precision: str, op_a: str, op_b: str
) -> None:
    m, n, k = 75, 53, 301
    a, b, c = normal(rng, m, k), normal(rng, k, n), normal(rng, m, n)
    for choice in clustered(cp, precision, (1, m, n, k))[:4]:
        with overridden(choice):
            check(
                cp, stored(a, op_a), stored(b, op_b), c, op_a=op_a, op_b=op_b,
                precision=precision, alpha=0.5 - 2j, beta=-1.25 + 0.75j,
            )  # fmt: skip


@pytest.mark.parametrize("precision", TENSOR)
def test_bits_repeat(cp: Any, rng: np.random.Generator, precision: str) -> None:
    """Blocks add what they receive in the order of the slices, whenever it arrives."""
    shape = (1, 200, 130, 1100)
    a, b = cp.asarray(normal(rng, 200, 1100)), cp.asarray(normal(rng, 1100, 130))
    for choice in clustered(cp, precision, shape)[:6]:
        with overridden(choice):
            assert repeats_bit_for_bit(partial(gemm, a, b, precision=precision))


@pytest.mark.parametrize("format", HALF_FORMATS)
@pytest.mark.parametrize("output", ["complex64", "complex-half", "power"])
def test_pairs_of_16_bits_halves_and_powers(
    cp: Any, rng: np.random.Generator, format: str, output: Any
) -> None:
    """Small integers, of which every format holds the products, in pairs and in complex64."""
    m, n, k = 68, 108, 576
    a, b = (
        (rng.integers(-1, 2, shape) + 1j * rng.integers(-1, 2, shape)).astype(np.complex64)
        for shape in ((m, k), (k, n))
    )
    exact = cp.asarray(a @ b)
    expected = {
        "complex64": exact,
        "complex-half": to_pairs(exact, format).to_complex64(),
        "power": exact.real**2 + exact.imag**2,
    }[output]
    for half in (True, False):
        x, y = (
            Pairs(cp.asarray(to_pairs(z, format).array), format) if half else cp.asarray(z)
            for z in (a, b)
        )
        found = clustered(cp, format, (1, m, n, k), output, half=half)
        storages = {choice.wgmma.storage for choice in found if choice.wgmma}
        assert len(storages) == 1 + (half or format == "bf16")
        # Of each storage the largest tile and the smallest.
        ends = [[x for x in found if x.wgmma and x.wgmma.storage == y] for y in storages]
        for choice in (z for x in ends for z in (x[0], x[-1])):
            with overridden(choice), launched() as names:
                product = gemm(x, y, precision=format, output=output, kernels="wgmma")
            numbers = product.to_complex64() if isinstance(product, Pairs) else product
            assert bool((numbers == expected).all()), choice.name
            assert any("a cluster of" in name for name in names)

"""Warpgroups that multiply the tiles of a short k in turn, each tile and storage (an sm_90 GPU)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from argand import Pairs, gemm, launched, to_pairs
from argand.gemm.choice import GemmChoice
from argand.gemm.question import GemmSizes
from argand.precision import HALF_FORMATS

from tests.kernels.gemm.product_cases import Expected, normal, repeats_bit_for_bit, stored
from tests.kernels.gemm.sm90.wgmma_cases import choices, overridden
from tests.kernels.precisions import TENSOR
from tests.kernels.runtime.launch.graph_cases import forget_calls

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma")]


def pairs_of_warpgroups(
    cp: Any, precision: str, sizes: GemmSizes, **traits: Any
) -> list[GemmChoice]:
    """Choices of tiles of two warpgroups, whose products below have several a block."""
    return [
        x for x in choices(cp, precision, sizes, **traits)
        if x.wgmma is not None and x.wgmma.m_warpgroups == 2 and x.split_k_slices == 1
    ]  # fmt: skip


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize(
    "shape",
    [(1, 2308, 2100, 16), (1, 2309, 2101, 33), (9, 700, 610, 50), (3, 1203, 1307, 63),
     (1, 2310, 2102, 96), (2, 1301, 2002, 112)],
    ids=str,
)  # fmt: skip
def test_blocks_of_several_tiles(
    cp: Any, rng: np.random.Generator, precision: str, shape: tuple[int, int, int, int]
) -> None:
    """Results by TMA and from registers, by whole sectors and parts, of a k of 1 to 7 k-tiles.

    Three k-tiles of tf32 leave less than a third of any ring free.
    """
    batch, m, n, k = shape
    a, b = normal(rng, batch, m, k), normal(rng, batch, k, n)
    expected = Expected(cp, a, b, precision=precision)
    named = []
    for choice in pairs_of_warpgroups(cp, precision, GemmSizes(*shape)):
        with overridden(choice), launched() as names:
            expected.hold()
        named.append("ping-pong" in names[0])
    assert any(named) == (precision != "tf32" or k <= 64)


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize(("op_a", "op_b"), [("N", "N"), ("C", "N"), ("T", "C"), ("N", "T")])
def test_operands_alpha_and_beta(
    cp: Any, rng: np.random.Generator, precision: str, op_a: str, op_b: str
) -> None:
    a, b, c = normal(rng, 1810, 46), normal(rng, 46, 1702), normal(rng, 1810, 1702)
    expected = Expected(
        cp, stored(a, op_a), stored(b, op_b), c, op_a=op_a, op_b=op_b,
        precision=precision, alpha=0.5 - 2j, beta=-1.25 + 0.75j,
    )  # fmt: skip
    for choice in pairs_of_warpgroups(cp, precision, GemmSizes(1, 1810, 1702, 46)):
        with overridden(choice):
            expected.hold()


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("k", [8, 64])
def test_turns_change_no_bit(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, precision: str, k: int
) -> None:
    """Results of one MMA, and of several k-tiles of operands in place, where depths are equal."""
    from argand.gemm.sm90 import launch_plan as sm90_launch_plan

    a, b = cp.asarray(normal(rng, 2308, k)), cp.asarray(normal(rng, k, 2100))
    found = [
        x for x in pairs_of_warpgroups(cp, precision, GemmSizes(1, 2308, 2100, k))
        if x.wgmma is not None and not x.wgmma.fused_pack and (k == 8 or x.wgmma.storage == "fp32")
    ]  # fmt: skip
    results: list[list[Any]] = []
    for turns in (True, False):
        if not turns:
            monkeypatch.setattr(sm90_launch_plan, "with_ping_pong", lambda plan, *_, **__: plan)
        forget_calls()
        results.append([])
        for choice in found:
            with overridden(choice), launched() as names:
                results[-1].append(gemm(a, b, precision=precision))
            assert ("ping-pong" in names[0]) == turns
            with overridden(choice):
                assert repeats_bit_for_bit(partial(gemm, a, b, precision=precision))
    assert all(bool((x == y).all()) for x, y in zip(*results, strict=True))


@pytest.mark.parametrize("format", HALF_FORMATS)
def test_halves_and_powers(cp: Any, rng: np.random.Generator, format: str) -> None:
    """Small integers, of which every format holds the products: results of 8 and of 4 bytes.

    Halves are compared as numbers: bits of bf16 tell zeros of either sign apart.
    """
    m, n, k = 2308, 2100, 48
    a, b = (
        (rng.integers(-4, 5, shape) + 1j * rng.integers(-4, 5, shape)).astype(np.complex64)
        for shape in ((m, k), (k, n))
    )
    x, y = (Pairs(cp.asarray(to_pairs(z, format).array), format) for z in (a, b))
    exact = cp.asarray(a @ b)
    expected: dict[Any, Any] = {
        "complex64": exact,
        "complex-half": to_pairs(exact, format).to_complex64(),
        "power": exact.real**2 + exact.imag**2,
    }
    for output, result in expected.items():
        sizes = GemmSizes(
            1, m, n, k, half_output=output == "complex-half", power=output == "power"
        )  # fmt: skip
        named = []
        for choice in pairs_of_warpgroups(cp, format, sizes, half=True):
            with overridden(choice), launched() as names:
                found = gemm(x, y, precision=format, output=output, kernels="wgmma")
            numbers = found.to_complex64() if isinstance(found, Pairs) else found
            wrong = cp.argwhere(numbers != result)
            assert not wrong.size, (output, choice.name, len(wrong), wrong[:4].get().tolist())
            named += names
        assert any("ping-pong" in name for name in named)

"""The Hopper kernels on every kind of data, op and place, and by every rounding (an sm_90 GPU).

Results are verified as records are: by the a-priori bound, element by element against fp64.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import gemm, get_precision
from argand.gemm.choice import GemmChoice
from argand.gemm.question import GemmSizes
from argand.operand_format import ROUNDINGS

from tests.kernels.gemm.product_cases import OPS, normal, stored
from tests.kernels.gemm.sm90.wgmma_cases import first_choices, overridden
from tests.kernels.precisions import TENSOR
from workflow.accuracy.matrix_product_accuracy import assess_product
from workflow.accuracy.references import product_reference
from workflow.storage.noise import draw

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma")]
Array = npt.NDArray[Any]
Draw = Callable[..., Array]

BATCH, M, N, K = (2, 2), 38, 44, 50
"""As of other tests' operands, so that the kernels are compiled once."""


def scaled(factor: float, rng: np.random.Generator, *shape: int) -> Array:
    """Numbers of one size, with some lines along either axis and some elements zero."""
    x = normal(rng, *shape) * np.float32(factor)
    x[..., 3, :], x[..., :, 5] = 0, 0
    x[rng.random(shape) < 0.1] = 0
    return x


def covariance(rng: np.random.Generator, *shape: int) -> Array:
    """Elements of 1 to 1e8."""
    return normal(rng, *shape) * np.float32(1e8) ** rng.random(shape, dtype=np.float32)


def drawn(init: Any, phi: float = 1.0) -> Draw:
    return lambda rng, *shape: draw(rng, shape, init, phi)


DATA: dict[str, tuple[Draw, Draw]] = {
    **{init: (drawn(init), drawn(init)) for init in ("normal", "uniform", "integer", "lognormal")},
    "wide": (drawn("lognormal", 4.0), drawn("lognormal", 4.0)),
    "tiny": (partial(scaled, 1e-30), partial(scaled, 1.0)),
    "huge": (partial(scaled, 1.0), partial(scaled, 1e30)),
    "opposite": (partial(scaled, 1e30), partial(scaled, 1e-30)),
    "covariance": (covariance, covariance),
}


def apart(cp: Any, x: Array) -> Any:
    """x on the GPU, every other matrix of an array in which the others are NaN."""
    wide = cp.full((*x.shape[:-3], 2 * x.shape[-3], *x.shape[-2:]), np.nan, cp.complex64)
    wide[..., ::2, :, :] = cp.asarray(x)
    return wide[..., ::2, :, :]


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("kind", DATA)
def test_every_kind_of_data(cp: Any, rng: np.random.Generator, precision: str, kind: str) -> None:
    """By every pair of ops, in batches whose matrices lie apart."""
    row = get_precision(precision)
    left, right = DATA[kind]
    a, b = left(rng, *BATCH, M, K), right(rng, *BATCH, K, N)
    reference = product_reference(a, b)
    choices = first_choices(cp, precision, GemmSizes(4, M, N, K))
    assert choices
    for op_a, op_b in product(OPS, OPS):
        x, y = apart(cp, stored(a, op_a)), apart(cp, stored(b, op_b))
        for choice in choices:
            with overridden(choice):
                found = gemm(x, y, op_a=op_a, op_b=op_b, precision=precision).get()
            accuracy = assess_product(reference, found, row, backend="cuda")
            assert accuracy.verified, f"{op_a}{op_b} {choice.name}: {accuracy.reason}"
            if kind in ("tiny", "huge", "opposite"):
                assert not found[..., 3, :].any()
                assert not found[..., :, 5].any()


LEADING = {
    "reversed": (np.s_[::-1], np.s_[:]),
    "one of many": (np.s_[1:2], np.s_[:, ::-1]),
    "broadcast": (np.s_[:, :1], np.s_[:1]),
    "transposed": (np.s_[...], np.s_[...]),
}


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("place", LEADING)
def test_leading_axes_of_any_stride(
    cp: Any, rng: np.random.Generator, precision: str, place: str
) -> None:
    row = get_precision(precision)
    a, b = normal(rng, 2, 3, M, K), normal(rng, 2, 3, K, N)
    left, right = (x[view] for x, view in zip((a, b), LEADING[place], strict=True))
    x, y = (
        there[view] for there, view in zip(map(cp.asarray, (a, b)), LEADING[place], strict=True)
    )
    if place == "transposed":
        left, right = left.swapaxes(0, 1), right.swapaxes(0, 1)
        x, y = x.swapaxes(0, 1), y.swapaxes(0, 1)
    reference = product_reference(left, right)
    batch = int(np.prod(reference.shape[:-2]))
    for choice in first_choices(cp, precision, GemmSizes(batch, M, N, K)):
        # The result lies apart too, and what lies between stays as it is.
        wide = cp.full((*reference.shape[:-2], M, 2 * N), np.nan, cp.complex64)
        with overridden(choice):
            gemm(x, y, precision=precision, out=wide[..., :N])
        accuracy = assess_product(reference, wide[..., :N].get(), row, backend="cuda")
        assert accuracy.verified, f"{choice.name}: {accuracy.reason}"
        assert bool(cp.isnan(wide[..., N:]).all())


MIXED = ("toward_zero", "nearest_even")


def unswapped(cp: Any, precision: str, *sizes: int) -> list[GemmChoice]:
    """A in place and in planes, B packed before and by fused packing, both k-major."""
    found = first_choices(cp, precision, GemmSizes(1, *sizes), k_major=True)
    return [choice for choice in found if not choice.swapped]


@pytest.mark.parametrize(
    ("precision", "rounding"), [*product(["tf32", "3xtf32"], ROUNDINGS), ("3xtf32", MIXED)], ids=str
)
def test_roundings_are_the_models(
    cp: Any, rng: np.random.Generator, precision: str, rounding: Any
) -> None:
    """Numbers that are multiplied by one come out as they were rounded: bit for bit at tf32.

    Ties are among them, as the row operand and as the column operand. Of 3xtf32 big + small has 22
    bits or more: a truncating sum may lose the last of 24.
    """
    values = normal(rng, 128, 1)
    bits = values.view(np.uint32)
    bits[::3] = bits[::3] & 0xFFFFE000 | 0x1000
    values = np.concatenate([values, np.zeros_like(values)], axis=1)
    ones = np.zeros((128, 2), np.complex64)
    ones[:, 0] = 1
    how = {"op_b": "T", "precision": precision, "rounding": rounding}
    for a, b in ((values, ones), (ones, values)):
        model = gemm(a, b, **how)
        for choice in unswapped(cp, precision, 128, 128, 2):
            with overridden(choice):
                found = gemm(cp.asarray(a), cp.asarray(b), **how).get()
            if precision == "tf32":
                np.testing.assert_array_equal(found, model)
            else:
                np.testing.assert_allclose(found, model, rtol=2.0**-22)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("precision", ["tf32", "3xtf32"])
def test_roundings_of_long_lines(
    cp: Any, rng: np.random.Generator, precision: str, rounding: Any
) -> None:
    """Their own bounds hold, and the roundings do differ from each other."""
    row = get_precision(precision, rounding)
    a, b = normal(rng, 70, 90), normal(rng, 66, 90)
    reference = product_reference(a, b, op_b="T")
    left, right = cp.asarray(a), cp.asarray(b)
    other = next(name for name in ROUNDINGS if name != rounding)
    for choice in unswapped(cp, precision, 70, 66, 90):
        with overridden(choice):
            found = gemm(left, right, op_b="T", precision=row).get()
            differs = gemm(left, right, op_b="T", precision=precision, rounding=other).get()
        accuracy = assess_product(reference, found, row, backend="cuda")
        assert accuracy.verified, f"{choice.name}: {accuracy.reason}"
        assert (found != differs).any()

import math
from itertools import product

import numpy as np
import pytest
from argand import PRECISIONS
from argand.rounding import split

from workflow.accuracy import bounds

NAMES = list(PRECISIONS)


def test_gamma_and_roundings():
    assert bounds.gamma(10, 0.01) == pytest.approx(0.1 / 0.9)
    assert bounds.gamma(10, 0.1) == math.inf
    assert bounds.roundings(2, 0.5) == pytest.approx(1.25)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_bounds_grow_with_k_and_at_most_linearly(name, backend):
    row = PRECISIONS[name]
    found = [bounds.product_bound(row, k, backend) for k in (1, 16, 64, 100, 4096, 65536)]
    assert found == sorted(found)
    assert found[-1] <= 65536 * found[0] * 1.02
    assert found[0] >= 2 * bounds.operand_roundoff(row)


def test_bounds_stand_in_the_order_of_the_precisions():
    at = {name: bounds.product_bound(PRECISIONS[name], 512, "cpu") for name in NAMES}
    assert at["fp64"] < at["fp32"] < at["3xtf32"] < at["tf32"] == at["fp16"] < at["bf16"]
    # The numbers themselves, by hand: 2 u k (1 + ...) and 2 v.
    assert at["fp32"] == pytest.approx(1024 * 2**-24 + 2 * 2**-24, rel=1e-3)
    assert at["tf32"] == pytest.approx(2 * 2**-11 + 2**-22 + 1024 * 2**-24 * 1.001, rel=1e-3)


def test_truncation_is_worse_than_rounding_and_promotion_bounds_it():
    for name in ("tf32", "fp16", "bf16", "3xtf32"):
        row = PRECISIONS[name]
        cpu = bounds.accumulation_error(row, 4096, "cpu")
        assert bounds.accumulation_error(row, 4096, "cuda") > cpu or name == "3xtf32"
    split_row = PRECISIONS["3xtf32"]
    assert bounds.accumulation_error(split_row, 2**16, "cuda") < 2 * bounds.accumulation_error(
        split_row, 64, "cuda"
    )


def truncated(x, exponent):
    """x cut to a multiple of 2^(exponent - 23), toward zero."""
    return np.ldexp(np.trunc(np.ldexp(x, 23 - exponent)), exponent - 23)


def tensor_core(products, depth):
    """A sum as Fasi and others describe it: align to the largest, cut each, add, cut the sum."""
    total = 0.0
    for start in range(0, len(products), depth):
        addends = np.append(products[start : start + depth], total)
        exponent = math.frexp(np.abs(addends).max())[1] - 1
        total = float(truncated(addends, exponent).sum())
        if total:
            total = float(truncated(np.array(total), math.frexp(total)[1] - 1))
    return total


@pytest.mark.parametrize("depth", [4, 8, 16])
@pytest.mark.parametrize("k", [3, 64, 1000])
@pytest.mark.parametrize("positive", [True, False])
def test_a_model_of_a_tensor_core_is_within_the_bound(depth, k, positive):
    rng = np.random.default_rng(k + depth)
    for name in ("tf32", "fp16", "bf16"):
        row = PRECISIONS[name]
        parts = rng.random((4, k)) if positive else rng.standard_normal((4, k))
        ar, ai, br, bi = (split(x.astype(np.float32), row)[0].astype(float) for x in parts)
        chain = np.concatenate([ar * br, ai * bi if positive else -ai * bi])
        error = abs(tensor_core(chain, depth) - math.fsum(chain))
        limit = bounds.accumulation_error(row, k, "cuda") * np.hypot(ar, ai) @ np.hypot(br, bi)
        assert error <= limit
        if positive and k == 1000:
            # Not idle: positive addends are truncated downward again and again.
            assert error > limit / 100


@pytest.mark.parametrize("name", NAMES)
def test_kept_and_dropped_products_make_up_all(name):
    row = PRECISIONS[name]
    every = sum(
        math.prod(row.term_roundoffs[:i]) * math.prod(row.term_roundoffs[:j])
        for i, j in product(range(row.terms), repeat=2)
    )
    assert bounds.kept_size(row) + row.dropped == pytest.approx(every, rel=2.0**-6)
    assert bounds.kept_size(row) >= 1


def test_complex_scalars_mix_the_parts():
    row = PRECISIONS["tf32"]
    plain = bounds.product_bound(row, 64, "cpu")
    assert bounds.product_bound(row, 64, "cpu", alpha=1j) == pytest.approx(plain, rel=1e-3)
    mixed = bounds.product_bound(row, 64, "cpu", alpha=1 + 1j)
    assert mixed == pytest.approx(math.sqrt(2) * plain, rel=1e-3)
    assert bounds.product_bound(row, 0, "cpu", alpha=0, beta=1) > 0


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_underflow_terms(backend):
    fp16 = bounds.underflow(PRECISIONS["fp16"], backend)
    assert fp16.of_largest == 2.0**-39
    tf32 = bounds.underflow(PRECISIONS["tf32"], backend)
    assert tf32.of_largest == 0
    assert tf32.operand == (2.0**-136 if backend == "cpu" else 2.0**-126)
    x = np.array([3 * 2.0**-149, 2.0**-137, 1.7 * 2.0**-127], np.float32)
    assert (np.abs(split(x, PRECISIONS["tf32"])[0].astype(float) - x) <= tf32.operand).all()


def test_stages_and_gates_compound():
    row = PRECISIONS["tf32"]
    one = bounds.stage_bound(row, 16, "cpu")
    assert one == pytest.approx((4 + 1) * 2**-11, rel=0.01)
    assert bounds.evolution_bound(row, [4, 4], "cpu") == pytest.approx((1 + one) ** 2 - 1)
    assert bounds.transform_bound(row, (16, 16), "cpu") > (1 + one) ** 2 - 1
    assert bounds.evolution_bound(row, [], "cpu") == 0

"""Worst-case bounds: of products beside models of tensor cores and promoted sums, of an image."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from argand import PRECISIONS, to_pairs
from argand.gates.plan import LARGEST_TILE, separate_small_products, widest_mma
from argand.precision import any_precision
from argand.rounding import split

from workflow.accuracy import bounds
from workflow.accuracy.gate_bounds import evolution_bound, gate_bound
from workflow.accuracy.image_bounds import image_bound
from workflow.accuracy.underflow import underflow

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


def test_sums_too_long_to_bound_have_an_infinite_bound():
    assert bounds.product_bound(PRECISIONS["bf16"], 1 << 22, "cuda") == math.inf


def test_bounds_stand_in_the_order_of_the_precisions():
    at = {name: bounds.product_bound(PRECISIONS[name], 512, "cpu") for name in NAMES}
    assert at["fp64"] < at["fp32"] < at["3xtf32"] < at["tf32"] == at["fp16"] < at["bf16"]
    assert at["3xfp16"] == at["3xtf32"]
    # The numbers themselves, by hand: 2 u k (1 + ...) and 2 v.
    assert at["fp32"] == pytest.approx(1024 * 2**-24 + 2 * 2**-24, rel=1e-3)
    assert at["tf32"] == pytest.approx(2 * 2**-11 + 2**-22 + 1024 * 2**-24 * 1.001, rel=1e-3)


def test_truncation_is_worse_than_rounding_and_promotion_bounds_it():
    for name in ("tf32", "fp16", "bf16"):
        row = PRECISIONS[name]
        cpu = bounds.accumulation_error(row, 4096, "cpu")
        assert bounds.accumulation_error(row, 4096, "cuda") > cpu
    for name in ("3xtf32", "3xfp16"):
        row = PRECISIONS[name]
        assert bounds.accumulation_error(row, 2**16, "cuda") < 2 * bounds.accumulation_error(
            row, 64, "cuda"
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


@pytest.mark.pairwise
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


@pytest.mark.parametrize("name", ["3xtf32", "3xfp16"])
@pytest.mark.parametrize("k", [64, 1000, 4096])
def test_a_model_of_promoted_sums_is_within_the_bound_and_one_without_is_not(name, k):
    """Positive addends, which are truncated downward again and again."""
    rng = np.random.default_rng(k)
    row = PRECISIONS[name]
    a, b = rng.uniform(2.0**13, 2.0**14, (2, k)).astype(np.float32)
    a_terms, b_terms = (
        [term.astype(float) for term in split(x, row)] for x in (a, b)
    )  # products of two of them are exact in fp64
    slices = [slice(start, start + bounds.PROMOTED_EVERY) for start in range(0, k, 64)]

    def chain(part):
        return np.concatenate([a_terms[i][part] * b_terms[j][part] for i, j in row.products])

    exact = math.fsum(chain(slice(None)))
    limit = bounds.accumulation_error(row, k, "cuda") * bounds.kept_size(row)
    total = np.float32(0)
    for part in slices:
        total += np.float32(tensor_core(chain(part), 4))
    promoted = abs(float(total) - exact) / exact
    assert promoted <= limit
    whole = np.concatenate([chain(part) for part in slices])
    plain = abs(tensor_core(whole, 4) - exact) / exact
    assert plain <= bounds.gamma(3 * bounds.truncations(k), 2.0**-23)
    if k == 4096:
        assert plain > limit


@pytest.mark.parametrize("name", NAMES)
def test_kept_and_dropped_products_make_up_all(name):
    row = PRECISIONS[name]
    every = sum(
        math.prod(row.term_roundoffs[:i]) * math.prod(row.term_roundoffs[:j])
        for i, j in product(range(row.terms), repeat=2)
    )
    # Each is rounded up by terms of second order.
    assert (
        every
        <= bounds.kept_size(row) + row.dropped
        <= 1.0001 * every * (1 + max(row.term_roundoffs)) ** 2
    )
    assert bounds.kept_size(row) >= 1


def test_complex_scalars_mix_the_parts():
    row = PRECISIONS["tf32"]
    plain = bounds.product_bound(row, 64, "cpu")
    assert bounds.product_bound(row, 64, "cpu", alpha=1j) == pytest.approx(plain, rel=1e-3)
    mixed = bounds.product_bound(row, 64, "cpu", alpha=1 + 1j)
    assert mixed == pytest.approx(math.sqrt(2) * plain, rel=1e-3)
    assert bounds.product_bound(row, 0, "cpu", alpha=0, beta=1) > 0


def test_the_roundings_of_an_addend_exceed_those_of_an_exact_product():
    """Beside a product that is 0 beta, C and their product are rounded."""
    rng, row, u = np.random.default_rng(0), any_precision("6xint8"), 2.0**-24
    beta, c = rng.uniform(1, 2, (2, 100_000))
    got = (beta.astype(np.float32) * c.astype(np.float32)).astype(float)
    error = (np.abs(got - beta * c) / (beta * c)).max()
    without = bounds.product_bound(row, 1, "cuda")
    assert without + u < error <= bounds.product_bound(row, 1, "cuda", beta=1.5)


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_underflow_terms(backend):
    for name in ("fp16", "3xfp16"):
        assert underflow(PRECISIONS[name], backend).of_largest == 2.0**-39
    tf32 = underflow(PRECISIONS["tf32"], backend)
    assert tf32.of_largest == 0
    assert tf32.operand == (2.0**-136 if backend == "cpu" else 2.0**-126)
    x = np.array([3 * 2.0**-149, 2.0**-137, 1.7 * 2.0**-127], np.float32)
    assert (np.abs(split(x, PRECISIONS["tf32"])[0].astype(float) - x) <= tf32.operand).all()


def scaled_lines(rng, widest):
    """Two lines of components from 2^15 down to below 2^-``widest``, as scaling leaves them."""
    exponents = rng.uniform(-widest, 15, (2, 20_000))
    x = (2.0**exponents * rng.choice([-1, 1], exponents.shape)).astype(np.float32)
    return x[0], x[1]


@pytest.mark.parametrize("name", ["fp16", "3xfp16"])
def test_an_operand_is_within_u_and_the_floor_and_reaches_both(name):
    row = PRECISIONS[name]
    x, _ = scaled_lines(np.random.default_rng(3), 30)
    error = np.abs(sum(term.astype(float) for term in split(x, row)) - x)
    size, floor = np.abs(x.astype(float)), underflow(row, "cpu").of_largest * 2.0**14
    assert (error <= np.maximum(row.u * size, floor)).all()
    # fp32 inputs have 24 bits, so two terms of 11 and their signs leave half of 2^-22 at most.
    assert (error / size)[size > 1].max() > 0.4 * row.u
    assert (error > row.u * size).any()
    assert error[size < floor / row.u].max() > 0.99 * floor


def test_products_of_two_terms_are_within_their_parts_of_the_bound_also_below_the_range():
    """u of each operand, `dropped`, and the floor twice, as `underflow` derives it."""
    row = PRECISIONS["3xfp16"]
    a, b = scaled_lines(np.random.default_rng(4), 30)
    a_terms, b_terms = ([t.astype(float) for t in split(x, row)] for x in (a, b))
    a, b = a.astype(float), b.astype(float)
    kept = sum(a_terms[i] * b_terms[j] for i, j in row.products)
    size, floor = np.abs(a * b), underflow(row, "cpu").of_largest * 2.0**14
    relative = (bounds.roundings(2, row.u) + row.dropped) * size
    absolute = 2 * (floor * (np.abs(a) + np.abs(b)) + floor**2)
    error = np.abs(kept - a * b)
    assert (error <= relative + absolute).all()
    assert (error > relative).any()
    # Without either small product the bound breaks where nothing underflows.
    normal = np.minimum(np.abs(a), np.abs(b)) > 2.0**-3
    for i, j in ((1, 0), (0, 1)):
        less = np.abs(kept - a_terms[i] * b_terms[j] - a * b)
        assert (less > relative + absolute)[normal].mean() > 0.9
    # lo.lo may be dropped: it is there, and never beyond its part of the bound.
    small = np.abs(a_terms[1] * b_terms[1])
    assert small[normal].max() > 0
    assert (small <= row.dropped * size + absolute / 2).all()


@pytest.mark.parametrize("name", ["fp16", "bf16"])
@pytest.mark.parametrize("exponent", [0, -20, 10])
def test_a_result_rounded_once_more_is_within_its_term_and_reaches_it(name, exponent):
    """Parts that are off already, from fp16's subnormal numbers up to near its largest."""
    rng = np.random.default_rng(1)
    exact = np.ldexp(rng.uniform(-8, 8, (2000, 2)), exponent)
    error = np.abs(exact).max() * 2.0**-15
    off = (exact + rng.uniform(-error, error, exact.shape)).astype(np.float32)
    error = np.abs(off - exact)
    stored = to_pairs(off.view(np.complex64)[:, 0][None], name).to_complex64()[0]
    found = np.abs(stored[:, None].view(np.float32) - exact)
    excess = found / bounds.rounded_once(PRECISIONS[name].operand, error, np.abs(exact))
    assert 0.8 < excess.max() <= 1


def test_stages_and_gates_compound():
    row = PRECISIONS["tf32"]
    one = bounds.stage_bound(row, 16, "cpu")
    assert one == pytest.approx((4 + 1) * 2**-11, rel=0.01)
    rounded = 2.0**-24  # the state, before the first gate
    both = (1 + rounded) * (1 + one) ** 2 - 1
    assert evolution_bound(row, [4, 4], "cpu") == pytest.approx(both, rel=1e-9)
    assert bounds.transform_bound(row, (16, 16), "cpu") > (1 + one) ** 2 - 1
    assert evolution_bound(row, [], "cpu") == pytest.approx(rounded)


@pytest.mark.parametrize("name", ["3xfp16", "3xtf32"])
def test_gates_of_split_precisions_have_bounds_of_their_own(name):
    row, fp32 = PRECISIONS[name], PRECISIONS["fp32"]
    for width in (1, 2, 3):
        assert gate_bound(row, width, "cuda") == gate_bound(fp32, width, "cuda")
    widest = widest_mma(row)
    for width in range(4, widest + 1):
        whole = bounds.stage_bound(row, 2**width, "cuda")
        apart = separate_small_products(row, width)
        assert (gate_bound(row, width, "cuda") < whole) == apart
        assert gate_bound(row, width, "cuda") < 1.1 * whole
        assert gate_bound(row, width, "cuda") > gate_bound(row, width, "cpu") > 2 * row.u
    beyond = bounds.stage_bound(row, 2 ** (widest + 1), "cuda", LARGEST_TILE)
    assert gate_bound(row, widest + 1, "cuda") == beyond


def test_peers_of_one_term_are_held_to_their_own_rounding():
    assert gate_bound(PRECISIONS["tf32"], 1, "cuda") > PRECISIONS["tf32"].u


ANTENNAS = 1024


@pytest.mark.parametrize("precision", ["fp16", "3xfp16"])
def test_what_a_scale_loses_of_every_entry_is_allowed(precision: str) -> None:
    """At the zenith all weights are 1, so entries that a scale makes 0 add up in phase."""
    row = PRECISIONS[precision]
    kept, lost = (
        image_bound(one, ANTENNAS, 1, 0.0, "cpu") for one in (replace(row, scaled=False), row)
    )
    assert lost - kept >= ANTENNAS**2 * row.scaled_floor

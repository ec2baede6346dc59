import numpy as np
import pytest
from argand import PRECISIONS, gemm
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.normal import normal
from tests.verdicts import is_right
from workflow.accuracy import bounds
from workflow.accuracy.assessment import FAILURE
from workflow.accuracy.freivalds import freivalds
from workflow.accuracy.lines import spectral_bound
from workflow.accuracy.matrix_product_accuracy import assess_product
from workflow.accuracy.references import product_reference, sample_rows

SMALL_BUDGET = 1e6
"""Flops: leaves the reference with a handful of rows, so that only the whole-result check sees."""


def unseen_row(reference):
    """A row that is not among the reference's sampled ones, away from the ends."""
    taken = set(reference.rows.tolist())
    return next(row for row in range(reference.m // 3, reference.m) if row not in taken)


@pytest.fixture(scope="module")
def large():
    """1024 x 1024 x 256, its result at tf32, and a sampled reference."""
    rng = np.random.default_rng(7)
    a, b = normal(rng, 1024, 256), normal(rng, 256, 1024)
    reference = product_reference(a, b, flop_budget=SMALL_BUDGET)
    assert reference.sampled
    return reference, gemm(a, b, precision="tf32")


@pytest.mark.pairwise
@pytest.mark.parametrize("backend", ["cpu", "cuda"])
@pytest.mark.parametrize("part", [1, 1j])
@pytest.mark.parametrize("where", [(700, 900), (0, 0), (1023, 1023)])
def test_one_wrong_element_of_a_large_result_is_caught(large, backend, part, where):
    reference, result = large
    typical = np.sqrt(2 * reference.k)
    tf32 = PRECISIONS["tf32"]
    assert not freivalds(reference, result, tf32, backend).reason
    wrong = result.copy()
    wrong[where] += part * 0.02 * typical
    verdict = freivalds(reference, wrong, tf32, backend)
    assert f"row {where[0]}," in verdict.reason


def test_the_product_of_a_batch_is_named():
    rng = np.random.default_rng(8)
    a, b = normal(rng, 3, 200, 64), normal(rng, 3, 64, 100)
    reference = product_reference(a, b, flop_budget=SMALL_BUDGET)
    result = gemm(a, b, precision="tf32")
    result[2, 150, 30] += 0.1 * np.sqrt(2 * 64)
    assert "product 2, row 150," in freivalds(reference, result, PRECISIONS["tf32"], "cpu").reason


def test_the_assessment_fails_for_an_element_that_no_reference_row_holds(large):
    reference, result = large
    row = unseen_row(reference)
    wrong = result.copy()
    wrong[row, 5] *= 1.05
    tf32 = PRECISIONS["tf32"]
    assert assess_product(reference, result, tf32, backend="cpu").verified
    accuracy = assess_product(reference, wrong, tf32, backend="cpu")
    assert not accuracy.verified
    assert accuracy.reference == "sampled"
    assert accuracy.reference_rows == len(reference.rows)
    # The sampled rows themselves are right: only the check of the whole result sees it.
    assert accuracy.componentwise_re < bounds.product_bound(tf32, reference.k, "cpu")


def spoil_nan(x):
    x[500, 77] = np.nan


def spoil_infinity(x):
    x[500, 77] = np.inf


def spoil_rows(x):
    x[[300, 301]] = x[[301, 300]]


def spoil_columns(x):
    x[:, [300, 301]] = x[:, [301, 300]]


def spoil_tile(x):
    x[512:640, 256:384] = 0


def spoil_zero(x):
    x[800, 800] = 0


def spoil_pair(x):
    """Two elements of one row and block exchanged: their sum does not change."""
    x[900, [128, 129]] = x[900, [129, 128]]


def spoil_conjugate(x):
    x[999, 3] = np.conj(x[999, 3])


@pytest.mark.parametrize(
    "spoil",
    [
        spoil_nan, spoil_infinity, spoil_rows, spoil_columns, spoil_tile, spoil_zero, spoil_pair,
        spoil_conjugate,
    ],
)  # fmt: skip
def test_spoiled_results_are_caught(large, spoil):
    reference, result = large
    wrong = result.copy()
    spoil(wrong)
    assert freivalds(reference, wrong, PRECISIONS["tf32"], "cpu").reason
    assert not assess_product(reference, wrong, PRECISIONS["tf32"], backend="cpu").verified


@pytest.mark.parametrize("precision", PRECISIONS)
def test_full_size_rows_at_modest_k(precision):
    rng = np.random.default_rng(3)
    a, b = normal(rng, 512, 96), normal(rng, 96, 4096)
    result = gemm(a, b, precision=precision)
    reference = product_reference(a, b, flop_budget=SMALL_BUDGET)
    row = PRECISIONS[precision]
    assert not freivalds(reference, result, row, "cpu").reason
    result[400, 4000] += 0.01 * np.sqrt(2 * 96)
    assert "column 4000" in freivalds(reference, result, row, "cpu").reason


@pytest.mark.parametrize("precision", ["3xtf32", "bf16"])
def test_a_long_contraction_still_shows_a_zeroed_element(precision):
    rng = np.random.default_rng(4)
    a, b = normal(rng, 24, 4096), normal(rng, 4096, 20)
    result = gemm(a, b, precision=precision)
    reference = product_reference(a, b, flop_budget=SMALL_BUDGET)
    assert reference.sampled
    for backend in ("cpu", "cuda"):
        assert not freivalds(reference, result, PRECISIONS[precision], backend).reason
        wrong = result.copy()
        wrong[13, 17] = 0
        assert freivalds(reference, wrong, PRECISIONS[precision], backend).reason


def structured(kind, rng, m, k, n):
    """Operands whose rounding errors are anything but random and independent."""
    if kind == "constant":
        return np.full((m, k), 0.1 + 0.3j), np.full((k, n), 1 / 3 + 0.7j)
    if kind == "fourier":
        wave = np.exp(-2j * np.pi * np.outer(np.arange(k), np.arange(k)) / k)
        return np.resize(wave, (m, k)), np.resize(wave, (k, n))
    if kind == "integer":
        whole = [rng.integers(-128, 128, shape) for shape in ((m, k), (k, n))]
        return whole[0] + 1j, whole[1] * (1 + 1j)
    if kind == "lognormal":
        sizes = [np.exp(4 * rng.standard_normal(shape)) for shape in ((m, k), (k, n))]
        return normal(rng, m, k) * sizes[0], normal(rng, k, n) * sizes[1]
    if kind == "rank one":
        return np.outer(normal(rng, m), normal(rng, k)), np.outer(normal(rng, k), normal(rng, n))
    if kind == "cancelling":
        half = normal(rng, m, k // 2)
        right = normal(rng, k // 2, n)
        return np.hstack([half, half]), np.vstack([right, -right])
    return normal(rng, m, k), normal(rng, k, n)


KINDS = ["constant", "fourier", "integer", "lognormal", "rank one", "cancelling", "normal"]


@pytest.mark.pairwise
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("shape", [(130, 1000, 70), (3, 64, 257), (97, 16, 1), (1, 300, 80)])
def test_no_false_alarm_for_structured_operands(kind, precision, shape):
    rng = np.random.default_rng(11)
    a, b = structured(kind, rng, *shape)
    row = PRECISIONS[precision]
    a, b = a.astype(row.output), b.astype(row.output)
    reference = product_reference(a, b)
    accuracy = assess_product(reference, gemm(a, b, precision=row), row, backend="cpu")
    # Where all cancels nothing is left whose relative error could be proved.
    if kind == "cancelling":
        assert accuracy.verdict == "unproven"
    else:
        assert is_right(accuracy, precision), accuracy.reason


@pytest.mark.each_value
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(("alpha", "beta"), [(1, 0), (0.3 - 2j, 1.5j), (-1, 1), (1j, 0)])
def test_no_false_alarm_over_seeds(precision, alpha, beta):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        a, b, c = normal(rng, 2, 33, 50), normal(rng, 50, 70), normal(rng, 2, 33, 70)
        reference = product_reference(a, b, c, alpha=alpha, beta=beta, seed=seed)
        result = gemm(a, b, c, alpha=alpha, beta=beta, precision=precision)
        accuracy = assess_product(reference, result, PRECISIONS[precision], backend="cpu")
        assert accuracy.verified, accuracy.reason
        result[1, 20, 60] += 0.01 * abs(alpha) * np.sqrt(100)
        assert not assess_product(reference, result, PRECISIONS[precision], backend="cpu").verified


@pytest.mark.parametrize("rounding", ["toward_zero", "nearest_even", "half_ulp_truncate"])
def test_the_rounding_is_part_of_what_is_checked(rounding):
    rng = np.random.default_rng(5)
    a, b = normal(rng, 64, 128), normal(rng, 128, 64)
    reference = product_reference(a, b)
    result = gemm(a, b, precision="tf32", rounding=rounding)
    row = PRECISIONS["tf32"]
    assert not freivalds(reference, result, row.with_rounding(rounding), "cpu").reason
    other = "half_ulp_truncate" if rounding == "toward_zero" else "toward_zero"
    assert freivalds(reference, result, row.with_rounding(other), "cpu").reason


@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_spectral_bound_is_one(k, columns, seed):
    rng = np.random.default_rng(seed)
    b = normal(rng, k, columns) * 10.0 ** rng.integers(-30, 30)
    largest = np.linalg.norm(np.vstack([b.real, b.imag]).astype(float), 2)
    bound = spectral_bound(b.astype(complex))
    assert largest <= bound <= largest * 64 ** (1 / 32) * (1 + 1e-5)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("unit", [1e-300, 1e-170, 1e170, 1e300])
def test_operands_whose_squares_are_out_of_range(unit, k):
    rng = np.random.default_rng(8)
    a, b = normal(rng, 17, k).astype(complex), normal(rng, k, 40).astype(complex) * unit
    reference = product_reference(a, b)
    result = gemm(a, b, precision="fp64")
    assert assess_product(reference, result, PRECISIONS["fp64"], backend="cpu").verified
    result[5, 30] *= 1 + 1e-9
    wrong = assess_product(reference, result, PRECISIONS["fp64"], backend="cpu")
    assert not wrong.verified
    assert "column 30" in freivalds(reference, result, PRECISIONS["fp64"], "cpu").reason


def test_the_threshold_is_what_its_derivation_says():
    """One planted error e is the residual, but for its phase: either part is |e| / sqrt(2) to |e|.

    The threshold is lambda F, F of the norm s_J of a block, of which 64^(1/32) may be lost.
    """
    rng, row = np.random.default_rng(12), PRECISIONS["fp32"]
    m, k, n = 150, 40, 100
    a, b = normal(rng, m, k), normal(rng, k, n)
    reference = product_reference(a, b)
    last = b[:, 64:].astype(complex)
    spectral = np.linalg.norm(np.vstack([last.real, last.imag]), 2)
    norm = np.linalg.norm(a[40].astype(complex))
    either_part_of_each_block = 2 * m * 2
    strength = np.sqrt(2 * np.log(2 * either_part_of_each_block / FAILURE))
    threshold = strength * bounds.sum_error(row, k, "cpu") * norm * spectral
    result = gemm(a, b, precision=row)
    result[40, 70] += 1000 * threshold
    worst = freivalds(reference, result, row, "cpu").worst
    # What fp64 itself and the right result err by is far below 1 of 1000.
    assert 999 / (np.sqrt(2) * 64 ** (1 / 32)) <= worst <= 1001


def test_the_rounding_of_a_large_addend_is_no_alarm():
    """An addend's rounding is beyond all that a product of small operands may be off by."""
    rng, row = np.random.default_rng(13), PRECISIONS["fp32"]
    a, b, c = (normal(rng, *shape) for shape in ((70, 3), (3, 40), (70, 40)))
    a *= 1e-9
    reference = product_reference(a, b, c, alpha=1, beta=0.3 - 0.7j)
    result = gemm(a, b, c, alpha=1, beta=0.3 - 0.7j, precision=row)
    found = freivalds(reference, result, row, "cpu")
    assert (found.reason, found.suspicion) == ("", "")
    result[30, 20] *= 1 + 1e-5
    assert freivalds(reference, result, row, "cpu").reason


def test_a_chain_of_sums_is_within_its_factor():
    """The factor of F against a plain fp32 loop whose order is known."""
    rng = np.random.default_rng(2)
    a, b = rng.random(300, np.float32), rng.random((300, 64), np.float32)
    total = np.zeros(64, np.float32)
    for x, y in zip(a, b, strict=True):
        total += x * y
    error = np.linalg.norm(total - a.astype(float) @ b.astype(float))
    relative = bounds.sum_error(PRECISIONS["fp32"], 150, "cpu")
    assert 0 < error <= relative * np.linalg.norm(a) * np.linalg.norm(b, 2)


def test_sampled_rows_hold_the_ends_and_are_spread():
    rows = sample_rows(100_000, 50, 1)
    assert rows[0] == 0
    assert rows[-1] == 99_999
    assert len(rows) <= 50
    assert np.diff(rows).max() < 3 * 100_000 / 49
    assert not np.array_equal(rows, sample_rows(100_000, 50, 2))
    np.testing.assert_array_equal(sample_rows(7, 9, 0), np.arange(7))

"""Grades of how errors grow with k: ours get an A, algorithms with known faults do not."""

import numpy as np
import pytest
from argand import PRECISIONS, gemm
from argand.device import cpu
from argand.rounding import round_operand

from tests.covers import EXHAUSTIVE
from workflow.accuracy import bounds, grading
from workflow.accuracy.grading import (
    GrowthRow,
    grade_growth,
    grade_product,
    growth_slope,
    read_growth,
    steepest,
    write_growth,
)
from workflow.storage.checked_json import write_object

EVERY_K = grading.K_VALUES
GRADED = list(PRECISIONS) if EXHAUSTIVE else ["fp64", "3xfp16", "bf16"]


@pytest.fixture(scope="module", autouse=True)
def k_values():
    """The short run takes every other k to 4096: the longest takes as long as all others."""
    with pytest.MonkeyPatch.context() as patch:
        if not EXHAUSTIVE:
            patch.setattr(grading, "K_VALUES", EVERY_K[::2])
        yield


@pytest.fixture(scope="module")
def rows():
    return grade_growth(cpu(), GRADED, seed=1)


def test_our_product_gets_an_a_at_every_precision(rows):
    assert [(row.precision, row.part) for row in rows] == [
        (name, part) for name in GRADED for part in ("re", "im")
    ]
    for row in rows:
        assert row.grade == "A", row
        assert row.k_values == grading.K_VALUES
        assert all(0 < e <= b for e, b in zip(row.errors, row.bounds, strict=True)), row
        assert row.slope <= steepest(PRECISIONS[row.precision], "cpu") <= 1


@pytest.mark.gpu
def test_the_card_gets_an_a_at_every_precision(gpu):
    """Promoted sums stay level up to the longest k; unpromoted ones grow at most linearly."""
    for row in grade_growth(gpu, PRECISIONS, seed=1):
        assert row.grade == "A", row


def test_rows_survive_json(rows, tmp_path):
    write_growth(tmp_path / "growth.json", rows)
    assert read_growth(tmp_path / "growth.json") == rows
    write_object(tmp_path / "broken.json", {"growth": [{"precision": "fp32"}]})
    with pytest.raises(ValueError, match=r"broken.json: not a row of growth"):
        read_growth(tmp_path / "broken.json")
    with pytest.raises(ValueError, match="grade 'Z'"):
        GrowthRow.from_mapping({**vars(rows[0]), "grade": "Z"})


def three_multiplications(a, b, precision):
    """Gauss: Im = (ar + ai)(br + bi) - ar br - ai bi, which cancels where the product is real."""

    def hold(x):
        return round_operand(np.ascontiguousarray(x), precision)

    ar, ai, br, bi = map(hold, (a.real, a.imag, b.real, b.imag))
    both = hold(a.real + a.imag) @ hold(b.real + b.imag)
    return (ar @ br - ai @ bi) + 1j * (both - ar @ br - ai @ bi)


@pytest.mark.parametrize("name", ["fp32", "bf16"])
def test_three_multiplications_lose_the_imaginary_part(name):
    re, im = grade_product(three_multiplications, PRECISIONS[name], backend="cpu")
    assert re.grade == "A"
    assert im.grade == "C"
    assert any(error > bound for error, bound in zip(im.errors, im.bounds, strict=True))


@pytest.mark.parametrize("name", ["fp32", "tf32"])
def test_an_error_that_grows_as_k_squared_fails(name):
    u = 2.0**-24 if name == "fp32" else 2.0**-11

    def product(a, b, precision):
        k = a.shape[1]
        return gemm(a, b, precision=precision) + 0.1 * u * k**2 * (np.abs(a) @ np.abs(b)) * 1j

    re, im = grade_product(product, PRECISIONS[name], backend="cpu")
    assert re.grade == "A"
    assert im.grade == "F"
    assert im.slope > 1.2


def test_an_error_within_its_bounds_that_will_leave_them_is_no_a():
    """Half of the bound at the longest k, and a growth as k^2."""
    row, most = PRECISIONS["fp32"], grading.K_VALUES[-1]
    largest = bounds.product_bound(row, most, "cpu") / 2

    def product(a, b, precision):
        size = np.abs(a.real) @ np.abs(b.imag) + np.abs(a.imag) @ np.abs(b.real)
        exact = a.astype(complex) @ b.astype(complex)
        return exact + 1j * largest * (a.shape[1] / most) ** 2 * size

    re, im = grade_product(product, row, backend="cpu")
    assert re.grade == "A"
    assert all(error <= bound for error, bound in zip(im.errors, im.bounds, strict=True))
    assert im.grade != "A"


def test_an_error_that_is_only_normwise_small_is_no_a():
    def product(a, b, precision):
        found = gemm(a, b, precision=precision)
        norms = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=0)
        return found + 2.0**-22 * norms * (1 + 1j)

    grades = [row.grade for row in grade_product(product, PRECISIONS["fp32"], backend="cpu")]
    assert grades == ["A", "C"] or grades == ["C", "C"]


def test_nan_and_a_coarser_precision_fail():
    def broken(a, b, precision):
        return np.full((len(a), b.shape[1]), np.nan)

    assert {row.grade for row in grade_product(broken, PRECISIONS["fp32"], backend="cpu")} == {"F"}

    def coarse(a, b, precision):
        return gemm(a, b, precision="bf16")

    graded = grade_product(coarse, PRECISIONS["fp32"], backend="cpu")
    assert {row.grade for row in graded} == {"F"}


def test_slopes():
    k = np.array(grading.K_VALUES, float)
    assert growth_slope(1e-7 * k, 1e-9) == pytest.approx(1)
    assert growth_slope(1e-7 * np.sqrt(k), 1e-9) == pytest.approx(0.5)
    assert growth_slope(0 * k, 1e-9) == pytest.approx(0)
    assert growth_slope(np.where(k > 500, np.nan, 1), 1e-9) == np.inf


def test_what_theory_allows_of_growth(monkeypatch):
    """Linear in fp32; promoted sums, and what rounding of operands hides, far less."""
    monkeypatch.setattr(grading, "K_VALUES", EVERY_K)
    allowed = {name: steepest(row, "cuda") for name, row in PRECISIONS.items()}
    assert allowed["fp32"] == pytest.approx(1, abs=0.01)
    assert allowed["3xtf32"] == allowed["3xfp16"] < 0.3
    assert allowed["bf16"] < allowed["tf32"] < 0.3
    assert steepest(PRECISIONS["3xtf32"], "cpu") > 0.9

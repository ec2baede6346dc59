"""The rows of `PRECISIONS`: formats of the standards, roundoffs, products, errors of names."""

from fractions import Fraction
from itertools import product

import pytest
from argand import PRECISIONS, get_precision
from argand.gemm.problem import gemm_problem
from argand.operand_format import ROUNDINGS
from argand.precision import BF16, FP16, FP32, FP64, PEER_CLASSES, TF32


def test_names_are_the_keys():
    assert all(row.name == name for name, row in PRECISIONS.items())
    assert all(row.peer_class in PEER_CLASSES for row in PRECISIONS.values())


@pytest.mark.parametrize(
    ("form", "largest", "smallest"),
    [
        (FP64, 1.7976931348623157e308, 5e-324),
        (FP32, 3.4028234663852886e38, 2.0**-149),
        (TF32, (2 - 2.0**-10) * 2.0**127, 2.0**-136),
        (FP16, 65504.0, 2.0**-24),
        (BF16, 3.3895313892515355e38, 2.0**-133),
    ],
)
def test_formats_are_those_of_the_standards(form, largest, smallest):
    assert form.largest == largest
    assert form.smallest_subnormal == smallest


def test_unit_roundoffs():
    assert PRECISIONS["fp64"].u == 2.0**-53
    assert PRECISIONS["fp32"].u == 2.0**-24
    assert PRECISIONS["tf32"].u == 2.0**-11
    assert PRECISIONS["tf32"].with_rounding("toward_zero").u == 2.0**-10
    assert PRECISIONS["3xtf32"].u == 2.0**-22
    assert PRECISIONS["3xfp16"].u == 2.0**-22
    assert PRECISIONS["fp16"].u == 2.0**-11
    assert PRECISIONS["bf16"].u == 2.0**-8


@pytest.mark.parametrize("name", PRECISIONS)
def test_dropped_products_bound_the_worst_signs(name):
    row = PRECISIONS[name]
    sizes = [Fraction(1)]
    for roundoff in row.term_roundoffs[:-1]:
        sizes.append(sizes[-1] * Fraction(roundoff))
    grown = [s * (1 + Fraction(r)) for s, r in zip(sizes, row.term_roundoffs, strict=True)]
    pairs = set(product(range(row.terms), repeat=2)) - set(row.products)
    assert row.dropped >= float(sum(grown[i] * grown[j] for i, j in pairs)) * (1 - 1e-12)
    assert (row.dropped == 0) == (row.terms == 1)


@pytest.mark.parametrize("name", ["3xtf32", "3xfp16"])
def test_the_splits_add_their_products_from_small_to_big(name):
    row = PRECISIONS[name]
    assert row.products == ((1, 0), (0, 1), (0, 0))
    assert row.terms == 2


def test_roundings_can_be_chosen_for_tf32_only():
    mixed = get_precision("3xtf32", ["toward_zero", "nearest_even"])
    assert mixed.roundings == ("toward_zero", "nearest_even")
    assert get_precision("tf32", "nearest_even").roundings == ("nearest_even",)
    assert PRECISIONS["tf32"].allowed_roundings == ROUNDINGS
    with pytest.raises(ValueError, match=r"rounding for bf16 must be 1 of \['nearest_even'\]"):
        get_precision("bf16", "toward_zero")
    with pytest.raises(ValueError, match="rounding for tf32 must be 1 of"):
        get_precision("tf32", ["toward_zero", "toward_zero"])
    with pytest.raises(ValueError, match="rounding for 3xtf32 must be 2 of"):
        get_precision("3xtf32", "up")
    assert get_precision("3xfp16", ["nearest_even"] * 2) == PRECISIONS["3xfp16"]
    with pytest.raises(ValueError, match=r"rounding for 3xfp16 must be 2 of \['nearest_even'\]"):
        get_precision("3xfp16", "toward_zero")


def test_problems_print_a_precision_in_few_words():
    text = str(gemm_problem((4, 4), (4, 4), precision="tf32", rounding="toward_zero"))
    assert "precision=Precision('tf32', roundings=('toward_zero',))," in text


def test_the_range_of_scaled_lines():
    """2^14 over half of fp16's subnormal spacing 2^-24, and that times the unit roundoff."""
    scaled = {name: row for name, row in PRECISIONS.items() if row.scaled and row.operand == FP16}
    assert list(scaled) == ["3xfp16", "fp16"]
    for row in scaled.values():
        assert row.operand.scaled_exponent == 14
        assert row.scaled_floor == 2.0**-39
    assert scaled["3xfp16"].full_range == 39 - 22
    assert scaled["fp16"].full_range == 39 - 11
    assert PRECISIONS["tf32"].full_range is None
    assert PRECISIONS["tf32"].scaled_floor == 0


def test_an_unknown_precision_names_the_choices():
    with pytest.raises(ValueError, match=r"precision must be one of \['fp64'.*got 'fp7'"):
        get_precision("fp7")

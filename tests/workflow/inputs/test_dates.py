"""Dates of times that are integers beyond fp64."""

from __future__ import annotations

import numpy as np
import pytest

from workflow.data import Coordinate
from workflow.inputs.dates import date_in, from_the_first, julian_date, of_texts


@pytest.mark.parametrize(
    ("first", "units", "since", "date"),
    [
        (1 << 60, "ns", "1970-01-01", "2006-07-14T23:58:24.606846976"),
        (-(1 << 60), "ns", "1970-01-01", "1933-06-20T00:01:35.393153024"),
        (1 << 60, "ns", "2250-01-01T00:00:00.5Z", "2286-07-14T23:58:25.106846976"),
        (1 << 60, "ns", "0001-01-01", "0037-07-14T23:58:24.606846976"),
        (1 << 55, "us", "1970-01-01", "3111-09-16T23:10:18.963968000"),
        (1 << 60, "ns", "2400-01-01T00:00:00.123456789", "2436-07-13T23:58:24.730303765"),
        (
            1 << 60, "ns", "2024-01-01T00:00:00.1234567891",
            "2024-01-01T00:00:00.1234567891 and 1152921504606846976 ns",
        ),
        (1 << 60, "s", "a Monday", "a Monday and 1152921504606846976 s"),
        (1 << 60, "ns", "", "1152921504606846976 ns"),
        ((1 << 63) + 5, "ns", "1970-01-01", "2262-04-11T23:47:16.854775813"),
        ((1 << 64) - 4, "ticks", "", "18446744073709551612 ticks"),
    ],
)  # fmt: skip
def test_the_first_of_large_integers_is_a_date_of_any_year(
    first: int, units: str, since: str, date: str
) -> None:
    """NumPy has nanoseconds of 1677 to 2262; dates beyond those years came out as others."""
    kind = np.uint64 if first >= 1 << 63 else np.int64
    given = Coordinate(np.array([first, first + 3], kind), units)
    found, said = from_the_first(given, since)
    assert found.values.tolist() == [0, 3]
    assert said == date


def test_unsigned_times_that_fall() -> None:
    """Differences of uint64 are modulo 2^64: times before the first became very late ones."""
    given = Coordinate((1 << 63) + np.uint64(10) - np.arange(4, dtype=np.uint64), "ns")
    assert from_the_first(given, "1970-01-01")[0].values.tolist() == [0, -1, -2, -3]


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("2000-01-01T12:00:00Z", 2451545.0), ("2000-01-01 12:00", 2451545.0),
        ("1858-11-17", 2400000.5), ("-4713-11-24T12:00:00", 0.0),
        ("the Julian date 2461372.916666667", 2461372.916666667), ("the Julian date", None),
        ("2018-01-14T14:11:33.500000000 UTC", 2458133.0 + 7893.5 / 86400),
        ("2026-13-01", None), ("a Monday", None), ("2026-11-28T10:00:00+1", None), ("", None),
        ("2026-11-28T10:00:00+99:99", None),
        ("2000-01-01T12:00:00+00:00", 2451545.0), ("2000-01-01 18:00 +06:00", 2451545.0),
        ("2000-01-01T08:30-0330", 2451545.0),
    ],
)  # fmt: skip
def test_julian_dates(date: str, expected: float | None) -> None:
    found = julian_date(date_in(f"time since {date}"))
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-9))


def test_texts_are_times_from_the_first_one() -> None:
    texts = ["2026-11-28T10:00:00.25Z", "2026-11-28T11:00:01.5+01:00", "2026-11-28 09:59:59"]
    found, date = of_texts(Coordinate(np.array(texts)))
    assert found.values.tolist() == [0.0, 1.25, -1.25]
    assert (found.units, date) == ("s", texts[0])
    names = Coordinate(np.array([*texts, "dusk"]))
    assert of_texts(names) == (names, "")


def test_large_integers_since_a_date_with_a_zone() -> None:
    given = Coordinate(np.array([1 << 60, (1 << 60) + 3]), "ns")
    assert from_the_first(given, "1970-01-01T01:00:00+01:00")[1] == "2006-07-14T23:58:24.606846976"

"""Times and bytes in sentences."""

from __future__ import annotations

import pytest

from workflow.counted import in_time_units
from workflow.storage.memory import in_words


@pytest.mark.parametrize(
    ("us", "words"),
    [
        (1.13e6, "1.13 s"), (3_600e6, "3600 s"), (999_499.0, "999 ms"), (999_600.0, "1.00 s"),
        (12_900.0, "12.9 ms"), (56.0, "56.0 µs"), (0.25, "250 ns"), (0.0, "0.00 ns"),
    ],
)  # fmt: skip
def test_times_have_three_digits_and_a_unit(us: float, words: str) -> None:
    assert in_time_units(us) == words


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"), (999, "999 bytes"), (1023, "1023 bytes"), (1024, "1 KiB"),
        (1012 << 10, "1012 KiB"), ((1 << 20) - 1, "1024 KiB"), (1536 << 20, "1.5 GiB"),
        (5000 << 50, "5000 PiB"),
    ],
)  # fmt: skip
def test_a_size_has_no_exponent(size: int, words: str) -> None:
    assert in_words(size) == words

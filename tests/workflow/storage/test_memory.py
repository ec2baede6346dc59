"""Bytes in words."""

from __future__ import annotations

import pytest

from workflow.storage.memory import in_words


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

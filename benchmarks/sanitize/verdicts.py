"""Verdicts of the calls that the sanitizer watches."""

from __future__ import annotations

from collections.abc import Iterable


def exit_status(results: Iterable[tuple[str, str]]) -> int:
    """Run calls, print those that are wrong and how many; 1 where one is, else 0.

    Args:
        results: each call's name, and what is wrong with its result, empty where nothing is.
    """
    calls = wrong = 0
    for name, reason in results:
        calls += 1
        if reason:
            wrong += 1
            print(f"{name}: {reason}")
    print(f"{calls} calls, {wrong} wrong")
    return int(wrong > 0)

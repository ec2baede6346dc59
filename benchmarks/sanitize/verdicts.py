"""Verdicts of the calls that the sanitizer watches."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import Any


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


def bounded_program(
    description: str | None,
    argument: tuple[str, Sequence[str]],
    calls: Callable[[str, Any], Iterable[tuple[str, float]]],
    wrong: str,
) -> Callable[[], int]:
    """Return a program that runs the calls selected by its only argument, and its `exit_status`.

    Args:
        description: what the command does.
        argument: its name and choices.
        calls: given the choice and CuPy, each call's name and the ratio of its error to its bound.
        wrong: what a ratio above 1 means, with ``{}`` in place of the ratio.
    """
    name, choices = argument

    def main() -> int:
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument(name, choices=choices)
        choice = getattr(parser.parse_args(), name)
        import cupy

        cupy.cuda.set_allocator(None)
        return exit_status(
            (call, "" if ratio <= 1 else wrong.format(f"{ratio:.3g}"))
            for call, ratio in calls(choice, cupy)
        )

    return main

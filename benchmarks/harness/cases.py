"""The cases that a benchmark measures: those of ``--shape``, then those of ``--suite``."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

C = TypeVar("C")


def add_cases(
    found: ArgumentParser, form: str, suites: Iterable[str],
    *, suite: str, parse: Callable[[str], object] | None = None,
) -> None:  # fmt: skip
    """Add both arguments.

    Shapes have a form such as ROWSxCOLUMNS, of two sizes where nothing else parses them; ``suite``
    says what suites hold.
    """
    parse = parse or two_sizes(form)
    found.add_argument("--shape", type=parse, action="append", default=[], help=form)
    found.add_argument("--suite", choices=list(suites), help=f"{suite}; after those of --shape")


def asked_cases(
    found: ArgumentParser, arguments: Namespace, cases: Iterable[C],
    suites: Mapping[str, Sequence[C]],
) -> list[C]:  # fmt: skip
    """Return the cases of ``--shape``, then the suite's.

    Ends with the usage where there are none.
    """
    every = [*cases, *suites.get(arguments.suite, ())]
    if not every:
        found.error("one of --shape and --suite is needed")
    return every


def two_sizes(form: str) -> Callable[[str], tuple[int, int]]:
    """Return a parser of two positive numbers, which messages call by ``form``, as ROWSxCOLUMNS."""

    def parse(text: str) -> tuple[int, int]:
        parts = text.split("x")
        if len(parts) != 2 or not all(part.isdecimal() and int(part) > 0 for part in parts):
            raise ArgumentTypeError(f"shape must be {form} of positive numbers, got {text!r}")
        return int(parts[0]), int(parts[1])

    return parse

"""``argand compare A B``: what changed from one run to another."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from workflow.compare.figure import draw_comparison
from workflow.compare.ratios import Ratio
from workflow.compare.reading import TableError, read_rows
from workflow.compare.verdicts import FACTORS, Compared, Margins, compare
from workflow.compare.writing import summary, write_csv, write_markdown
from workflow.storage.failures import printable

REGRESSION, MISTAKE = 1, 2


def main(words: Sequence[str] | None = None) -> int:
    """Compare two results folders or performance tables row by row.

    Returns 0, 1 where ours became slower or less accurate or no longer verifies, and 2 for what
    cannot be compared: files that are missing or damaged, runs with nothing in common.
    """
    given = _parser().parse_args(words)
    margins = Margins(given.margin / 100, given.error_margin / 100, frozenset(given.across))
    try:
        before, after = read_rows(given.a), read_rows(given.b)
        rows = compare(before, after, margins)
        given.out.mkdir(parents=True, exist_ok=True)
        write_markdown(given.out / "comparison.md", rows, (str(given.a), str(given.b)), margins)
        write_csv(given.out / "comparison.csv", rows)
        draw_comparison(given.out / "comparison.svg", rows, margins)
        if not any(row.is_compared for row in rows):
            raise ValueError(f"{given.a}, {given.b}: {_why_none(rows)}")
    except (TableError, ValueError, OSError) as error:
        print(f"compare: {printable(str(error))}", file=sys.stderr)
        return MISTAKE
    for row in rows:
        if row.regression:
            name = " ".join(part for part in row.key if part)
            print(printable(f"{name}: {row.verdict}{_ratio(row.time)}"))
    print(f"{printable(summary(rows))} See {given.out}/comparison.md")
    return REGRESSION if any(row.regression for row in rows) else 0


def _why_none(rows: Sequence[Compared]) -> str:
    """Return why no row compares: which workloads are in one run only, or what differs."""
    reasons = list(dict.fromkeys(row.reason or f"{row.verdict}: {row.key[0]}" for row in rows))
    differ = [name for name in FACTORS if any(one.startswith(f"{name} ") for one in reasons)]
    hint = f"; --across {','.join(differ)} compares them all the same" if differ else ""
    return f"no row of one compares with the other: {'; '.join(reasons[:4])}{hint}"


def _ratio(time: Ratio | None) -> str:
    return f", {time.value:.3g} of the time" if time else ""


def _named(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("must name a results folder or a performance.csv, got ''")
    return Path(text)


def _percent(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 <= (value := float(text)) <= 1000:
            return value
    raise argparse.ArgumentTypeError(f"must be a number from 0 to 1000, got {text!r}")


def _factors(text: str) -> list[str]:
    found = [name.strip() for name in text.split(",") if name.strip()]
    if set(found) - set(FACTORS):
        raise argparse.ArgumentTypeError(f"must be of {', '.join(FACTORS)}, got {text!r}")
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="argand compare", description=main.__doc__)
    parser.add_argument("a", metavar="A", type=_named, help="results folder or performance.csv")
    parser.add_argument("b", metavar="B", type=_named, help="the later one")
    parser.add_argument("--out", type=Path, default=Path("comparison"), help="folder to write to")
    parser.add_argument(
        "--margin", type=_percent, default=5.0, help="percent of the time that do not count"
    )
    parser.add_argument("--error-margin", type=_percent, default=25.0, help="percent of the error")
    parser.add_argument(
        "--across", type=_factors, default=[], metavar="FACTORS",
        help=f"compare although these differ, with commas between them: {', '.join(FACTORS)}",
    )  # fmt: skip
    return parser


if __name__ == "__main__":
    sys.exit(main())

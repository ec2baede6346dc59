"""Sizes drawn at random: how often ours are slower than the best library, and by how much.

    python -m benchmarks.sweep softmax --cases 200 --seed 20261123 --csv softmax.csv
    python -m benchmarks.sweep small --cases 60 --seed 20261123 -- --precisions tf32,fp16

A seed draws the sizes, so nobody chooses them: give the day's date. Each operation is measured by
its own benchmark (``python -m benchmarks.gemm``, ``softmax``, ``dft``), ours and every installed
peer in one run, calls in a row; what stands behind ``--`` goes to it. Sizes are log-uniform:

- gemm: m, n and k of 32 to 16384, every fifth a batch of 2 to 64, operands and result of at most
  2 GiB;
- softmax: 16 to 2^20 columns, 2^27 elements;
- dft: lengths of 8 to 2^20, 2^24 elements;
- small: products, transforms and softmaxes whose every axis is 1 to 512.

A summary follows for each precision: how many cases have a peer of its class, how many of them are
slower than 0.97 of the best one, the worst, the tenth percentile, the median and the geometric mean
of best peer's time over ours, and the ten worst cases.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dft import __main__ as dft
from benchmarks.gemm import __main__ as gemm
from benchmarks.harness.rows import write_rows
from benchmarks.softmax import __main__ as softmax
from tools.docs.recorded import plain_rows

Row = dict[str, str]
SLOWER = 0.97
"""A case is slower where ours has less than this part of the best peer's rate."""
_WORST = 10
_MOST_BYTES = 2 << 30
_BENCHMARKS: dict[str, Callable[[Sequence[str]], int]] = {
    "gemm": gemm.main, "softmax": softmax.main, "dft": dft.main,
}  # fmt: skip
_MEASURING = ("--rest", "0", "--seconds", "0.1", "--repeats", "10")


def main(argv: Sequence[str] | None = None) -> int:
    """Draw, measure and sum up; the exit status is 1 where a result of ours did not verify."""
    given = list(sys.argv[1:] if argv is None else argv)
    own, more = (given[: given.index("--")], given[given.index("--") + 1 :]) if (
        "--" in given
    ) else (given, [])  # fmt: skip
    found = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("what", choices=DRAWN)
    found.add_argument("--cases", type=int, default=50, help="sizes to draw")
    found.add_argument("--seed", type=int, required=True, help="such as the day's date")
    found.add_argument("--csv", type=Path, help="where the rows go")
    arguments = found.parse_args(own)
    rng = np.random.default_rng(arguments.seed)
    shapes = DRAWN[arguments.what](rng, arguments.cases)
    status, rows = 0, list[Row]()
    with tempfile.TemporaryDirectory() as folder:
        for operation, wanted in shapes.items():
            path = Path(folder) / f"{operation}.csv"
            each = [text for shape in wanted for text in ("--shape", shape)]
            status |= _BENCHMARKS[operation]([*each, *_MEASURING, *more, "--csv", str(path)])
            rows += plain_rows(path)
            if arguments.csv is not None:
                write_rows(arguments.csv, rows)
    for line in summary(rows):
        print(line)
    return status


def _sizes(
    rng: np.random.Generator, low: float, high: float, count: tuple[int, ...]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Log-uniform integers from ``low`` to ``high``."""
    return np.exp(rng.uniform(np.log(low), np.log(high), count)).round().astype(np.int64)


def _gemm(rng: np.random.Generator, cases: int) -> dict[str, list[str]]:
    found: list[str] = []
    while len(found) < cases:
        m, n, k = _sizes(rng, 32, 16384, (3,)).tolist()
        batch = int(_sizes(rng, 2, 64, (1,))[0]) if rng.random() < 0.2 else 1
        if 8 * batch * (m * k + k * n + m * n) <= _MOST_BYTES:
            found.append(f"{m}x{n}x{k}" if batch == 1 else f"{batch}x{m}x{n}x{k}")
    return {"gemm": found}


def _softmax(rng: np.random.Generator, cases: int) -> dict[str, list[str]]:
    columns = _sizes(rng, 16, 1 << 20, (cases,)).tolist()
    return {"softmax": [f"{max(1, (1 << 27) // each)}x{each}" for each in columns]}


def _dft(rng: np.random.Generator, cases: int) -> dict[str, list[str]]:
    lengths = _sizes(rng, 8, 1 << 20, (cases,)).tolist()
    return {"dft": [f"{max(1, (1 << 24) // each)}x{each}" for each in lengths]}


def _small(rng: np.random.Generator, cases: int) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {name: [] for name in _BENCHMARKS}
    for number in range(cases):
        name = list(found)[number % len(found)]
        sizes = _sizes(rng, 1, 512, (3 if name == "gemm" else 2,)).tolist()
        found[name].append("x".join(map(str, sizes)))
    return {name: shapes for name, shapes in found.items() if shapes}


DRAWN: dict[str, Callable[[np.random.Generator, int], dict[str, list[str]]]] = {
    "gemm": _gemm, "softmax": _softmax, "dft": _dft, "small": _small,
}  # fmt: skip
"""The functions that draw the sizes of each sweep."""


@dataclass(frozen=True)
class Ratio:
    """One case of ours: the best peer's time over its own."""

    case: str
    precision: str
    value: float
    time_us: float


def ratios(rows: Sequence[Row]) -> list[Ratio]:
    """Return the ratio of each verified row of ours that has a peer of its class.

    Rows of packed and half operands are left out, because no library takes those.
    """
    return [
        Ratio(row["workload"], row["precision"], float(row["speedup"]), float(row["time_us_p50"]))
        for row in rows
        if row["implementation"] == "argand" and row["verified"] == "True" and row["speedup"]
        and row["input"] in ("complex64", "complex128", "real", "fp32")
    ]  # fmt: skip


def summary(rows: Sequence[Row]) -> list[str]:
    """Lines for people: each precision, then the ten worst cases of all."""
    every, lines = ratios(rows), list[str]()
    for precision in dict.fromkeys(one.precision for one in every):
        values = np.array([one.value for one in every if one.precision == precision])
        lines.append(
            f"{precision:8} {len(values):4} cases, {int((values < SLOWER).sum()):3} slower than "
            f"{SLOWER} of the best peer; worst {values.min():.2f}, p10 "
            f"{np.quantile(values, 0.1):.2f}, median {np.median(values):.2f}, geometric mean "
            f"{np.exp(np.log(values).mean()):.2f}"
        )
    lines += [
        f"  {one.value:5.2f}  {one.precision:8} {one.case}  {one.time_us:.1f} us"
        for one in sorted(every, key=lambda one: one.value)[:_WORST]
    ]
    unverified = sum(
        row["implementation"] == "argand" and row["verified"] != "True" for row in rows
    )
    if unverified:
        lines.append(f"{unverified} results of ours did not verify or did not run: see the CSV")
    return lines


if __name__ == "__main__":
    sys.exit(main())

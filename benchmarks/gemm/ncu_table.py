"""A compact table of what Nsight Compute measured: one line a kernel.

    python -m benchmarks.gemm.ncu_table "tf32 4096x4096x4096=tf32.csv" "bf16 512x512x512=bf16.csv"

Reads what ``ncu --csv --page raw --print-units base`` printed, a file a case, and prints columns
separated by `` | ``. docs/data/h200-ncu.txt is its output, by `benchmarks/gemm/profile.sh`.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

SEPARATOR = " | "
ABSENT = "-"
_STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
_STALLS = (
    "barrier", "dispatch_stall", "gmma", "long_scoreboard", "math_pipe_throttle", "membar",
    "mio_throttle", "short_scoreboard", "sleeping", "wait",
)  # fmt: skip
_SHOWN_STALLS = 3

Metrics = Mapping[str, float]


def _plain(name: str, form: str = ".1f", scale: float = 1.0) -> Callable[[Metrics], str]:
    def write(metrics: Metrics) -> str:
        return format(scale * metrics[name], form) if name in metrics else ABSENT

    return write


def _first(names: Sequence[str]) -> Callable[[Metrics], str]:
    def write(metrics: Metrics) -> str:
        return next((f"{metrics[name]:.1f}" for name in names if name in metrics), ABSENT)

    return write


def _largest_stalls(metrics: Metrics) -> str:
    found = {
        name: metrics[_STALL.format(name)] for name in _STALLS if _STALL.format(name) in metrics
    }
    most = sorted(found.items(), key=lambda item: -item[1])[:_SHOWN_STALLS]
    return ", ".join(f"{name} {value:.2f}" for name, value in most) or ABSENT


_SM = "avg.pct_of_peak_sustained_active"
_ELAPSED = "avg.pct_of_peak_sustained_elapsed"
_TENSOR = (f"sm__pipe_tensor_cycles_active.{_SM}", f"sm__pipe_tensor_op_hmma_cycles_active.{_SM}")
"""Names of one pipe: which of them a card has depends on the version of Nsight Compute."""
_SOURCES: dict[str, tuple[tuple[str, ...], Callable[[Metrics], str]]] = {
    "duration (us)": (
        ("gpu__time_duration.sum",), _plain("gpu__time_duration.sum", ".1f", 1e-3)),
    "registers": (
        ("launch__registers_per_thread",), _plain("launch__registers_per_thread", ".0f")),
    "shared (KiB)": (
        ("launch__shared_mem_per_block",), _plain("launch__shared_mem_per_block", ".1f", 2.0**-10)),
    "tensor pipe (%)": (_TENSOR, _first(_TENSOR)),
    "issue slots (%)": ((f"sm__inst_issued.{_SM}",), _plain(f"sm__inst_issued.{_SM}")),
    "L2 (TB/s)": (
        ("lts__t_bytes.sum.per_second",), _plain("lts__t_bytes.sum.per_second", ".2f", 1e-12)),
    "L2 (%)": ((f"lts__throughput.{_ELAPSED}",), _plain(f"lts__throughput.{_ELAPSED}")),
    "DRAM read (MB)": (("dram__bytes_read.sum",), _plain("dram__bytes_read.sum", ".0f", 1e-6)),
    "DRAM written (MB)": (
        ("dram__bytes_write.sum",), _plain("dram__bytes_write.sum", ".0f", 1e-6)),
    "DRAM (%)": (
        (f"gpu__dram_throughput.{_ELAPSED}",), _plain(f"gpu__dram_throughput.{_ELAPSED}")),
    "largest stalls (cycles an issue)": (
        tuple(_STALL.format(name) for name in _STALLS), _largest_stalls),
}  # fmt: skip
"""Each column with the metrics that it is made of, and how it is written."""
COLUMNS = ("case", "kernel", *_SOURCES)


def metrics() -> list[str]:
    """Return every metric that the table needs, for ``ncu --metrics``."""
    return [name for names, _ in _SOURCES.values() for name in names]


def read_kernels(text: str) -> list[tuple[str, Metrics]]:
    """Return (kernel, its metrics) of each launch in a raw page; a second row holds the units.

    Raises ValueError where the text has no such page.
    """
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith('"ID"')]
    if not starts:
        raise ValueError(f"no raw page of Nsight Compute, got {text[:200]!r}")
    rows = list(csv.DictReader(lines[starts[0] :]))[1:]
    return [(row["Kernel Name"], _numbers(row)) for row in rows]


def _numbers(row: Mapping[str, str]) -> Metrics:
    found = {}
    for name in metrics():
        text = (row.get(name) or "").replace(",", "")
        if text and text != "n/a":
            found[name] = float(text)
    return found


def table(cases: Sequence[tuple[str, str]]) -> list[str]:
    """Return the lines of the table of (case, raw page)."""
    lines = [SEPARATOR.join(COLUMNS)]
    for case, text in cases:
        for kernel, found in read_kernels(text):
            cells = (write(found) for _, write in _SOURCES.values())
            lines.append(SEPARATOR.join([case, kernel.partition("(")[0], *cells]))
    return lines


def main(argv: Sequence[str]) -> int:
    """Print the metrics that are needed (without arguments), or the table of CASE=FILE."""
    if not argv:
        print(*metrics(), sep="\n")
        return 0
    cases = [argument.rpartition("=")[::2] for argument in argv]
    print(
        *table([(case, Path(path).read_text(encoding="utf-8")) for case, path in cases]), sep="\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

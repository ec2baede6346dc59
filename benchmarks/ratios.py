"""Memory of calls and jobs on this machine's CPU, and times of files and a study: `make bench`.

The speed of calls is `benchmarks.cpu_calls`'. Both sides of a ratio of times are measured in turn,
so that a machine whose speed drifts does not decide. Prints a table and writes it to
results/benchmarks/ratios.csv. Nothing is asserted: read it.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import h5py
import numpy as np
from argand.device import cpu

from benchmarks.harness.rows import write_rows
from workflow.data import Staged
from workflow.storage.staged import write_staged
from workflow.versions import versions

ROOT = Path(__file__).resolve().parent.parent
MIB = 1 << 20
_REPEATS = 7
"""Timed pairs of calls."""


@dataclass(frozen=True)
class Ratio:
    """One measured ratio of ``ours`` over ``other``, or of rates its inverse."""

    what: str
    ours: float
    other: float
    unit: str
    ratio: float


def in_turn(ours: Callable[[], object], other: Callable[[], object]) -> tuple[float, float, float]:
    """Return median seconds of both, and the median ratio of pairs, after one warm-up."""
    pairs = [(_seconds(ours), _seconds(other)) for _ in range(_REPEATS + 1)]
    first, second = zip(*pairs[1:], strict=True)
    ratios = [a / b for a, b in pairs[1:]]
    return statistics.median(first), statistics.median(second), statistics.median(ratios)


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


PEAK_OF_PROCESS = """
def peak():
    # Not getrusage: after a fork it goes on from the parent's peak.
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
"""

SOFTMAX_PEAK = """
import numpy as np
from argand import softmax
x = np.ones((4096, 16384), np.float32)
softmax(x[:2])
before = peak()
y = softmax(x)
print((peak() - before) * 1024 / y.nbytes)
"""


def _printed_number(program: str, *arguments: str) -> float:
    """Return the number that a process of this program prints."""
    command = [sys.executable, "-c", PEAK_OF_PROCESS + program, *arguments]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def softmax_memory_ratio() -> Ratio:
    """Return peak memory that a softmax adds, over its result; a tile a thread may come on top."""
    ratio = _printed_number(SOFTMAX_PEAK)
    what = "memory that softmax fp32 4096 x 16384 adds over its result"
    return Ratio(what, ratio, 1.0, "results", ratio)


def staging_ratio(megabytes: int = 512) -> Ratio:
    """Return speed of a staged file, checksums and all, over h5py's contiguous write with fsync."""
    data = np.random.default_rng(3).standard_normal((megabytes * MIB // 8, 2), np.float32)
    operand = data.view(np.complex64).reshape(-1, 1024)
    with tempfile.TemporaryDirectory(dir=ROOT) as folder:
        ours_path, other_path = Path(folder) / "ours.h5", Path(folder) / "other.h5"
        staged = Staged({"a": operand}, {"a": ("m", "k")})

        def ours() -> None:
            write_staged(ours_path, staged, workload="x", kind="gemm")

        def other() -> None:
            other_path.unlink(missing_ok=True)
            with h5py.File(other_path, "w") as file:
                file.create_dataset("a", data=operand)
            handle = os.open(other_path, os.O_RDONLY)
            os.fsync(handle)
            os.close(handle)

        def ours_anew() -> None:
            ours_path.unlink(missing_ok=True)
            ours()

        seconds = in_turn(ours_anew, other)
    what = f"staging {megabytes} MiB: speed over h5py contiguous with fsync"
    return Ratio(what, *seconds[:2], "s", 1 / seconds[2])


PRODUCT_PEAK = """
import sys
import numpy as np
from argand import gemm
size, precision = int(sys.argv[1]), sys.argv[2]
rng = np.random.default_rng(0)
def make():
    x = np.empty((size, size), np.complex128 if precision == "fp64" else np.complex64)
    for row in x:
        row[:] = rng.standard_normal(size) + 1j * rng.standard_normal(size)
    return x
gemm(np.ones((8, 8), np.complex64), np.ones((8, 8), np.complex64), precision=precision)
before = peak()
a, b = make(), make()
c = gemm(a, b, precision=precision)
after = peak()
print((after - before) * 1024 / (a.nbytes + b.nbytes + c.nbytes))
"""

JOBS_PEAK = """
import logging, sys
from dataclasses import replace
from pathlib import Path
from argand.device import resolve
from workflow.steps.execute import execute
from workflow.steps.staging import stage
from workflow.preflight.loading import load_study
folder, size, log = Path(sys.argv[1]), int(sys.argv[2]), logging.getLogger("peak")
case = {"kind": "gemm", "m": size, "n": size, "k": size}
workload = load_study({"device": "cpu", "workloads": {"x": case}}).workload("x")
before = peak()
stage(workload, [], folder / "staged.h5", log)
device = replace(resolve("cpu"), cache_bytes=0)  # no copies, whatever cache this machine has
execute(workload, folder / "staged.h5", folder / "run.h5", device, log)
print((peak() - before) * 1024 / (3 * 8 * size * size))
"""


def job_memory_ratio(size: int = 3072) -> Ratio:
    """Return the peak memory of staging and running a product at all precisions, in one process."""
    with tempfile.TemporaryDirectory() as folder:
        ratio = _printed_number(JOBS_PEAK, folder, str(size))
    what = f"the same of the stage and run jobs, all precisions, {size}^3 complex64"
    return Ratio(what, ratio, 1.0, "operands", ratio)


def memory_ratios(size: int = 3072) -> list[Ratio]:
    """Return the peak memory of a process that multiplies, over operands plus result."""
    found = []
    for precision in ("fp32", "tf32", "3xtf32", "3xfp16", "fp16", "fp64"):
        ratio = _printed_number(PRODUCT_PEAK, str(size), precision)
        what = f"peak memory of gemm {precision} at {size}^3 over operands plus result"
        found.append(Ratio(what, ratio, 1.0, "operands", ratio))
    return found


def study_times(study: Path = ROOT / "config" / "config.yaml") -> list[Ratio]:
    """Return the wall time of the default study with its report, and its part without computing."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"),
            "--config", f"study={study}", "out=results", "--directory", folder, "--cores", "2",
        ]  # fmt: skip
        started = time.perf_counter()
        report = ["--quiet", "all", "--report", f"{folder}/results/report.html"]
        for flags in ([], report):
            subprocess.run([*command, *flags], check=True, capture_output=True)
        total = time.perf_counter() - started
        logs = [path.read_text() for path in Path(folder).glob("results/logs/**/*.log")]
    seconds = re.findall(r"^computing took ([0-9.]+) s$", "\n".join(logs), re.MULTILINE)
    computing = sum(map(float, seconds))
    rest = total - computing
    return [
        Ratio("default study, seconds", total, 1.0, "s", total),
        Ratio("the same without computing", rest, 1.0, "s", rest),
    ]


def main() -> None:
    """Measure everything, print the table, write the CSV."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    print(f"{cpu()}; {versions()}")
    rows: list[Ratio] = []
    measures = (
        softmax_memory_ratio, staging_ratio, memory_ratios, job_memory_ratio, study_times,
    )  # fmt: skip
    for measure in measures:
        measured = measure()
        for row in measured if isinstance(measured, list) else [measured]:
            rows.append(row)
            print(
                f"{row.what:68} {row.ours:8.3f} {row.other:8.3f} {row.unit:8} {row.ratio:6.2f}",
                flush=True,
            )
    write_rows(ROOT / "results" / "benchmarks" / "ratios.csv", [asdict(row) for row in rows])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"written to results/benchmarks/ratios.csv (peak memory {peak:.0f} MiB)")


if __name__ == "__main__":
    main()

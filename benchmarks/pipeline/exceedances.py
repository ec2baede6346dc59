"""Random cases of every kind and precision against their two bounds: how often, and how nearly.

    python -m benchmarks.pipeline.exceedances --cases 2000 --out docs/data/exceedances-cpu.csv
    python -m benchmarks.pipeline.exceedances --cases 500 --device cuda --out exceedances-h200.csv

Sizes, distributions and operations are drawn by ``--seed``; each case is computed and assessed by
the functions that the pipeline calls. A right result that is not verified or unproven is printed
with what reproduces it, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import csv
import io
import multiprocessing
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from argand.device import Device, available_cores, resolve
from argand.precision import any_precision

from benchmarks.harness.samples import on_host
from workflow.storage.files import atomic_text
from workflow.threads import hold_blas
from workflow.workloads import KINDS, workload_of
from workflow.workloads.base import Workload

Parameters = dict[str, Any]
_TASKS = 32
"""Tasks of a kind: each process takes one after another, so that none waits long for the last."""


def _size(rng: np.random.Generator, largest: int) -> int:
    """Return a log-uniform number from 1."""
    return int(np.exp(rng.uniform(0, np.log(largest + 1))))


def _gemm(rng: np.random.Generator) -> Parameters:
    beta = complex(*rng.standard_normal(2)) if rng.random() < 0.3 else 0
    alpha = complex(*rng.standard_normal(2)) if rng.random() < 0.3 else 1
    init = str(rng.choice(["normal", "uniform", "lognormal"]))
    return {
        "m": _size(rng, 96), "n": _size(rng, 96), "k": _size(rng, 2048),
        "batch": _size(rng, 4), "alpha": [alpha.real, alpha.imag], "beta": [beta.real, beta.imag],
        "op_a": str(rng.choice(list("NTC"))), "op_b": str(rng.choice(list("NTC"))),
        "init": init, "phi": float(rng.uniform(0, 4)),
    }  # fmt: skip


def _beamforming(rng: np.random.Generator) -> Parameters:
    return {
        "beams": _size(rng, 32), "antennas": _size(rng, 256), "samples": _size(rng, 256),
        "channels": _size(rng, 3), "noise": float(rng.choice([0, 1e-6, 1])),
        "sources": [{"azimuth_deg": 40, "elevation_deg": 70, "power": 1.0}],
    }  # fmt: skip


def _dft(rng: np.random.Generator) -> Parameters:
    window = {"window": "blackmanharris"} if rng.random() < 0.3 else {}
    return {
        "length": _size(rng, 4096), "batch": _size(rng, 16), "inverse": bool(rng.random() < 0.5),
        "norm": str(rng.choice(["backward", "ortho", "forward"])),
        "noise": float(rng.choice([0, 1e-8, 1])), **window,
    }  # fmt: skip


def _softmax(rng: np.random.Generator) -> Parameters:
    scale = float(np.exp(rng.uniform(-3, 5)))
    return {"rows": _size(rng, 32), "columns": _size(rng, 8192), "scale": scale}


def _statevector(rng: np.random.Generator) -> Parameters:
    qubits = int(rng.integers(1, 11))
    name = str(rng.choice(["random", "qft", "ghz"]))
    depth = {"depth": _size(rng, 40)} if name == "random" else {}
    fuse = "auto" if rng.random() < 0.4 else int(rng.integers(2, 7))
    initial = str(rng.choice(["zero", "random"]))
    circuit = {"name": name, "qubits": qubits, **depth}
    return {"circuit": circuit, "fuse": fuse, "initial": initial}


def _solve(rng: np.random.Generator) -> Parameters:
    wave = {"source": "cylinder", "ka": float(np.exp(rng.uniform(-2, 3)))}
    if rng.random() < 0.3:
        return {**wave, "n": 2 * _size(rng, 64), "rhs": _size(rng, 5)}
    return {"n": _size(rng, 128), "rhs": _size(rng, 5), "batch": _size(rng, 3)}


DRAWN: dict[str, Callable[[np.random.Generator], Parameters]] = {
    "gemm": _gemm,
    "beamforming": _beamforming,
    "softmax": _softmax,
    "dft": _dft,
    "solve": _solve,
    "statevector": _statevector,
}


@dataclass
class Row:
    """All cases of a kind at a precision.

    Attributes:
        exceeded: right results that were called suspect or wrong.
        unproven: results whose bound proves nothing, of data that cancel or overflow a range.
        largest: the largest error over its bound.
        median_ratio: the median of bound over error.
    """

    kind: str
    precision: str
    device: str
    cases: int = 0
    exceeded: int = 0
    unproven: int = 0
    largest: float = 0.0
    median_ratio: float | None = None


@dataclass(frozen=True)
class Task:
    """Some cases of a kind, for one process."""

    kind: str
    numbers: range
    seed: int
    device: str


def run(task: Task) -> tuple[list[Row], dict[str, list[float]], list[str]]:
    """Return the rows of some cases, all ratios of bound to error, and what was exceeded."""
    device = resolve(task.device)
    names = KINDS[task.kind].case_type.precision_names
    rows = {name: Row(task.kind, name, device.name) for name in names}
    ratios: dict[str, list[float]] = {name: [] for name in names}
    said = []
    for number in task.numbers:
        rng = np.random.default_rng([task.seed, number, *task.kind.encode()])
        workload = _workload(task.kind, DRAWN[task.kind](rng), int(rng.integers(1 << 31)))
        staged = workload.stage()
        reference = workload.reference(staged)
        for name, row in rows.items():
            one = workload.argand(staged, any_precision(name), device)
            result = _computed(one, staged, device)
            found = workload.assess(
                workload.as_computed(staged, one.plan_words), reference, result, one.precision,
                device.backend,
            )  # fmt: skip
            row.cases += 1
            row.unproven += found.verdict == "unproven"
            if found.verdict in ("suspect", "wrong"):
                row.exceeded += 1
                case = f"{task.kind} {name} --seed {task.seed}, case {number}"
                said.append(f"{case}: {found.reason}\n  {workload.case}")
            if found.rel_frobenius and found.bound:
                row.largest = max(row.largest, found.rel_frobenius / found.bound)
                if found.ratio:
                    ratios[name].append(found.ratio)
    return list(rows.values()), ratios, said


def merged(parts: Sequence[tuple[list[Row], dict[str, list[float]], list[str]]]) -> list[Row]:
    """Return the rows of all tasks of one kind."""
    whole = []
    for same in zip(*(rows for rows, _, _ in parts), strict=True):
        row = Row(same[0].kind, same[0].precision, same[0].device)
        for one in same:
            row.cases += one.cases
            row.exceeded += one.exceeded
            row.unproven += one.unproven
            row.largest = max(row.largest, one.largest)
        known = [ratio for _, ratios, _ in parts for ratio in ratios[row.precision]]
        row.median_ratio = float(np.median(known)) if known else None
        whole.append(row)
    return whole


def _workload(kind: str, parameters: Parameters, seed: int) -> Workload:
    case = KINDS[kind].case_type.model_validate({"kind": kind, **parameters})
    return workload_of("case", case, seed)


def _computed(one: Any, staged: Any, device: Device) -> Any:
    given = one.prepare(staged.operands)
    if device.backend == "cuda":
        import cupy

        given = {name: cupy.asarray(value) for name, value in given.items()}
    return on_host(one.compute(given))


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw, assess, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cases", type=int, default=2000, help="of each kind")
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--jobs", type=int, default=available_cores(), help="processes")
    parser.add_argument("--kinds", default=",".join(DRAWN), help="some of the kinds, by commas")
    parser.add_argument("--out", type=Path, help="a CSV file for the rows")
    chosen = parser.parse_args(arguments)
    rows: list[Row] = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(chosen.jobs, context, initializer=hold_blas) as pool:
        for kind in chosen.kinds.split(","):
            tasks = [
                Task(kind, range(start, chosen.cases, _TASKS), chosen.seed, chosen.device)
                for start in range(min(_TASKS, chosen.cases))
            ]
            parts = list(pool.map(run, tasks))
            for _, _, said in parts:
                print(*said, sep="\n", end="\n" if said else "")
            found = merged(parts)
            rows += found
            for row in found:
                print(
                    f"{row.kind:12} {row.precision:7} {row.cases} cases, {row.exceeded} exceeded, "
                    f"{row.unproven} unproven, largest error / bound {row.largest:.2f}, "
                    f"median bound / error {row.median_ratio or 0:.1f}", flush=True,
                )  # fmt: skip
    if chosen.out:
        text = io.StringIO()
        writer = csv.DictWriter(text, [one.name for one in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(asdict, rows))
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        atomic_text(chosen.out, text.getvalue())
    return int(any(row.exceeded for row in rows))


if __name__ == "__main__":
    sys.exit(main())

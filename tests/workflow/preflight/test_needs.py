"""Requests of jobs to a scheduler: sizes known before anything is staged, and what follows."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path

import h5py
import numpy as np
import pytest
from argand import PRECISIONS, get_precision

from workflow.data import Staged
from workflow.preflight.estimates import call_seconds, estimate
from workflow.preflight.loading import load_study
from workflow.preflight.needs import FIXED, MAX_URGENT, Needs, asked, needs, urgency
from workflow.study import outlined
from workflow.workloads import KINDS
from workflow.workloads.base import Workload

GENERATED = [
    *((kind, KINDS[kind].small) for kind in KINDS if kind != "statevector"),
    ("gemm", {"m": 5, "n": 6, "k": 7, "batch": 2, "op_a": "C", "op_b": "T", "beta": 1.0}),
    ("correlate", {"antennas": 5, "samples": 36, "integrate": 12, "form": "triangle"}),
    ("solve", {"source": "cylinder", "ka": 2.0, "n": 20, "rhs": 3}),
]
"""Kinds and cases whose outline has the sizes of what is staged; of a circuit it may have more."""


def workload(kind: str, case: Mapping[str, object]) -> Workload:
    return load_study({"device": "cpu", "workloads": {"x": {"kind": kind, **case}}}).workload("x")


def assert_alike(outline: Staged, staged: Staged) -> None:
    assert outline.axes == staged.axes
    found, expected = (
        {name: (data.shape, data.dtype) for name, data in one.operands.items()}
        for one in (outline, staged)
    )
    assert found == expected
    assert all(data.strides == data.ndim * (0,) for data in outline.operands.values())


@pytest.mark.parametrize(("kind", "case"), GENERATED)
def test_the_outline_is_what_is_staged(kind: str, case: Mapping[str, object]) -> None:
    one = workload(kind, case)
    outline, staged = one.outline(), one.stage()
    assert_alike(outline, staged)
    for precision in map(get_precision, PRECISIONS):
        assert one.shape(outline, precision) == one.shape(staged, precision)


@pytest.mark.parametrize(
    ("kind", "names", "shape"),
    [
        ("gemm", ("a", "b"), (2, 4, 4)),
        ("beamforming", ("weights", "samples"), (4, 4)),
        ("dft", ("samples",), (1, 1, 3, 8)),
        ("softmax", ("x",), (3, 8)),
        ("correlate", ("voltages",), (1, 2, 3, 8)),
    ],
)
def test_the_outline_of_a_file_is_what_is_staged(
    tmp_path: Path, kind: str, names: tuple[str, ...], shape: tuple[int, ...]
) -> None:
    values = np.ones(shape, np.float32 if kind == "softmax" else np.complex64)
    with h5py.File(tmp_path / "in.h5", "w") as file:
        for name in names:
            file[name] = values
    case = {"input": {"file": str(tmp_path / "in.h5"), **{n: n for n in names}}}
    one = workload(kind, case | ({"axis": -1} if kind == "dft" else {}))
    outline, staged = one.outline(), one.stage()
    sizes = [{n: d.size for n, d in given.operands.items()} for given in (outline, staged)]
    assert sizes[0] == sizes[1]
    precision = get_precision("fp64")
    assert one.shape(outline, precision) == one.shape(staged, precision)


@pytest.mark.parametrize("fuse", [3, "auto"])
def test_the_outline_of_a_circuit_is_an_upper_bound(fuse: int | str) -> None:
    one = workload("statevector", {"circuit": {"name": "qft", "qubits": 6}, "fuse": fuse})
    outline, staged = one.outline(), one.stage()
    for name, data in staged.operands.items():
        assert outline.operands[name].dtype == data.dtype
        assert outline.operands[name].size >= data.size
    precision = get_precision("fp64")
    assert one.shape(outline, precision).flops >= one.shape(staged, precision).flops
    assert outline.operands["state"].shape == staged.operands["state"].shape


def test_the_outline_of_a_product_is_that_of_its_workload() -> None:
    study = load_study(
        {
            "workloads": {
                "beams": {"kind": "beamforming", **KINDS["beamforming"].small},
                "which": {"kind": "softmax", "input": {"workload": "beams"}},
            }
        }
    )
    _, outline = outlined(study.chain("which"))
    assert outline.operands["x"].shape == (2, 2, 31, 12)
    assert needs(study, "which", "stage").memory_mb > 1000


def test_needs_follow_the_sizes() -> None:
    study = load_study(
        {
            "workloads": {
                "small": {"kind": "gemm", "m": 64, "n": 64, "k": 64},
                "large": {"kind": "gemm", "m": 8192, "n": 8192, "k": 8192},
            }
        }
    )
    gigabytes = 3 * 16 * 8192**2 / 1e6
    for step in ("stage", "run", "verify", "deliver", "draw"):
        least, most = needs(study, "small", step), needs(study, "large", step)
        assert 1000 < least.memory_mb < 3000
        assert 10 <= least.minutes < 15
        assert most.memory_mb > least.memory_mb + (gigabytes if step != "stage" else -1)
        assert most.minutes <= 24 * 60
    cpu, gpu = needs(study, "large", "run"), needs(study, "large", "run", gpu=True)
    assert gpu.minutes < cpu.minutes
    assert gpu.memory_mb > cpu.memory_mb
    verified = [needs(study, "large", "verify", gpu=gpu) for gpu in (False, True)]
    assert verified[0] == verified[1]


def test_a_job_on_a_gpu_asks_for_more_than_libraries_and_kernels_were_seen_to_take(
    root: Path,
) -> None:
    """`benchmarks.pipeline.job_memory` recorded the memory of these kinds.

    The Snakemakes around a job take 224 MiB each.
    """
    seen = json.loads((root / "docs" / "data" / "h200-job-memory.json").read_text())
    assert set(KINDS) >= seen["host_peak_mib"].keys() >= {"gemm", "dft", "statevector"}
    study = load_study({"workloads": {"x": {"kind": "softmax", "rows": 1, "columns": 8}}})
    asked = needs(study, "x", "run", gpu=True).memory_mb * 1e6 / 2**20
    for kind, steps in seen["host_peak_mib"].items():
        assert asked > steps["cuda"] + 2 * 224, kind


def test_jobs_of_the_study_for_a_large_gpu_took_less_than_they_ask_for(root: Path) -> None:
    """The lease log of a run on two H200s has jobs of every kind, of up to 16 GB."""
    study = load_study(root / "config" / "h200.yaml")
    log = (root / "docs" / "data" / "h200-study-leases.jsonl").read_text().splitlines()
    ended = [line for line in map(json.loads, log) if line["event"] == "given back"]
    seen = {line["job"].removeprefix("run "): line["host_peak_bytes"] for line in ended}
    names = seen.keys() & set(study.names)
    assert len(names) > 20
    for name in names:
        assert seen[name] < 0.8e6 * needs(study, name, "run", gpu=True).memory_mb, name


def test_calls_on_a_cpu_took_no_longer_than_estimated(root: Path) -> None:
    """The times of the default study are recorded; models of transforms took longer."""
    study = load_study(root / "config" / "config.yaml")
    recorded = (root / "docs" / "data" / "cpu-study.csv").read_text().splitlines()
    seen = [row for row in csv.DictReader(recorded) if row["workload"] in study.names]
    assert {row["kind"] for row in seen} >= {"beamforming", "softmax", "gemm", "statevector", "dft"}
    for row in seen:
        workload, outline = outlined(study.chain(row["workload"]))
        shape = workload.shape(outline, get_precision("fp64"))
        precision = get_precision(row["precision"])
        found = call_seconds(shape.flops, shape.bytes_moved, precision, gpu=False)
        longer = 4 if row["kind"] == "dft" and not precision.exact_operands else 1
        assert 1e-6 * float(row["time_us_p50"]) < longer * found, row


def test_a_run_counts_the_implementations_that_it_has() -> None:
    def seconds(*precisions: str, baselines: str = "none", gpu: bool = False) -> float:
        case = {"kind": "gemm", "m": 4096, "n": 4096, "k": 4096, "precisions": list(precisions)}
        study = load_study({"workloads": {"x": {**case, "baselines": baselines}}})
        return estimate(study, "x", "run", gpu=gpu)[1]

    alone, beside = seconds("fp32"), seconds("fp32", baselines="auto")
    assert 2.5 < beside / alone < 3.5, "NumPy at fp64 and fp32"
    assert alone < seconds("3xtf32") / 1.8 < seconds("3xfp16") / 1.8**2 < seconds("7xint8")
    assert seconds("3xfp16", gpu=True) == seconds("fp32", gpu=True)


def test_short_calls_are_repeated_until_their_times_settle() -> None:
    """Half a second a row that is compared; models of a GPU's precisions are timed three times."""
    case = {"kind": "gemm", "m": 4, "n": 4, "k": 4, "precisions": ["fp64", "fp32", "fp16", "bf16"]}
    study = load_study({"workloads": {"x": case}})
    assert 2 < estimate(study, "x", "run")[1] < 2.1, "fp64, fp32, and NumPy at both"
    assert 4 < estimate(study, "x", "run", gpu=True)[1] < 4.1, "four of ours and four peers"


def test_staging_has_no_result_and_delivery_no_operands() -> None:
    """So beams of few antennas are staged sooner than they are delivered."""
    case = {"kind": "beamforming", "antennas": 8, "beams": 512, "samples": 4096, "channels": 4}
    study = load_study({"workloads": {"many": case}})
    stage, deliver, verify = (
        estimate(study, "many", step)[1] for step in ("stage", "deliver", "verify")
    )
    assert stage < deliver / 20
    assert deliver == pytest.approx(512 * 4096 * 4 * 16 / 1e8)
    assert verify > stage + deliver


def test_a_reference_that_is_not_sampled_counts_whole() -> None:
    """The reference computes all detected beams again, and a sample of beams."""
    case = {
        "kind": "beamforming", "channels": 8, "beams": 2048, "antennas": 2048, "samples": 4096,
        "detect": "power", "integrate": 64,
    }  # fmt: skip
    study = load_study({"workloads": {"x": case}})
    assert estimate(study, "x", "verify")[1] > 8 * 8 * 2048 * 2048 * 4096 / 2e10


def test_a_result_larger_than_its_operands_counts() -> None:
    case = {"kind": "gemm", "m": 8192, "n": 8192, "k": 8}
    outer = needs(load_study({"workloads": {"outer": case}}), "outer", "run")
    assert outer.memory_mb > 2 * 16 * 8192**2 / 1e6


def test_a_verification_asks_for_the_blocks_of_its_threads() -> None:
    study = load_study({"workloads": {"x": {"kind": "gemm", "m": 8192, "n": 8192, "k": 8192}}})
    asks = asked(study, "verify")["mem_mb"]
    found = [asks(Wildcards(part="x"), 1, threads=threads) for threads in (1, 2, 8, 40, 80)]
    assert found == sorted(found)
    assert found[1] > 2 * found[0] - 2000, "each process has a piece"
    assert found[-1] == found[-2], "there are no more blocks than the data has"
    assert found[0] == asks(Wildcards(part="x"), 1) == needs(study, "x", "verify").memory_mb
    for step in ("stage", "run", "deliver"):
        assert needs(study, "x", step, threads=8) == needs(study, "x", step)


def test_a_second_attempt_asks_for_more() -> None:
    assert FIXED.again(1) == FIXED
    assert Needs(100, 7).again(2) == Needs(200, 14)


def test_a_streamed_run_needs_no_more_for_more_data() -> None:
    beams = {"kind": "beamforming", "channels": 64, "beams": 64, "antennas": 96}
    study = load_study(
        {
            "workloads": {
                "small": {**beams, "samples": 1 << 14, "device_memory": "64 MiB"},
                "large": {**beams, "samples": 1 << 20, "device_memory": "64 MiB"},
                "whole": {**beams, "samples": 1 << 20},
            }
        }
    )
    small, large, whole = (needs(study, name, "run") for name in ("small", "large", "whole"))
    assert small.memory_mb == large.memory_mb < whole.memory_mb / 20
    assert small.minutes < large.minutes
    for step in ("verify", "deliver"):
        found = needs(study, "large", step)
        assert found == needs(study, "whole", step)
        assert found.memory_mb < needs(study, "small", step).memory_mb + 100, "it is held in pieces"


class Wildcards:
    """A job's, as Snakemake hands them to a function of resources."""

    def __init__(self, **values: str) -> None:
        vars(self).update(values)


def test_a_rule_asks_for_what_its_workload_needs() -> None:
    case = {"kind": "gemm", "m": 4096, "n": 4096, "k": 4096, "shards": 4}
    study = load_study({"workloads": {"large": case}})
    found = asked(study, "run", gpu=True)
    expected = needs(study, "large", "run", gpu=True)
    for wildcards in (Wildcards(part="large/1-of-4"), Wildcards(workload="large")):
        assert found["mem_mb"](wildcards, 1) == expected.memory_mb
        assert found["runtime"](wildcards, 2) == 2 * expected.minutes
    assert asked(study)["mem_mb"](Wildcards(), 1) == FIXED.memory_mb


def test_long_workloads_begin_first_and_those_that_others_wait_for() -> None:
    beams = {"kind": "beamforming", "channels": 64, "beams": 256, "antennas": 256, "samples": 4096}
    study = load_study(
        {
            "workloads": {
                "small": {"kind": "gemm", "m": 64, "n": 64, "k": 64},
                "alone": beams,
                "read": beams,
                "reader": {"kind": "softmax", "input": {"workload": "read"}},
                "state": {"kind": "statevector", "circuit": {"name": "qft", "qubits": 30}},
            }
        }
    )
    found = {name: urgency(study, name, gpu=True) for name in study.names}
    assert 3 <= found["small"] < found["alone"] < found["read"] < found["state"] <= MAX_URGENT

"""The verify step, on the results of a run."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from argand.device import cpu
from argand.runtime.measuring.ceilings import Ceilings, operand_formats
from streamed_runs import run_python

from workflow.accuracy.assessment import NOT_COMPARED
from workflow.data import Staged
from workflow.preflight.loading import load_study
from workflow.steps.execute import execute
from workflow.steps.staging import stage
from workflow.steps.verification import sources_of, verify

LOG = logging.getLogger("argand.test_verification")
STUDY = """precisions: [fp32]
baselines: [numpy]
workloads: {product: {kind: gemm, m: 8, n: 9, k: 10}}
"""


@pytest.mark.parametrize(("device", "has_limit"), [(cpu().name, True), ("another card", False)])
def test_a_limit_is_that_of_the_device_that_computed(
    tmp_path: Path, device: str, has_limit: bool
) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    workload = load_study(tmp_path / "study.yaml").workload("product")
    staged, run = tmp_path / "staged.h5", tmp_path / "run.h5"
    stage(workload, [], staged, LOG)
    assert execute(workload, staged, run, replace(cpu(), cache_bytes=0), LOG).startswith("1 precis")
    ceilings = Ceilings(device, 10.0, dict.fromkeys(operand_formats(), 0.1))
    records = verify(workload, staged, run, ceilings, LOG)
    assert {record.implementation for record in records} == {"argand", "numpy"}
    for record in records:
        assert record.verified
        assert record.tflops
        assert (record.limit_fraction is not None) is has_limit


@pytest.mark.parametrize("holes", [":", "1:"])
@pytest.mark.parametrize(
    "case",
    [
        {"kind": "dft", "axis": -1, "input": {"samples": "x"}},
        {"kind": "softmax", "input": {"x": "x"}},
        {"kind": "gemm", "op_b": "C", "input": {"a": "x", "b": "b"}},
        {
            "kind": "correlate",
            "input": {"voltages": "x", "axes": {"voltages": ["antenna", "time"]}},
        },
    ],
    ids=lambda case: case["kind"],
)
def test_results_without_finite_values_are_unproven(
    tmp_path: Path, case: dict[str, Any], holes: str
) -> None:
    x = np.random.default_rng(3).standard_normal((4, 8)).astype(np.float32)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["b"] = x.astype(complex)
        x[1 if holes == "1:" else 0 :, 3] = np.nan
        file["x"] = x if case["kind"] == "softmax" else x.astype(complex)
    case["input"]["file"] = str(tmp_path / "x.h5")
    study = {"precisions": ["fp32"], "workloads": {"w": case | {"allow_nonfinite": True}}}
    (tmp_path / "study.yaml").write_text(json.dumps(study))
    workload = load_study(tmp_path / "study.yaml").workload("w")
    staged, run = tmp_path / "staged.h5", tmp_path / "run.h5"
    stage(workload, [], staged, LOG)
    execute(workload, staged, run, replace(cpu(), cache_bytes=0), LOG)
    ceilings = Ceilings(cpu().name, 10.0, dict.fromkeys(operand_formats(), 0.1))
    said = {(one.verdict, one.reason) for one in verify(workload, staged, run, ceilings, LOG)}
    assert said == ({("verified", "")} if holes == "1:" else {("unproven", NOT_COMPARED)})


def test_the_record_of_a_circuit_says_what_became_of_time_and_norm(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(
        "precisions: [3xfp16, fp64]\n"
        "workloads: {state: {kind: statevector, circuit: {name: qft, qubits: 9}}}\n"
    )
    workload = load_study(tmp_path / "study.yaml").workload("state")
    staged, run = tmp_path / "staged.h5", tmp_path / "run.h5"
    stage(workload, [], staged, LOG)
    execute(workload, staged, run, replace(cpu(), cache_bytes=0), LOG)
    ceilings = Ceilings(cpu().name, 10.0, dict.fromkeys(operand_formats(), 0.1))
    records = verify(workload, staged, run, ceilings, LOG)
    for record in records:
        assert record.verified, record.reason
        assert record.time_us_p50
        assert record.bound is not None
        assert record.measures["norm_drift"] is not None
        assert record.measures["norm_drift"] <= record.bound
        assert record.measures["fidelity"] == pytest.approx(1, abs=1e-9)
        assert (record.predicted_us is not None) is (record.implementation == "argand")


THREADS = """
import sys
from workflow.threads import hold_blas
hold_blas()
import logging
from pathlib import Path
from argand.runtime.measuring.ceilings import Ceilings
from workflow.preflight.loading import load_study
from workflow.records import write_records
from workflow.steps.verification import verify
study, log = load_study(Path("study.yaml")), logging.getLogger()
for name in study.names:
    for threads in (1, 5):
        staged, run = Path(f"{name}-staged.h5"), Path(f"{name}-run.h5")
        ceilings = Ceilings("another", 10.0, {})
        found = verify(study.workload(name), staged, run, ceilings, log, threads=threads)
        write_records(Path(f"{name}-{threads}.jsonl"), found)
"""


def test_records_are_the_same_for_any_number_of_threads(tmp_path: Path, root: Path) -> None:
    (tmp_path / "study.yaml").write_text(
        "precisions: [3xfp16]\nbaselines: none\nworkloads:\n"
        "  product: {kind: gemm, m: 600, n: 500, k: 70, beta: 1}\n"
        "  products: {kind: gemm, batch: 60, m: 40, n: 90, k: 30}\n"
        "  beams: {kind: beamforming, channels: 6, beams: 70, antennas: 30, samples: 500}\n"
        "  spectra: {kind: dft, length: 1009, batch: 250, window: hann}\n"
        "  logits: {kind: softmax, rows: 300, columns: 1000}\n"
        "  state: {kind: statevector, circuit: {name: random, qubits: 18, depth: 3}}\n"
    )
    study = load_study(tmp_path / "study.yaml")
    for name in study.names:
        staged, run = tmp_path / f"{name}-staged.h5", tmp_path / f"{name}-run.h5"
        stage(study.workload(name), [], staged, LOG)
        execute(study.workload(name), staged, run, replace(cpu(), cache_bytes=0), LOG)
    ended = run_python(THREADS, tmp_path, root)
    assert ended.returncode == 0, ended.stderr
    for name in study.names:
        alone, other = [(tmp_path / f"{name}-{n}.jsonl").read_text() for n in (1, 5)]
        assert other == alone
        assert alone.count('"verified": true') == 1


def test_a_record_says_what_its_operands_came_from(tmp_path: Path) -> None:
    """The seed, and the SHA-256 of the user's file: what two runs must share to be compared."""
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["a"] = file["b"] = np.eye(4, dtype=np.complex64)
    (tmp_path / "study.yaml").write_text(
        "seed: 7\nprecisions: [fp32]\nbaselines: none\n"
        f"workloads: {{product: {{kind: gemm, input: {{file: {tmp_path}/in.h5, a: a, b: b}}}}}}\n"
    )
    workload = load_study(tmp_path / "study.yaml").workload("product")
    staged, run = tmp_path / "staged.h5", tmp_path / "run.h5"
    stage(workload, [tmp_path / "in.h5"], staged, LOG)
    execute(workload, staged, run, replace(cpu(), cache_bytes=0), LOG)
    ceilings = Ceilings(cpu().name, 10.0, dict.fromkeys(operand_formats(), 0.1))
    (record,) = verify(workload, staged, run, ceilings, LOG)
    assert record.seed == 7
    assert record.source_sha256 == sha256((tmp_path / "in.h5").read_bytes()).hexdigest()


def test_the_files_of_a_record_are_the_users_own(tmp_path: Path) -> None:
    """A circuit, both files of a recording, a file beside a product; of a product alone none."""
    circuit, recording = tmp_path / "c.qasm", tmp_path / "r.sigmf-meta"
    circuit.write_text('OPENQASM 2.0;\ninclude "qelib1.inc";\nqreg q[1];\nh q[0];\n')
    described = {"core:datatype": "ci16_le", "core:sample_rate": 1e6, "core:version": "1.2.0"}
    content = {"global": described, "captures": [{"core:sample_start": 0}], "annotations": []}
    recording.write_text(json.dumps(content))
    recording.with_suffix(".sigmf-data").write_bytes(np.arange(32, dtype="<i2").tobytes())
    samples = {"file": str(recording), "format": "sigmf", "samples": "samples"}
    beams = {"kind": "beamforming", "channels": 2, "beams": 2, "antennas": 3, "samples": 4}
    workloads = {
        "state": {"kind": "statevector", "circuit": {"file": str(circuit)}},
        "spectra": {"kind": "dft", "axis": "time", "input": samples},
        "beams": beams,
        "shares": {"kind": "softmax", "input": {"workload": "beams"}},
        "both": {
            "kind": "gemm",
            "input": {"file": str(circuit), "a": {"workload": "c"}, "b": "b"},
        },
        "c": {"kind": "gemm", "m": 2, "n": 2, "k": 2},
    }
    study = load_study({"precisions": ["fp32"], "workloads": workloads})
    own = {
        "state": [circuit],
        "both": [circuit],
        "spectra": [recording, recording.with_suffix(".sigmf-data")],
    }
    for name in study.names:
        workload = study.workload(name)
        digest = sha256(circuit.read_bytes()).hexdigest() if name in own else "of a product"
        product = Staged({}, {}, attributes={"source": "x", "source_sha256": digest})
        staged = product if workload.depends_on() else workload.stage()
        said = [sha256(file.read_bytes()).hexdigest() for file in own.get(name, [])]
        assert sources_of(workload, staged) == "; ".join(said)

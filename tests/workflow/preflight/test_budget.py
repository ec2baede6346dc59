"""Disk, memory and time that a study takes, known before its first job."""

from __future__ import annotations

import logging
import time
from collections import namedtuple
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest
from argand.device import cpu
from test_shards import Pipeline

from workflow.config.mistakes import StudyError
from workflow.preflight import budget
from workflow.preflight.check import check_study, main
from workflow.preflight.estimates import estimate
from workflow.preflight.loading import load_study
from workflow.steps.staging import stage
from workflow.storage.chunks import chunk_offsets
from workflow.storage.room import NoRoomError
from workflow.study import Study

Usage = namedtuple("Usage", "free")
GIB = 1 << 30


def study_of(settings: dict[str, Any] | None = None, **workloads: dict[str, Any]) -> Study:
    return load_study({"device": "cpu", **(settings or {}), "workloads": workloads})


def error_of(study: Study, **check: Any) -> list[str]:
    """The mistakes, which are found in a second or two."""
    began = time.process_time()
    with pytest.raises(StudyError) as error:
        check_study(study, **check)
    assert time.process_time() - began < 5
    return error.value.mistakes


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """A machine of 8 GiB of memory and 1 GiB of free disk, in an empty folder."""
    there = {"memory": 8 * GIB, "disk": GIB}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(budget, "machine_memory", lambda: there["memory"])
    monkeypatch.setattr("shutil.disk_usage", lambda folder: Usage(there["disk"]))
    return there


ROWS = {"kind": "softmax", "rows": 1 << 30, "columns": 1 << 20}


@pytest.mark.parametrize(
    "case",
    [
        ROWS,
        {"kind": "softmax", "rows": 1 << 30, "columns": 1 << 28},
        {"kind": "dft", "length": 1 << 26, "batch": 1 << 26},
        {"kind": "beamforming", "beams": 1 << 20, "antennas": 1 << 20, "samples": 1 << 28},
        {"kind": "gemm", "m": 1 << 20, "n": 1 << 20, "k": 1 << 20},
        {"kind": "statevector", "circuit": {"name": "qft", "qubits": 34}},
        {"kind": "statevector", "circuit": {"name": "random", "qubits": 34, "depth": 81}},
        {"kind": "statevector", "circuit": {"name": "random", "qubits": 34, "depth": 10_000}},
        {"kind": "statevector", "circuit": {"name": "random", "qubits": 34}, "fuse": 10},
        {"kind": "statevector", "circuit": {"name": "qft", "qubits": 34}, "shots": (1 << 31) - 1},
        {"kind": "channelise", "channels": 1 << 20, "antennas": 1 << 16, "samples": 1 << 34},
        {"kind": "channelise", "channels": 2, "samples": 1 << 34},
        {"kind": "correlate", "channels": 1 << 20, "antennas": 1 << 20, "samples": 1 << 28},
        {"kind": "correlate", "antennas": 1 << 20, "samples": 1, "form": "triangle"},
        {"kind": "beamforming", "beams": 1 << 20, "antennas": 1 << 20, "samples": 1 << 28,
         "detect": "power", "integrate": 1 << 28},
        {"kind": "image", "antennas": 1 << 14, "channels": 1 << 20,
         "directions": {"n": 512, "cell_arcmin": 1}},
        {"kind": "adaptive", "antennas": 128, "beams": 1 << 16, "channels": 1 << 20},
        {"kind": "mimo", "receivers": 1024, "transmitters": 128, "subcarriers": 1 << 16,
         "packets": 1 << 20, "symbols": 1 << 20},
        {"kind": "mimo", "receivers": 1, "transmitters": 1, "subcarriers": 1 << 16,
         "symbols": 1 << 20, "soft_bits": True},
        {"kind": "solve", "n": 1 << 17, "rhs": 1 << 10},
        {"kind": "dft", "power": True, "length": 1 << 26, "batch": 1 << 26, "segments": 1 << 20},
    ],
    ids=lambda case: f"{case['kind']}-{next(reversed(case.values()))}",
)  # fmt: skip
def test_the_largest_studies_are_refused_at_once(case: dict[str, Any]) -> None:
    for text in error_of(study_of(x=case)):
        assert any(word in text for word in ("is larger than any", "need", "takes", "allowed"))


def test_the_memory_of_what_stands_along_axes(machine: dict[str, int]) -> None:
    """Times and pairs of antennas are made by the check and by each job."""
    for case in (
        {"kind": "channelise", "channels": 2, "samples": 1 << 30},
        {"kind": "correlate", "antennas": 1 << 15, "samples": 1, "form": "triangle"},
    ):
        (text,) = error_of(study_of(x=case))
        assert "workloads.x: what stands along its axes takes about " in text
        assert "this machine has 8 GiB" in text


def test_the_disk_of_all_workloads_together(machine: dict[str, int]) -> None:
    """Each by itself has room; what is there and what each takes is said."""
    case = {"kind": "gemm", "m": 4096, "n": 4096, "k": 4096, "precisions": ["fp32"]}
    # Staged 2 x 128 MiB, results of ours and of the peers at fp32 and fp64 512 MiB, product 128.
    one, both = study_of(a=case), study_of(a=case, b=case)
    check_study(one)
    (text,) = error_of(both)
    assert "they need 1.25 GiB of disk in " in text
    assert "which has room for 1 GiB: a 256 MiB staged, 512 MiB of results, 128 MiB of" in text
    check_study(both, device_here=False)
    (text,) = error_of(study_of(small=case | {"m": 64}, a=case, b=case))
    assert text.index(" a 256 MiB") < text.index(" b 256 MiB") < text.index(" small 130 MiB")
    machine["disk"] = 2 * GIB
    check_study(both)
    kept = study_of({"keep_runs": True}, a=case, b=case, c=case)
    assert "they need 2.62 GiB of disk" in error_of(kept)[0]


def test_what_earlier_results_take_is_room(machine: dict[str, int], tmp_path: Path) -> None:
    study = study_of(a={"kind": "gemm", "m": 4096, "n": 4096, "k": 4096})
    machine["disk"] = 1 << 20
    assert error_of(study)
    staged = tmp_path / "results" / "staged" / "a.h5"
    staged.parent.mkdir(parents=True)
    with staged.open("wb") as file:
        file.truncate(4 * GIB)
    check_study(study)


def test_the_memory_of_the_largest_job(machine: dict[str, int]) -> None:
    machine["disk"] = 1 << 50
    state = {"kind": "statevector", "circuit": {"name": "ghz", "qubits": 28}}
    (text,) = error_of(
        study_of(small={**state, "circuit": {"name": "ghz", "qubits": 20}}, big=state)
    )
    assert text.startswith("workloads.big: its run job needs about 17.1 GiB of memory, this mach")
    assert text.endswith("this machine has 8 GiB; make it smaller")
    check_study(study_of(big=state), device_here=False)
    machine["memory"] = 20 * GIB
    check_study(study_of(big=state))


def test_the_check_and_the_scheduler_know_what_a_dense_system_takes(
    machine: dict[str, int],
) -> None:
    """The arrays of a run at all precisions, beside NumPy, are three copies of A in complex128."""
    case = {"kind": "solve", "n": 30_000, "rhs": 4}
    machine.update(disk=1 << 50, memory=3 * 16 * 30_000**2)
    study = study_of(x=case)
    (text,) = error_of(study)
    assert text.startswith("workloads.x: its run job needs about 43.2 GiB of memory, this machine")
    assert estimate(study, "x", "run")[0] > machine["memory"]
    # Without fp64, or with several systems that are solved one after another, it takes less.
    check_study(study_of(x={**case, "precisions": ["fp32"], "baselines": "none"}))
    check_study(study_of(x={**case, "n": 15_000, "batch": 4}))


def test_what_is_split_needs_no_memory_of_its_size(machine: dict[str, int]) -> None:
    machine["disk"] = 1 << 50
    case = {"kind": "softmax", "rows": 1 << 20, "columns": 1 << 13, "precisions": ["fp32"]}
    check_study(study_of(x=case))
    # The whole fits twice, but not as a job holds it.
    machine["memory"] = 130 * GIB
    assert "device_memory has it streamed" in error_of(study_of(x=case))[0]
    check_study(study_of(x={**case, "device_memory": "8 GiB"}))


def test_device_memory_that_holds_no_chunk_is_said_before_a_job(tmp_path: Path) -> None:
    """A chunk at fp32 is smaller than one at fp64, and a shard than the whole."""
    case = {"kind": "softmax", "rows": 64, "columns": 1 << 17, "device_memory": "4 MiB"}
    check_study(study_of(x={**case, "precisions": ["fp32", "fp64"]}))
    said = "workloads.x.device_memory: a chunk does not fit into 4 MiB of device memory: needs 6 "
    assert error_of(study_of(x={**case, "precisions": ["fp64"]}))[0].startswith(said)
    check_study(study_of(x={**case, "precisions": ["fp64"], "shards": 2}))


def test_a_gpu_streams_what_can_be_split_whatever_it_has(machine: dict[str, int]) -> None:
    machine.update(disk=1 << 50, memory=130 * GIB)
    case = {"kind": "softmax", "rows": 1 << 20, "columns": 1 << 13, "precisions": ["fp32"]}
    gpu = replace(cpu(), backend="cuda")
    assert budget.beyond(study_of(x=case), gpu) == []
    state = {"kind": "statevector", "circuit": {"name": "ghz", "qubits": 32}}
    (text,) = budget.beyond(study_of(x=state), gpu)
    assert text.endswith("make it smaller")


def test_a_run_that_cannot_end_in_time(machine: dict[str, int]) -> None:
    machine.update(disk=1 << 60, memory=1 << 60)
    case = {"kind": "gemm", "m": 1 << 20, "n": 1 << 20, "k": 1 << 18, "precisions": ["fp64"]}
    for check in ({}, {"device_here": False}):
        (text,) = error_of(study_of(x=case), **check)
        assert text.startswith("workloads.x: its run takes ")
        assert "operations at each of 1 precision); most_hours allows 24; make it" in text
        check_study(study_of({"most_hours": 10_000}, x=case), **check)


def test_the_check_says_what_a_study_takes(
    machine: dict[str, int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "device: cpu\nworkloads: {x: {kind: gemm, m: 256, n: 256, k: 256, precisions: [fp32]}}"
    Path("study.yaml").write_text(text)
    monkeypatch.setattr("sys.argv", ["check", "study.yaml"])
    main()
    first, _, *table = capsys.readouterr().out.splitlines()
    assert first == (
        f"study.yaml: 1 workload (x), on {cpu()}, 3.5 MiB of disk in results/study/, 1 GiB free"
    )
    stage, run, _, deliver, _ = table[2:7]
    assert stage.startswith("| x | stage | 1 | 1 MiB | ")
    assert run.startswith("| x | run | 1 | 2 MiB | ")
    assert deliver.startswith("| x | deliver | 1 | 512 KiB | ")
    main(["--brief", "study.yaml"])
    assert capsys.readouterr().out == f"{first}\n\n"


def test_the_files_take_what_was_foretold(machine: dict[str, int], tmp_path: Path) -> None:
    study = study_of(x={"kind": "beamforming", "beams": 32, "antennas": 64, "samples": 40_000})
    stage(study.workload("x"), [], tmp_path / "x.h5", logging.getLogger())
    sizes = budget._sizes(study.chain("x"))
    assert (tmp_path / "x.h5").stat().st_size == pytest.approx(
        sizes.staged + sizes.coordinates, rel=0.1
    )


def test_answers_of_a_state_take_no_disk_of_its_size(machine: dict[str, int]) -> None:
    """They were counted as large as the state, in the run file and as the product."""
    state = {"kind": "statevector", "circuit": {"name": "ghz", "qubits": 25}, "baselines": "none",
             "precisions": ["fp64", "fp32"]}  # fmt: skip
    study = study_of(
        x={**state, "observables": ["Z" * 25] * 3}, y={**state, "shots": 1000}, z=state
    )
    disk = {name: budget.disk_of(study, name) for name in "xyz"}
    assert disk["x"]["stage"] > 512 << 20
    assert (disk["x"]["run"], disk["x"]["deliver"]) == (2 * 3 * 8, 3 * 8)
    assert disk["y"]["run"] == 2 * 1000 * 8
    assert disk["z"]["run"] == 768 << 20
    check_study(study_of(x={**state, "observables": ["Z" * 25]}))


def test_counts_take_the_disk_of_their_outcomes(machine: dict[str, int], tmp_path: Path) -> None:
    """They were counted as one number a shot, also beside texts of bits."""
    few = {"kind": "statevector", "circuit": {"name": "ghz", "qubits": 3}, "shots": 10_000_000}
    study = study_of(x={**few, "baselines": "none"})
    assert budget.disk_of(study, "x")["deliver"] == 8 * (8 + 8)
    text = 'OPENQASM 2.0; include "qelib1.inc"; qreg q[14]; creg c[14]; h q; measure q -> c;'
    (tmp_path / "c.qasm").write_text(text)
    many = {"kind": "statevector", "circuit": {"file": str(tmp_path / "c.qasm")}}
    study = study_of(x={**many, "precisions": ["fp64"], "shots": 400_000, "baselines": "none"})
    pipeline = Pipeline(tmp_path / "x", study.workload("x"), [])
    pipeline.whole()
    structure = pipeline.product.stat().st_size - budget.disk_of(study, "x")["deliver"]
    assert 0 < structure < 48 << 10  # of the file, and the certificate


def test_operands_that_fill_the_disk_are_refused_before_one_is_written(
    machine: dict[str, int], tmp_path: Path
) -> None:
    began = time.process_time()
    with pytest.raises(NoRoomError, match=r"x\.h5 needs 4 PiB of disk, 1 GiB are free there"):
        stage(study_of(x=ROWS).workload("x"), [], tmp_path / "x.h5", logging.getLogger())
    assert time.process_time() - began < 5
    assert list(tmp_path.iterdir()) == []


def test_places_of_chunks_are_made_one_by_one() -> None:
    """2^30 rows, each in chunks of its own: their places would take 40 GiB."""
    places = chunk_offsets([range(1 << 30), range(1 << 20)], [1, 1 << 18])
    assert list(islice(places, 5))[-1] == (1, 0)


@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 5)])
def test_places_are_in_the_order_of_the_array(shape: tuple[int, ...]) -> None:
    found = list(chunk_offsets([range(n) for n in shape], [2] * len(shape)))
    assert found == list(product(*(range(0, n, 2) for n in shape)))

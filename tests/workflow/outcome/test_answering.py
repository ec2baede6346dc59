"""The answer names each workload's files, arrays and products, and results that are left over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from test_shards import Pipeline

from tests.workflow.chained_cases import study_of
from workflow.outcome.answering import AnswerFigures, AnswerFiles, data_of, write_answers
from workflow.outcome.leftovers import left_over
from workflow.preflight.loading import load_study
from workflow.storage.certificates import read_certificate
from workflow.storage.checked_json import write_object
from workflow.tables.readable import scientific

FILE = "/data/night <1>.h5"
BANK = {"kind": "channelise", "channels": 4, "taps": 1}


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ({**BANK, "samples": 64}, ""),
        ({**BANK, "axis": 0, "input": {"file": FILE, "samples": "adc/x"}}, f"adc/x of {FILE}"),
        (
            {"kind": "correlate", "input": {"file": FILE, "voltages": {"real": "a", "imag": "b"}}},
            f"a, b of {FILE}",
        ),
        ({"kind": "correlate", "input": {"voltages": {"workload": "bank"}}}, "the product of bank"),
        (
            {"kind": "beamforming",
             "input": {"file": FILE, "weights": "w", "samples": {"workload": "bank"}}},
            f"w of {FILE}; the product of bank",
        ),
        ({"kind": "statevector", "circuit": {"file": "/c/ghz.qasm"}}, "/c/ghz.qasm"),
        ({"kind": "statevector", "circuit": {"name": "qft", "qubits": 3}}, ""),
        ({"kind": "softmax", "input": {"workload": "beams"}}, "the product of beams"),
        ({"kind": "gemm", "input": {"file": FILE, "a": "x", "b": "x"}}, f"x of {FILE}"),
        (
            {"kind": "gemm", "input": {"a": {"workload": "beams"}, "b": {"workload": "beams"}}},
            "the product of beams",
        ),
    ],
)  # fmt: skip
def test_the_data_of_a_workload(case: dict[str, Any], said: str) -> None:
    others = {
        "bank": {**BANK, "samples": 64, "antennas": 2},
        "beams": {"kind": "beamforming", "antennas": 2, "samples": 4, "beams": 2},
    }
    study = load_study({"workloads": {"w": case, **others}})
    assert data_of(study.workload("w").case) == said


def test_the_errors_of_products_stand_beside_what_is_made_of_them(tmp_path: Path) -> None:
    """The error of the last workload of a chain is its own alone."""
    bank = {**BANK, "samples": 64, "antennas": 2}
    reader = {"kind": "correlate", "input": {"voltages": {"workload": "bank"}}}
    study = study_of({"bank": bank, "w": reader})
    first = Pipeline(tmp_path / "bank", study.workload("bank"))
    records = first.measure("bank")
    paths = {"bank": first.deliver("bank", records, records)}
    last = Pipeline(tmp_path / "w", study.workload("w"), [paths["bank"]])
    records += last.measure("w")
    files = {name: tmp_path / name for name in ("page", "markdown", "figure")}
    for name in ("limits", "accuracy"):
        (tmp_path / f"{name}.svg").write_text("<svg></svg>")
    drawn = AnswerFigures(tmp_path / "limits.svg", tmp_path / "accuracy.svg", {}, {})
    workloads = [study.workload(name) for name in study.names]
    rows = write_answers(workloads, records, drawn, AnswerFiles(**files), made=paths)
    found = {one.workload: one for one in rows}
    error = scientific(found["bank"].error)
    assert found["w"].data == f"the product of bank (fp64, error {error})"


def test_what_to_know_of_the_data_stands_in_the_answer(tmp_path: Path) -> None:
    """The stage step says it to the product's certificate, which the page reads."""
    path = tmp_path / "v.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("v", (4, 6), "c8", chunks=(4, 2))[:, :2] = 1
        file["t"] = np.array([0.0, 1.0, 2.0, 30.0, 31.0, 32.0])
        file["t"].attrs["units"] = np.bytes_("s")
    source = {
        "file": str(path), "voltages": "v", "axes": ["antenna", "time"],
        "coordinates": {"time": "t"},
    }  # fmt: skip
    study = study_of({"w": {"kind": "correlate", "input": source}})
    pipeline = Pipeline(tmp_path / "w", study.workload("w"))
    records = pipeline.measure("w")
    product = pipeline.deliver("w", records, records)
    said = (
        "1 of 1 integrations span gaps: in number 0 two neighbours are 28 s apart, where most are "
        "1; of voltages, 2 of 3 chunks were never written, and have the fill value 0j (/v)"
    )
    assert read_certificate(product)["caveats"] == said
    files = {name: tmp_path / name for name in ("page", "markdown", "figure")}
    for name in ("limits", "accuracy"):
        (tmp_path / f"{name}.svg").write_text("<svg></svg>")
    drawn = AnswerFigures(tmp_path / "limits.svg", tmp_path / "accuracy.svg", {}, {})
    (found,) = write_answers(
        [study.workload("w")], records, drawn, AnswerFiles(**files), made={"w": product}
    )
    assert found.data == f"v of {path}; {said}"
    assert said in files["markdown"].read_text()
    product.write_bytes(b"")
    (found,) = write_answers(
        [study.workload("w")], records, drawn, AnswerFiles(**files), made={"w": product}
    )
    assert str(product) in found.data


def put(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 512)


def test_what_is_of_the_study_and_what_is_not(tmp_path: Path) -> None:
    """Old products lie beside the new ones and look the same; old runs and operands are large."""
    folder = tmp_path / "products" / "night"  # a name that is a folder of results too
    listed = (
        "products/products.h5", "products/products/1-of-1.h5", "records/products.jsonl",
        "products/new.h5", "products/new.uvh5", "products/beams.h5", "products/beams/1-of-2.h5",
        "products/beams/2-of-2.h5", "records/new.jsonl", "records/beams.jsonl",
    )  # fmt: skip
    put(folder, *listed, "records/beams/1-of-2.jsonl", "records/growth.json", "staged/beams.h5")
    put(folder, "runs/beams/2-of-2.h5", "times/new.json", "figures/pareto/beams.svg", ".study")
    files = {f"products/night/{name}": "" for name in listed}  # from where the run was
    manifest = {"study": "products/night/study.yaml", "files": files}
    write_object(folder / "manifest.json", manifest)
    assert left_over(folder) == ""
    put(folder, "products/old.h5", "products/old.uvh5", "products/beams/1-of-4.h5")
    put(folder, "staged/old.h5", "runs/beams/1-of-4.h5", "times/old.json", "records/old.jsonl")
    put(folder, "figures/products/old.svg")
    old = [f"{folder}/products/{name}" for name in ("beams/1-of-4.h5", "old.h5", "old.uvh5")]
    others = "5 files in figures, records, runs, staged, times (2.5 KiB)"
    assert left_over(folder) == ", ".join([*old, others])
    put(folder, *(f"products/old/{number:02}-of-20.h5" for number in range(1, 21)))
    assert ", 13 more products, 5 files in " in left_over(folder)


def test_nobody_can_say_so_without_a_manifest(tmp_path: Path) -> None:
    put(tmp_path, "products/old.h5")
    assert left_over(tmp_path) == ""
    (tmp_path / "manifest.json").write_text("{}")
    assert left_over(tmp_path) == ""

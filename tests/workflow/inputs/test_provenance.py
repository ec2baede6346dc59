"""Certificates keep what a user's file says of itself, of its datasets and of a UVH5 header."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from one_input import OneInput, read, refused

from tests.workflow.readers import guppi_file
from tests.workflow.storage.test_products import CERTIFICATE, RECORD
from workflow.config.file_input import FileInput, WorkloadInput
from workflow.data import Product
from workflow.files import text_attributes
from workflow.inputs.axes import Operand
from workflow.inputs.operands import staged
from workflow.inputs.provenance import of_products, provenance
from workflow.inputs.source_attributes import DAMAGED, MAX_NAMES, MAX_TEXT, source_attributes
from workflow.preflight.loading import load_study
from workflow.steps.delivery import certificate_of
from workflow.storage.certificates import read_certificate
from workflow.storage.products import write_product
from workflow.workloads import KINDS

X = Operand("x", ("row", "column"))


@pytest.fixture(scope="module", autouse=True)
def attributes_without_a_fork() -> None:
    """Leave the reading of attributes to a fork: some files here are damaged."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "night één.h5"
    with h5py.File(path, "w") as file:
        file.attrs["telescope"] = "Effelsberg"
        file.attrs["observer"] = np.bytes_("Ada")
        file["volt/x"] = np.ones((3, 4), np.complex64)
        file["volt/x"].attrs.update(
            {"units": "V", "gain_dB": 30.5, "taps": [1, 2], "is_calibrated": True}
        )
    return path


def said_by(path: Path, **attributes: object) -> dict[str, object]:
    with h5py.File(path, "r+") as file:
        for name in list(file.attrs):
            del file.attrs[name]
        for name, value in attributes.items():
            file.attrs[name] = value
    return dict(source_attributes(OneInput(file=path, x="/volt/x")).get("file", {}))


def test_attributes_datasets_and_selections_are_kept(path: Path) -> None:
    select = {"x": [":", "0:2"]}
    found = provenance(OneInput(file=path, x="/volt/x", select=select))
    assert found["datasets"] == {"x": "/volt/x"}
    assert found["select"] == select
    assert found["source_attributes"] == {
        "file": {"telescope": "Effelsberg", "observer": "Ada"},
        "x": {"units": "V", "gain_dB": 30.5, "taps": "[1, 2]", "is_calibrated": True},
    }


def test_what_the_study_says_of_the_data_is_kept(path: Path) -> None:
    """Such as what is subtracted from numbers: nothing else of a product tells it."""
    given = {"x": {"real": "/volt/x"}, "zero_level": 128.0, "units": "V",
             "axes": ["antenna", "time"], "coordinates": {"time": {"step_s": 0.5}}}  # fmt: skip
    found = provenance(OneInput.model_validate({"file": path, "select": {"x": [0, ":"]}, **given}))
    assert json.loads(found["input"]) == given
    many = {"antenna": {"values": list(range(5000))}}
    found = provenance(OneInput.model_validate({"file": path, "x": "/volt/x", "coordinates": many}))
    assert found["input"].endswith(" characters in all)")
    assert len(found["input"]) < 4200


def test_they_are_in_the_product_and_in_the_products_made_of_it(path: Path, tmp_path: Path) -> None:
    source = OneInput(file=path, x="/volt/x")
    first = staged(source, (X,), allow_nonfinite=False)
    product = tmp_path / "first.h5"
    deliver(product, first.attributes["source_attributes"])
    said = read_certificate(product)["source_attributes"]
    assert said["file"]["telescope"] == "Effelsberg"
    assert said["x"]["gain_dB"] == 30.5

    chained = OneInput(x=WorkloadInput(workload="first"))
    second = staged(chained, (X,), {"first": product}, allow_nonfinite=False)
    kept = ("workload", "kind", "precision", "seed", "source")
    made = {key: CERTIFICATE[key] for key in kept} | {"source_attributes": said}
    assert second.attributes["made_of"] == {"x": made}
    assert "source_attributes" not in second.attributes


def test_each_workload_is_kept_once_however_often_its_product_is_used(tmp_path: Path) -> None:
    """A certificate grows by one workload a product, also where each has two operands."""

    def kept(made: dict[str, Any]) -> list[str]:
        whole = [one for one in made.values() if "kind" in one]
        return [name for one in whole for name in (one["workload"], *kept(one.get("made_of", {})))]

    held = Product("y", np.ones((3, 4), np.complex64), ("row", "column"), {}, "y")
    paths = [tmp_path / f"{number}.h5" for number in range(8)]
    for number, path in enumerate(paths):
        before = paths[max(0, number - 2) : number]
        made = of_products(dict(zip("ba", before, strict=False)))  # HDF5 has them in another order
        certificate = {**CERTIFICATE, "workload": f"w{number}", **made}
        write_product(path, held, certificate, workload=f"w{number}", kind="gemm")
    made = read_certificate(paths[-1])["made_of"]
    assert sorted(kept(made)) == [f"w{number}" for number in range(7)]
    assert made["a"]["made_of"]["a"] == {"workload": "w5"}


def deliver(path: Path, attributes: object) -> None:
    """A product with the certificate of an operand that says so much."""
    held = Product("y", np.ones((3, 4), np.complex64), ("row", "column"), {}, "y")
    said = {**CERTIFICATE, "source_attributes": attributes}
    write_product(path, held, said, workload="first", kind="gemm")


def test_a_certificate_has_them_and_numbers_as_they_are_and_the_rest_as_text() -> None:
    study = load_study({"workloads": {"first": {"kind": "gemm", "m": 2, "n": 2, "k": 2}}})
    workload = study.workload("first")
    said = {"file": {"height": 378.5}}
    found = certificate_of(
        workload,
        RECORD,
        replace(workload.outline(), attributes={"source_attributes": said, "zeros": {"x": 1}}),
    )
    assert found["source_attributes"] == said
    assert found["zeros"] == "{'x': 1}"
    drawn = {"seed": workload.seed, "init": "normal"}
    found = certificate_of(workload, RECORD, replace(workload.outline(), attributes=drawn))
    assert {key: found[key] for key in drawn} == drawn  # the seed a number, as in the record
    asked = json.loads(found["parameters"])
    assert (asked["m"], asked["op_b"]) == (2, "N")
    assert not {"precisions", "kind", "input", "tolerance"} & asked.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_the_parameters_of_each_kind_are_kept(kind: str) -> None:
    small = KINDS[kind].small
    workload = load_study({"workloads": {"w": {"kind": kind, **small}}}).workload("w")
    certificate = certificate_of(workload, RECORD, replace(workload.outline(), attributes={}))
    asked = json.loads(certificate["parameters"])
    given = json.loads(workload.case.model_dump_json(include={*small}, exclude_none=True))
    assert {name: asked[name] for name in given} == given


def test_parameters_of_drawn_data_are_none_of_a_file(path: Path) -> None:
    given = {"channels": 4, "taps": 1, "kind": "channelise"}
    source = {"file": str(path), "samples": "/volt/x"}
    for case, there in (({"samples": 64}, True), ({"input": source, "axis": -1}, False)):
        workload = load_study({"workloads": {"w": given | case}}).workload("w")
        asked = json.loads(workload.case.parameters())
        assert asked["window"] == "hamming"
        for name in ("samples", "sample_rate_hz", "tones", "noise", "antennas"):
            assert (name in asked) is there


def test_scalars_of_a_uvh5_header(tmp_path: Path) -> None:
    path = tmp_path / "zen.uvh5"
    with h5py.File(path, "w") as file:
        file["Header/telescope_name"] = np.bytes_("HERA")
        file["Header/latitude"] = -30.7215
        file["Header/freq_array"] = np.arange(64.0)
        file["Header/other"] = h5py.ExternalLink("elsewhere.h5", "/x")
    source = OneInput(file=path, format="uvh5", x="visibilities")
    assert source_attributes(source) == {"header": {"telescope_name": "HERA", "latitude": -30.7215}}


def test_headers_of_recordings(tmp_path: Path) -> None:
    guppi = tmp_path / "x.raw"
    guppi_file.write(guppi, guppi_file.parts(1), SRC_NAME="3C286", TELESCOP="GBT")
    source = OneInput(file=guppi, format="guppi", x="voltages")
    assert source_attributes(source) == {"header": {"SRC_NAME": "3C286", "TELESCOP": "GBT"}}

    keys: dict[str, object] = {"core:author": "Ada", "core:offset": 10**30, "a/b": 1.5, ".": [1]}
    said: dict[str, Any] = {"global": {"core:datatype": "cf32_le", **keys}, "captures": []}
    (tmp_path / "r.sigmf-meta").write_text(json.dumps(said))
    (tmp_path / "r.sigmf-data").write_bytes(bytes(16))
    source = OneInput(file=tmp_path / "r.sigmf-meta", format="sigmf", x="samples")
    assert source_attributes(source) == {
        "header": {"core:datatype": "cf32_le", "core:author": "Ada", "a_b": 1.5, "_": "[1]"}
    }
    place = {"type": "Point", "coordinates": [6.88, "Bückeberg"]}
    deep: object = []
    for _ in range(400):
        deep = [deep]
    said |= {"captures": [{"core:frequency": 1e8}]}
    said["global"] = {"core:datatype": "cf32_le", "core:geolocation": place, "x": deep}
    (tmp_path / "r.sigmf-meta").write_text(json.dumps(said))
    header = source_attributes(source)["header"]
    assert json.loads(str(header["core:geolocation"])) == place
    assert "Bückeberg" in str(header["core:geolocation"])
    assert header["capture"] == '{"core:frequency": 100000000.0}'
    assert str(header["x"]).startswith("[[[[")
    said["global"] = {"core:datatype": "cf32_le", "capture": "by Ada"}
    (tmp_path / "r.sigmf-meta").write_text(json.dumps(said))
    header = source_attributes(source)["header"]
    assert header["capture"] == "by Ada"
    assert header["captures[0]"] == '{"core:frequency": 100000000.0}'


class TestHostile:
    def test_long_lists_references_and_how_a_file_is_built_are_left_out(self, path: Path) -> None:
        found = said_by(path, many=np.zeros(17), NX_class="NXroot", kept=1, none=h5py.Empty("f4"))
        assert found == {"kept": 1}
        with h5py.File(path, "r+") as file:
            file.attrs["to"] = file["volt/x"].ref
        assert source_attributes(OneInput(file=path, x="/volt/x"))["file"] == {"kept": 1}

    def test_long_text_is_cut_and_says_so(self, path: Path) -> None:
        found = said_by(path, history="h" * (MAX_TEXT + 5))
        assert found["history"] == "h" * MAX_TEXT + " ... (4101 characters in all)"

    def test_names_and_text_that_hdf5_cannot_hold(self, path: Path, tmp_path: Path) -> None:
        found = said_by(path, **{"a/b": "x", "..": "up", "é": np.bytes_(b"\xff\x00y")})
        assert found == {"a_b": "x", "é": "� y"}
        deliver(tmp_path / "p.h5", {"file": found})
        assert read_certificate(tmp_path / "p.h5")["source_attributes"] == {"file": found}

    def test_so_many_names(self, path: Path) -> None:
        found = said_by(path, **{f"n{number:04}": number for number in range(MAX_NAMES + 50)})
        assert len(found) == MAX_NAMES


class TestDamage:
    """A length in the heap of a file's texts that leads beyond it: HDF5 searches for ever."""

    @pytest.fixture
    def damaged(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        content = bytearray(path.read_bytes())
        content[content.index(b"Effelsberg") - 8] = 255
        path.write_bytes(content)
        monkeypatch.setattr(text_attributes, "CPU_SECONDS", 0.1)
        return path

    def test_attributes_are_said_to_be_lost(self, damaged: Path) -> None:
        source = OneInput(file=damaged, x="/volt/x", units="V")
        assert source_attributes(source) == {"file": {"argand_note": DAMAGED}}
        np.testing.assert_array_equal(read(damaged, "/volt/x", units="V")[0], np.ones((3, 4)))

    def test_a_unit_is_an_error_that_names_it(self, damaged: Path) -> None:
        said = refused(damaged, "/volt/x")
        assert said.endswith("the attribute units of /volt/x is damaged, and cannot be read")


def test_an_input_of_products_alone_has_no_file() -> None:
    source: FileInput = OneInput(x=WorkloadInput(workload="first"))
    assert provenance(source) == {}

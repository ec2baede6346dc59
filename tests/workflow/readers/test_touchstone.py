"""Touchstone files by scikit-rf, where it is installed; without it an error that names it."""

from __future__ import annotations

import sys
import types
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.workflow.inputs.one_input import OneInput
from tests.workflow.one_case import error_of, study_of
from workflow.files.input_error import InputError
from workflow.inputs.source_attributes import MAX_TEXT, source_attributes
from workflow.preflight.check import check_study
from workflow.readers import Touchstone, scattering

FREQUENCIES = np.array([1e9, 2e9, 3e9])
MATRICES = (np.arange(12.0) + 1j * np.arange(12.0)[::-1]).reshape(3, 2, 2) / 12
TEXT = "! two ports\n# GHZ S RI R 50\n" + "".join(
    f"{f / 1e9} " + " ".join(f"{x.real:.17g} {x.imag:.17g}" for x in m.T.ravel()) + "\n"
    for f, m in zip(FREQUENCIES, MATRICES, strict=True)
)
"""A line of two ports has S11, S21, S12, S22."""


class Network:
    """A stand-in for the part of the package that is called."""

    def __init__(self, path: str) -> None:
        if "RI" not in Path(path).read_text():
            raise ValueError("no option line")

    def get_sparameter_arrays(self) -> tuple[Any, Any]:
        return FREQUENCIES, MATRICES


def case(path: Path, **more: Any) -> dict[str, Any]:
    source = {"file": str(path), "format": "touchstone", "a": "scattering", "b": "scattering"}
    axes = {"a": ["batch", "m", "k"], "b": ["batch", "k", "n"]}
    return {"kind": "gemm", "op_b": "C", "input": {**source, "axes": axes, **more}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "filter.s2p").write_text(TEXT)
    return tmp_path / "filter.s2p"


@pytest.fixture(params=["stand-in", "package"])
def package(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The package itself where it is installed: it is not among the locked ones."""
    if request.param == "package":
        if find_spec("skrf") is None:
            pytest.skip("scikit-rf is not installed")
        return "package"
    module = types.ModuleType("skrf.io.touchstone")
    module.Touchstone = Network  # type: ignore[attr-defined]
    for name in ("skrf", "skrf.io"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "skrf.io.touchstone", module)
    return "stand-in"


def test_a_network(package: str, path: Path) -> None:
    reader = Touchstone(path)
    outline = reader.outline("scattering")
    assert outline.axes == ("frequency", "port", "incident")
    np.testing.assert_allclose(outline.coordinates["frequency"].values, FREQUENCIES)
    assert outline.coordinates["frequency"].units == "Hz"
    part = [slice(1, 3), slice(0, 2), slice(1, 2)]
    np.testing.assert_allclose(reader.read("scattering", part), MATRICES[1:3, :, 1:2], rtol=1e-15)


def test_how_far_a_network_is_from_lossless(package: str, path: Path) -> None:
    """S S^H, a gemm of the file with itself at each frequency."""
    study = study_of(case(path))
    check_study(study)
    staged = study.workload("w").stage()
    np.testing.assert_allclose(staged.operands["a"], MATRICES, rtol=1e-15)
    assert staged.axes["a"] == ("batch", "m", "k")


@pytest.mark.parametrize("kind", "YGH")
def test_parameters_that_the_package_reads_wrong(package: str, path: Path, kind: str) -> None:
    path.write_text(TEXT.replace("GHZ S RI", f"ghz {kind.lower()} RI"))
    assert error_of(case(path)) == (
        f"input.file: {path} must have S or Z parameters, or be of version 2, got "
        f"{kind} parameters of version 1, whose reference impedance scikit-rf applies wrongly; "
        "write S parameters"
    )


MIXED = """[Version] 2.0
# GHz S RI R 50
[Number of Ports] 4
[Number of Frequencies] 1
[Mixed-Mode Order] D2,3 D4,1 C2,3 C4,1
[Network Data]
1.0 11 0 12 0 13 0 14 0
21 0 22 0 23 0 24 0
31 0 32 0 33 0 34 0
41 0 42 0 43 0 44 0
[End]
"""


def test_modes_of_two_ports_have_their_names(tmp_path: Path) -> None:
    pytest.importorskip("skrf", reason="scikit-rf is not installed")
    path = tmp_path / "pairs.ts"
    path.write_text(MIXED)
    reader = Touchstone(path)
    found = reader.outline("scattering").coordinates
    assert found["port"].values.tolist() == ["D4,1", "D2,3", "C2,3", "C4,1"]
    assert found["incident"].long_name == "port or mode that a wave enters by"
    rows = dict(zip(found["port"].values, [22, 11, 33, 44], strict=True))
    values = reader.read("scattering", [slice(0, 1), slice(0, 4), slice(0, 4)])[0]
    np.testing.assert_array_equal(np.diag(values).real, list(rows.values()))
    written = MIXED.split("Order] ")[1].split("\n")[0].split()
    for row, name in enumerate(written, 1):
        assert rows[name] == 11 * row
    path.write_text(MIXED.replace("C2,3 C4,1", "D2,3 D4,1"))
    with pytest.raises(
        InputError, match=r"must have each port, or the modes of two, once as \[Mix"
    ):
        Touchstone(path).outline("scattering")


VERSION_2 = """! of a coupler, µ
[Version] 2.0
# GHZ S RI R 50 ! where [Reference] says nothing
[Number of Ports] 2
[Reference] 50
 75
[Network Data]
! a line of the numbers
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEXT, {"comments": "two ports", "options": "GHZ S RI R 50"}),
        ("! a\n! b\n1.0 0.5 0\n! of the numbers\n", {"comments": "a\nb"}),
        (
            VERSION_2,
            {
                "comments": "of a coupler, µ", "Version": "2.0", "options": "GHZ S RI R 50",
                "Number of Ports": "2", "Reference": "50\n75",
            },
        ),
        ("# hz S MA\n# ghz Z DB\n[]\n[x\n", {"options": "hz S MA"}),
        ("# hz S MA\n[Made by] Ada ! in 1998\n1 0.5 0\n2 0.5 0\n",
         {"options": "hz S MA", "Made by": "Ada"}),
        ("", {}),
        ("!\n" * 9, {}),
    ],
)  # fmt: skip
def test_what_stands_before_the_numbers_is_kept(
    package: str, path: Path, text: str, said: dict[str, str]
) -> None:
    for encoding in ("utf-8", "utf-8-sig", "iso-8859-1"):
        path.write_text(text, encoding=encoding)
        assert Touchstone(path).header() == said


def test_a_header_of_many_bytes(package: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text("! " + "h" * (MAX_TEXT + 5) + "\n" + TEXT)
    source = OneInput(file=path, format="touchstone", x="scattering")
    said = source_attributes(source)["header"]
    assert str(said["comments"]).endswith("h ... (4111 characters in all)")
    assert said["options"] == "GHZ S RI R 50"
    monkeypatch.setattr(scattering, "_HEADER_BYTES", 3)  # within a character
    path.write_bytes("! µµ".encode())
    assert Touchstone(path).header() == {}


@pytest.mark.parametrize("text", ["", "not a network", "# GHZ S MA\n1.0 0.5\n"])
def test_what_is_no_touchstone(package: str, path: Path, text: str) -> None:
    path.write_text(text)
    assert error_of(case(path)).startswith("input.file: ")


def test_without_the_package(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skrf.io.touchstone", None)
    assert "input.format: touchstone needs the package scikit-rf" in error_of(case(path))


def test_files_that_are_not_there_or_too_long(
    package: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scattering, "MAX_BYTES", 10)
    assert "of Touchstone are allowed" in error_of(case(path))
    path.unlink()
    assert "there is no file" in error_of(case(path))

"""Products as files and as operands: what they mean, and values that go with their labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from input_files import put
from test_chains import run

from tests.workflow.chained_cases import BEAMS, study_of
from workflow.config.mistakes import StudyError
from workflow.data import Array, Product
from workflow.preflight.check import check_study

PAIRS = ["frequency", "integration", "input", "conjugated_input"]
ONE_FEED = {"select": {"covariances": {"input": "4:8", "conjugated_input": "4:8"}}}
READERS: dict[str, tuple[dict[str, Any], str, str, list[str], dict[str, Any]]] = {
    "sky": (
        {"kind": "image", "directions": {"n": 5, "field_of_view_deg": 40}, "sum": ["time"]},
        "covariances", "visibilities", PAIRS, ONE_FEED,
    ),
    "nulls": (
        {"kind": "adaptive", "beams": 4, "loading": 0.5}, "covariances", "visibilities", [],
        ONE_FEED,
    ),
    "back": (
        {"kind": "dft", "inverse": True, "axis": "frequency"}, "samples", "spectrum",
        ["polarization", "antenna", "frequency"], {},
    ),
    "rates": (
        {"kind": "dft", "axis": "integration"}, "samples", "visibilities", [],
        {"select": {"samples": {"input": [0, 5], "conjugated_input": "4:"}}},
    ),
    "one": (
        {"kind": "dft", "axis": "conjugated_input"}, "samples", "visibilities", [],
        {"select": {"samples": {"integration": 1}}},
    ),
}  # fmt: skip
"""By name a case, its operand, the product that it reads, that one's axes where the study names
them, and what is selected."""


def source_cases(path: Path) -> dict[str, Any]:
    """Visibilities and spectra of antennas with names, feeds, places and a first time."""
    along_time = {
        "time": {"start": 2.5, "step_s": 0.25}, "polarization": ["x", "y"],
        "antenna": ["a", "b", "c", "d"],
    }  # fmt: skip
    directions = {
        "frequency": {"values": [1.5e8], "units": "Hz"},
        "east": {"values": [0, 9, 1, 5], "units": "m", "axis": "antenna"},
        "north": {"values": [3, 0, 7, 2], "units": "m", "axis": "antenna"},
    }  # fmt: skip
    source = {"file": str(path), "axes": ["polarization", "antenna", "time"]}
    voltages = {**source, "voltages": "v", "coordinates": along_time | directions}
    samples = {**source, "samples": "v", "coordinates": along_time}
    return {
        "visibilities": {"kind": "correlate", "integrate": 6, "input": voltages},
        "spectrum": {"kind": "dft", "axis": "time", "input": samples},
    }


def by_file(folder: Path, name: str, more: dict[str, Any]) -> dict[str, Any]:
    """The case of a reader, of the file of the product."""
    case, operand, of, axes, _ = READERS[name]
    path = folder / of / "products" / "w.h5"
    data = of if of == "spectrum" else f"/entry/data/{of}"  # either of the product's two names
    source = {"file": str(path), operand: data} | ({"axes": {operand: axes}} if axes else {})
    return {**case, "input": source | more}


def test_nothing_beside_the_data_is_lost(tmp_path: Path, rng: np.random.Generator) -> None:
    """Antennas and feeds of inputs, and the time of the first sample that was transformed."""
    put(tmp_path / "v.h5", v=rng.standard_normal((2, 4, 12, 2)).view(complex)[..., 0])
    cases = source_cases(tmp_path / "v.h5")
    for name, (case, operand, of, _, more) in READERS.items():
        cases[name] = {**case, "input": {operand: {"workload": of}, **more}}
    by_workload = run(study_of(cases), tmp_path)
    again = study_of({name: by_file(tmp_path, name, READERS[name][-1]) for name in READERS})
    for name, product in run(again, tmp_path / "again").items():
        expected = by_workload[name]
        np.testing.assert_array_equal(product.data, expected.data)
        assert product.axes == expected.axes
        assert set(product.coordinates) == set(expected.coordinates)
        for key, one in expected.coordinates.items():
            found = product.coordinates[key]
            assert (found.units, found.long_name) == (one.units, one.long_name)
            assert found.of(key) == one.of(key)
            np.testing.assert_array_equal(found.values, one.values)
    for name in ("sky", "nulls"):  # of both feeds, which are no array's covariances
        with pytest.raises(StudyError, match="the inputs are of 2 polarizations"):
            check_study(study_of({name: by_file(tmp_path, name, {})}))


@pytest.mark.parametrize(("other", "kept"), [("early", ["selected_time"]), ("late", [])])
@pytest.mark.parametrize("linked", [False, True])
def test_two_products_in_one_file(
    tmp_path: Path, rng: np.random.Generator, other: str, kept: list[str], linked: bool
) -> None:
    """Other first times contradict each other, and those beside a link's target are not read."""
    put(tmp_path / "v.h5", v=rng.standard_normal((2, 4, 12, 2)).view(complex)[..., 0])
    early, late = (source_cases(tmp_path / "v.h5")["spectrum"] for _ in range(2))
    late["input"]["coordinates"]["time"]["start"] = 9.0
    run(study_of({"early": early, "late": late}), tmp_path)
    with h5py.File(tmp_path / "both.h5", "w") as file:
        for operand, of in (("a", "early"), ("b", other)):
            path = tmp_path / of / "products" / "w.h5"
            with h5py.File(path) as product:
                if not linked:
                    product.copy("entry/data", file, operand)
                    continue
                file[f"{operand}/spectrum"] = h5py.ExternalLink(path, "/entry/data/spectrum")
                if "entry" not in file:
                    product.copy("entry", file)  # of which the paths are those of the others
    source = {
        "file": str(tmp_path / "both.h5"), "a": "a/spectrum", "b": "b/spectrum",
        "external": linked, "axes": {"a": ["batch", "m", "k"], "b": ["batch", "n", "k"]},
    }  # fmt: skip
    study = study_of({"w": {"kind": "gemm", "op_b": "C", "input": source}})
    assert list(run(study, tmp_path / "again")["w"].coordinates) == ([] if linked else kept)


POWER = {"kind": "dft", "axis": "time", "power": True, "input": {"samples": {"workload": "beams"}}}
ONE = {"workload": "power"}


@pytest.mark.parametrize(
    ("case", "operand", "axes"),
    [
        ({"kind": "correlate"}, "voltages", None),
        ({"kind": "beamforming", "beams": 1}, "samples", None),
        ({"kind": "beamforming", "beams": 1, "detect": "power"}, "samples", None),
        ({"kind": "mimo"}, "channel", ["frequency", "receiver", "beam", "time", "time_frequency"]),
    ],
)  # fmt: skip
def test_power_is_no_amplitude(case: dict[str, Any], operand: str, axes: list[str] | None) -> None:
    source = {operand: ONE, "select": {operand: {"beam": 0, "time_frequency": 3}}}
    source |= {"axes": {operand: axes}} if axes else {}
    said = f"input.{operand}: must be complex amplitudes, but the product of power is power, float"
    with pytest.raises(StudyError, match=said):
        check_study(study_of({"beams": BEAMS, "power": POWER, "x": {**case, "input": source}}))


def test_power_is_transformed() -> None:
    """Its changes along time are a signal of their own."""
    select = {"samples": {"polarization": 0, "time_frequency": 1}}
    spectra = {"kind": "dft", "axis": "time", "input": {"samples": ONE, "select": select}}
    check_study(study_of({"beams": BEAMS, "power": POWER | {"length": 4}, "x": spectra}))


def test_an_axis_with_names_is_transformed_by_its_entries(tmp_path: Path) -> None:
    """As that of a file is, whose antennas have names too."""
    put(tmp_path / "v.h5", v=np.arange(24, dtype=np.complex64).reshape(4, 6))
    source = {
        "file": str(tmp_path / "v.h5"), "samples": "v", "axes": ["antenna", "time"],
        "coordinates": {"antenna": ["a", "b", "c", "d"]},
    }  # fmt: skip
    first = {"kind": "dft", "axis": "time", "input": source}
    across = {"kind": "dft", "axis": "antenna", "input": {"samples": {"workload": "first"}}}
    study = study_of({"first": first, "across": across})
    found = run(study, tmp_path)["across"].coordinates["antenna_frequency"]
    assert (found.units, found.values[:2].tolist()) == ("cycles/sample", [0.0, 0.25])


AXES = ("frequency", "antenna", "time")
SHAPE = (4, 5, 24)
LABELS: dict[str, Array] = {
    "frequency": np.array([1503.0, 1502.0, 1501.0, 1500.0]),
    "antenna": np.array(["e", "b", "a", "d", "c"]), "time": 7 + 0.5 * np.arange(24),
}  # fmt: skip
UNITS = {"frequency": "MHz", "time": "ms"}


def write(path: Path, rng: np.random.Generator) -> tuple[Array, dict[str, Any]]:
    """Samples (frequency, antenna, time) in a drawn layout with scales, and what a study says."""
    samples = (rng.normal(size=(*SHAPE, 2)) @ [1, 1j]).astype(np.complex64)
    order = rng.permutation(3)
    layout, names = int(rng.integers(3)), [AXES[place] for place in order]
    stored = samples.transpose(order)
    given: dict[str, Any] = {"real": "re", "imag": "im"} if layout == 1 else "v"
    with h5py.File(path, "w") as file:
        if layout == 0:
            file.create_dataset("v", data=stored.astype(">c8"), chunks=(3, 2, 4), compression=1)
        elif layout == 1:
            file["re"], file["im"] = stored.real, stored.imag
        else:
            file["v"] = np.stack([stored.real, stored.imag], -1)
        for name, values in LABELS.items():
            file[name] = values.astype("S") if values.dtype.kind == "U" else values
            file[name].attrs["units"] = UNITS.get(name, "")
        for data in {"v", "re", "im"} & {*file}:
            for number, name in enumerate(names):
                file[data].dims[number].attach_scale(file[name])
    return samples, {"data": given, "axes": names + ["complex"] * (layout == 2)}


def part(rng: np.random.Generator, length: int) -> Any:
    """A list of entries in any order, or every n-th one."""
    if rng.random() < 0.5:
        return rng.permutation(length)[: rng.integers(1, length + 1)].tolist()
    return f"{rng.integers(length)}::{rng.integers(1, 3)}"


def at(product: Product, name: str, labels: Array) -> list[int]:
    """The entry of a file's axis for each of a product's labels of that axis, in their order."""
    values = product.coordinates[name].values
    return [int(np.flatnonzero(labels == value)[0]) for value in values]


@pytest.mark.parametrize("seed", [*range(4), *(
    pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(4, 24)
)])  # fmt: skip
def test_values_are_those_of_their_labels(tmp_path: Path, seed: int) -> None:
    """Whatever the layout, the order of axes and the selection: visibilities and spectra."""
    rng = np.random.default_rng(seed)
    path = tmp_path / "v.h5"
    samples, said = write(path, rng)
    first, step = int(rng.integers(0, 6)), int(rng.integers(1, 3))
    chosen = {
        "frequency": part(rng, 4),
        "antenna": part(rng, 5),
        "time": f"{first}:{first + 9 * step}:{step}",
    }

    def of(operand: str) -> dict[str, Any]:
        return {
            "file": str(path), operand: said["data"], "axes": {operand: said["axes"]},
            "select": {operand: chosen},
        }  # fmt: skip

    shift = bool(rng.random() < 0.5)
    study = study_of({
        "visibilities": {"kind": "correlate", "integrate": 3, "input": of("voltages")},
        "spectra": {"kind": "dft", "axis": "time", "shift": shift, "input": of("samples")},
    })  # fmt: skip
    found = run(study, tmp_path)
    taken = np.arange(first, first + 9 * step, step)

    squares = found["visibilities"]
    channels = at(squares, "frequency", LABELS["frequency"])
    rows, columns = (
        at(squares, f"{end}_antenna", LABELS["antenna"]) for end in ("input", "conjugated_input")
    )
    x = samples[channels][:, :, taken].reshape(len(channels), 5, 3, 3).swapaxes(1, 2)
    expected = x[:, :, rows] @ x[:, :, columns].conj().swapaxes(-1, -2)
    np.testing.assert_allclose(squares.data, expected, rtol=1e-5, atol=1e-5)
    middles = squares.coordinates["integration"].values
    np.testing.assert_allclose(middles, LABELS["time"][taken].reshape(3, 3).mean(axis=1))

    spectra = found["spectra"]
    x = samples.astype(complex)[at(spectra, "frequency", LABELS["frequency"])]
    x = x[:, at(spectra, "antenna", LABELS["antenna"])][:, :, taken]
    hertz = spectra.coordinates[spectra.axes[-1]]
    assert hertz.units == "kHz"
    turns = np.outer(LABELS["time"][taken] - LABELS["time"][first], hertz.values)
    expected = x @ np.exp(-2j * np.pi * turns)
    places = [spectra.axes.index(axis) for axis in ("frequency", "antenna", spectra.axes[-1])]
    np.testing.assert_allclose(spectra.data.transpose(places), expected, rtol=1e-5, atol=1e-4)

"""Values go with their labels: products of files of any layout, looked up by their coordinates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from test_chains import run

from tests.workflow.chained_cases import study_of
from workflow.data import Array, Product

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

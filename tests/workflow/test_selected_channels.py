"""A channel of a channel: frequencies that numbers select one after another are added."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from test_chains import run

from tests.workflow.chained_cases import study_of
from workflow.config.mistakes import StudyError
from workflow.data import FALLING, TAKEN, TUNED, TUNED_BEFORE, Array, Coordinate
from workflow.files.units import OF_REAL, OF_SAMPLES, OF_TUNED
from workflow.inputs.selected_offsets import ADDED, above_selected
from workflow.preflight.check import check_study

COARSE_MHZ, RATE_HZ = (150.0, 151.0, 152.0), 1e6
TONE_HZ = 151e6 - 0.262e6
"""In the middle coarse channel, 12 kHz below its channel at -250 kHz."""
BANK: dict[str, Any] = {
    "kind": "channelise", "channels": 8, "taps": 4, "axis": "time", "shift": True,
}  # fmt: skip


def middle_channel(path: Path, samples: Array) -> dict[str, Any]:
    """The input of the middle one of coarse channels (channel, time), which go into a file."""
    with h5py.File(path, "w") as file:
        file["v"], file["f"] = samples, COARSE_MHZ
    return {
        "file": str(path), "samples": "v", "axes": ["channel", "time"],
        "sample_rate_hz": RATE_HZ, "select": {"samples": {"channel": 1}},
        "coordinates": {"frequency": {"dataset": "f", "units": "MHz"}},
    }  # fmt: skip


@pytest.mark.parametrize("by_file", [False, True])
def test_a_tone_is_where_all_selections_together_say(tmp_path: Path, by_file: bool) -> None:
    time = np.arange(8 * 8 * 64) / RATE_HZ
    samples = np.zeros((len(COARSE_MHZ), len(time)), complex)
    samples[1] = np.exp(2j * np.pi * (TONE_HZ - 151e6) * time)
    first = {"first": {**BANK, "input": middle_channel(tmp_path / "v.h5", samples)}}
    below = {"samples": {"workload": "first"}}
    if by_file:
        run(study_of(first), tmp_path)
        path = str(tmp_path / "first" / "products" / "w.h5")
        first, below = {}, {"file": path, "samples": "/entry/data/spectra"}  # type: ignore[dict-item]
    second = {**BANK, "input": {**below, "select": {"samples": {"frequency": 2}}}}  # of -250 kHz
    third = {
        "kind": "dft", "axis": "time", "shift": True,
        "input": {"samples": {"workload": "second"}, "select": {"samples": {"frequency": 3}}},
    }  # fmt: skip
    study = study_of({**first, "second": second, "third": third})
    found = run(study, tmp_path / "chain")["third"]
    at = found.coordinates["selected_frequency"]
    assert (at.values.tolist(), at.units) == ([pytest.approx(151e6 - 265625.0, abs=1e-3)], "Hz")
    assert OF_SAMPLES not in at.long_name
    own = found.coordinates["frequency"]
    assert own.long_name == f"frequency, {OF_SAMPLES}"
    peak = own.values[np.abs(found.data).argmax()]
    apart = own.values[1] - own.values[0]
    assert abs(at.values[0] + peak - TONE_HZ) <= apart / 2 + 1e-3


WITHIN_MHZ = [150.5, 150.625, 150.75, 150.875, 151.0, 151.125, 151.25, 151.375]
"""Frequencies of the channels within the middle coarse one."""


@pytest.mark.parametrize(
    ("by_file", "named", "taken", "select", "axes", "expected_mhz", "added_mhz"),
    [
        (False, "channel", 1, {}, None, WITHIN_MHZ, 151.0),
        (False, "channel", 1, {"frequency": 3}, None, [150.875], 151.0),
        (True, "frequency", ":", {"coarse": 1}, ["coarse", "antenna", "time", "frequency"],
         WITHIN_MHZ, 151.0),
        (False, "frequency", ":", {"fine": 3}, ["frequency", "antenna", "time", "fine"],
         [149.875, 150.875, 151.875], -0.125),
        (True, "frequency", ":", {"fine": 3, "channel": -1}, ["channel", "antenna", "time", "fine"],
         [151.875], -0.125),
        (True, "frequency", ":", {"fine_frequency": 3}, None, [149.875, 150.875, 151.875], -0.125),
        (True, "channel", ":", {"fine": 3}, ["channel", "antenna", "time", "fine"],
         [149.875, 150.875, 151.875], -0.125),
    ],
)  # fmt: skip
def test_channels_of_an_array_have_the_frequencies_of_waves(
    tmp_path: Path, by_file: bool, named: str, taken: Any, select: dict[str, Any],
    axes: list[str] | None, expected_mhz: list[float], added_mhz: float,
) -> None:  # fmt: skip
    """Images, beams and UVH5 files were of a coarse channel's centre where one in it is selected.

    Of all channels within a coarse one there were none. What is added once is not added again.
    """
    places = {
        name: {"values": [0, 3, 5], "units": "m", "axis": "antenna"} for name in ("east", "north")
    }
    samples = np.random.default_rng(2).normal(size=(len(COARSE_MHZ), 3, 8 * 8))
    source = middle_channel(tmp_path / "v.h5", samples.astype(complex))
    source |= {
        "axes": [named, "antenna", "time"], "select": {"samples": {named: taken}},
        "coordinates": {
            "frequency": {"dataset": "f", "units": "MHz", "axis": named}, **places,
        },
    }  # fmt: skip
    chain: dict[str, Any] = {"bank": {**BANK, "input": source}}
    below: dict[str, Any] = {"voltages": {"workload": "bank"}}
    if by_file:
        run(study_of(chain), tmp_path)
        chain, below = {}, {"voltages": "/entry/data/spectra"}
        below["file"] = str(tmp_path / "bank" / "products" / "w.h5")
    below |= {"select": {"voltages": select}, **({"axes": {"voltages": axes}} if axes else {})}
    image = {"kind": "image", "directions": {"n": 3, "field_of_view_deg": 10}}
    chain |= {
        "vis": {"kind": "correlate", "input": below},
        "image": {**image, "input": {"covariances": {"workload": "vis"}}},
        "weights": {"kind": "adaptive", "beams": 1, "loading": 1.0, "input": {
            "covariances": {"workload": "vis"},
        }},
    }  # fmt: skip
    found = run(study_of(chain), tmp_path / "run")
    for name, axis in (("vis", "frequency"), ("image", "summed_frequency"),
                       ("weights", "frequency")):  # fmt: skip
        there = found[name].coordinates
        scale = {"Hz": 1e6, "MHz": 1.0}[there[axis].units]
        np.testing.assert_allclose(there[axis].values, scale * np.array(expected_mhz), rtol=1e-12)
        if name != "weights":
            (added,) = (one for one in there.values() if one.long_name.endswith(ADDED))
            unit = {"Hz": 1e6, "MHz": 1.0}[added.units]
            assert added.values.tolist() == [pytest.approx(unit * added_mhz)]
    site = {"latitude_deg": 1, "longitude_deg": 2, "julian_date": 2459000.5}
    chain["vis"] = {**chain["vis"], "uvh5": site}
    if added_mhz < 0 and len(expected_mhz) > 1:
        with pytest.raises(StudyError, match="one channel within each of several, selected_"):
            check_study(study_of(chain))


@pytest.mark.parametrize(("fine", "weights", "said"), [
    (3, "adaptive", ""), (3, "coarse", ""),
    (4, "adaptive", "149.875 to 151.875 MHz, got 150 to 152 MHz"),
])  # fmt: skip
def test_weights_of_channels_within_channels(
    tmp_path: Path, fine: int, weights: str, said: str
) -> None:
    """Weights are of the same channels within coarse ones, or of all that are within these."""
    places = {
        name: {"values": [0, 3, 5], "units": "m", "axis": "antenna"} for name in ("east", "north")
    }
    samples = np.random.default_rng(2).normal(size=(len(COARSE_MHZ), 3, 8 * 8))
    source = middle_channel(tmp_path / "v.h5", samples.astype(complex))
    with h5py.File(tmp_path / "v.h5", "a") as file:
        file["w"] = np.ones((len(COARSE_MHZ), 2, 3), np.complex64)
    known = source["coordinates"]["frequency"]
    source |= {"axes": ["frequency", "antenna", "time"], "select": {}}
    source["coordinates"] = {"frequency": known, **places}
    beams: dict[str, Any] = {
        "weights": {"workload": "weights"}, "samples": {"workload": "bank"},
        "select": {"samples": {"fine_frequency": fine}},
    }  # fmt: skip
    if weights == "coarse":
        beams |= {
            "file": source["file"], "weights": "w", "coordinates": {"frequency": known},
            "axes": {"weights": ["frequency", "beam", "antenna"]},
        }  # fmt: skip
    chain = {
        "bank": {**BANK, "input": source},
        "vis": {"kind": "correlate", "input": {
            "voltages": {"workload": "bank"}, "select": {"voltages": {"fine_frequency": 3}},
        }},
        "weights": {"kind": "adaptive", "beams": 1, "loading": 1.0, "input": {
            "covariances": {"workload": "vis"},
        }},
        "beams": {"kind": "beamforming", "input": beams},
    }  # fmt: skip
    if said:
        with pytest.raises(StudyError, match=said):
            check_study(study_of(chain))
        return
    found = run(study_of(chain), tmp_path / "run")["beams"].coordinates["frequency"]
    scale = {"Hz": 1e6, "MHz": 1.0}[found.units]
    np.testing.assert_allclose(found.values, scale * np.array([149.875, 150.875, 151.875]))


@pytest.mark.parametrize("by_file", [False, True])
def test_two_operands_of_one_product_have_the_frequency_of_their_channel(
    tmp_path: Path, by_file: bool
) -> None:
    """The sum of what was selected before and now, once; none where they are of two channels."""
    source = middle_channel(tmp_path / "v.h5", np.ones((len(COARSE_MHZ), 8 * 8 * 64), complex))
    below = {"samples": {"workload": "first"}, "select": {"samples": {"frequency": 2}}}
    chain = {"first": {**BANK, "input": source}, "second": {**BANK, "input": below}}
    operands: dict[str, Any] = {name: {"workload": "second"} for name in "ab"}
    if by_file:
        run(study_of(chain), tmp_path)
        operands = dict.fromkeys("ab", "/entry/data/spectra")
        operands["file"] = str(tmp_path / "second" / "products" / "w.h5")
    operands["axes"] = {"a": ["batch", "m", "channel"], "b": ["batch", "n", "channel"]}
    for other, expected in ((3, [151e6 - 265625.0]), (5, [])):
        select = {"a": {"channel": 3}, "b": {"channel": other}}
        product = {"kind": "gemm", "op_b": "C", "input": {**operands, "select": select}}
        found = run(study_of({**chain, "w": product}), tmp_path / f"{other}")["w"].coordinates
        at = [one.values[0] for name, one in found.items() if name == "selected_frequency"]
        assert at == pytest.approx(expected, abs=1e-3)


def test_a_frequency_that_the_study_gives_stays(tmp_path: Path) -> None:
    source = middle_channel(tmp_path / "v.h5", np.ones((len(COARSE_MHZ), 8 * 8 * 64), complex))
    run(study_of({"first": {**BANK, "input": source}}), tmp_path)
    given = {
        "file": str(tmp_path / "first" / "products" / "w.h5"), "samples": "/entry/data/spectra",
        "select": {"samples": {"frequency": 2}},
        "coordinates": {"frequency": {"start": 1e9, "step_hz": 1e6}},
    }  # fmt: skip
    one = study_of({"w": {"kind": "dft", "axis": "time", "input": given}}).workload("w")
    assert one.outline().coordinates["selected_frequency"].values.tolist() == [1.002e9]


def test_offsets_alone_are_added() -> None:
    """In the unit of the later one, which keeps the sense of the samples and what else is said."""
    fine = of_channel(-250.0, "kHz", OF_SAMPLES, TAKEN)
    falling = of_channel(1.4e9, "Hz", FALLING, TAKEN)
    found = above_selected(falling, fine)
    assert (found.values.tolist(), found.units, found.is_reversed) == ([1399750.0], "kHz", True)
    tuned = above_selected(Coordinate(np.array([1e9]), "Hz", TUNED), fine)
    assert tuned.values.tolist() == [999750.0]
    assert tuned.long_name == f"centre of the channel, {TAKEN}"
    below = of_channel(-250.0, "kHz", OF_TUNED, TAKEN)
    spectra = above_selected(Coordinate(np.array([1e9]), "Hz", TUNED_BEFORE), below)
    assert spectra.values.tolist() == [999750.0]
    again = above_selected(of_channel(-9.0, "kHz", OF_SAMPLES, TAKEN), fine)
    assert again.values.tolist() == [-259.0]
    assert OF_SAMPLES in again.long_name
    sky = above_selected(falling, of_channel(1.1e9, "Hz", TAKEN))  # of a bank with a centre_hz
    assert (sky.values.tolist(), sky.is_reversed) == ([1.1e9], True)
    band = Coordinate(falling.values, "Hz", "centre frequency of the band")
    rising = of_channel(1.4e9, "Hz", TAKEN)
    for before, one in (
        (None, fine), (band, fine), (falling, of_channel(1.0, "s", OF_SAMPLES, TAKEN)),
        (rising, of_channel(1.0, "Hz", TAKEN)),
        (rising, of_channel(1.0, "Hz", OF_SAMPLES, OF_REAL, TAKEN)),
        (rising, of_channel(1.0, "Hz", OF_SAMPLES, "the upper half are the negative ones")),
    ):  # fmt: skip
        assert above_selected(before, one) is one


def of_channel(value: float, units: str, *said: str) -> Coordinate:
    return Coordinate(np.array([value]), units, ", ".join(["centre of the channel", *said]))


def test_spectra_that_count_from_no_frequency_beside_them(tmp_path: Path) -> None:
    """Frequency 0 of real samples is an edge of the channel, and without times nothing is in Hz."""
    source = middle_channel(tmp_path / "v.h5", np.zeros((len(COARSE_MHZ), 64), np.float32))
    case = {"kind": "dft", "axis": "time", "power": True, "length": 8, "input": source}
    for real, rate, said in (
        (True, RATE_HZ, "frequency"), (False, RATE_HZ, f"frequency, {OF_SAMPLES}"),
        (False, None, "frequency"),
    ):  # fmt: skip
        source |= {"samples": "v" if real else {"real": "v"}, "sample_rate_hz": rate}
        one = study_of({"w": {**case, "real": real}}).workload("w")
        found = one.product_outline(one.outline()).coordinates
        assert found["selected_frequency"].values.tolist() == [151.0]
        assert found["frequency"].long_name == said


def test_each_axis_of_channels_of_channels_has_a_name_of_its_own(tmp_path: Path) -> None:
    """A spectrum along the times of spectra, and a third bank, had one that was there already."""
    bank = {**BANK, "channels": 2, "taps": 1}
    below = {name: {"samples": {"workload": name}} for name in ("first", "second", "powers")}
    spectra = {"kind": "dft", "axis": "time", "length": 2, "power": True, "input": below["first"]}
    study = study_of({
        "first": {**bank, "axis": None, "samples": 64}, "second": {**bank, "input": below["first"]},
        "third": {**bank, "input": {
            **below["second"], "select": {"samples": {"polarization": 0, "antenna": 0}}}},
        "powers": {**spectra, "input": {**below["first"], "select": {"samples": {"antenna": 0}}}},
        "again": {"kind": "dft", "axis": "time", "input": {
            **below["powers"], "select": {"samples": {"polarization": 0}}}},
        "estimated": {**spectra, "real": True, "input": {
            **below["powers"], "select": {"samples": {"polarization": 0}}}},
    })  # fmt: skip
    found = run(study, tmp_path)
    banks = ("frequency", "fine_frequency", "time", "fine_fine_frequency")
    assert found["third"].axes == banks
    for name in banks[1::2]:
        assert found["third"].coordinates[name].long_name.endswith(OF_SAMPLES)
    assert found["again"].axes == ("frequency", "time_frequency", "time_time_frequency")
    of_groups = ("frequency", "time_frequency", "time", "time_time_frequency")
    assert found["estimated"].axes == of_groups

"""Sweeps of given sizes: their rows and table, results that are wrong, and files that are."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import argand
import numpy as np
import pytest

from benchmarks.harness.measuring import chosen_device
from benchmarks.harness.recorded import plain_rows
from benchmarks.sweep import __main__ as command
from benchmarks.sweep import banks, beams, correlations, dense, images, readouts, spectra, systems
from benchmarks.sweep.draws import GIVEN, drawn
from benchmarks.sweep.given import NAMED
from tools.docs.blocks import TABLES

SIZES = """
herk = [
    {batch = 2, n = 20, k = 30, input = "int8"},
    {batch = 2, n = 20, k = 30, input = "complex64", precisions = ["fp32", "tf32"]},
]
image = [{images = 1, channels = 2, antennas = 9, directions = 144, precisions = ["tf32", "fp64"]}]
beam_power = [
    {beams = 5, antennas = 7, times = 99, integrate = 9, detect = "power", input = "bf16"},
]
channelise = [
    {channels = 16, taps = 4, oversampling = "4/3", rows = 2, components = 4000, input = "int8"},
]
hermitian = [{systems = 7, n = 30, columns = 4, input = "complex128"}]
spectrum = [
    {length = 16, rows = 2, overlap = 8, components = 4000, input = "complex64", average = 3},
    {length = 16, rows = 2, components = 4000, input = "real int8", precisions = ["fp64", "bf16"]},
]
solve = [
    {n = 30, columns = 2, input = "complex128", block = 16, precisions = ["fp64", "14xint8"]},
    {n = 45, columns = 1, input = "complex64"},
]
readout = [
    {qubits = 10, ask = "shots", count = 1000}, {qubits = 10, ask = "marginals", count = 3},
    {qubits = 10, ask = "random Pauli strings", count = 12},
    {qubits = 10, ask = "diagonal Pauli strings", count = 2},
]
"""
OURS = {
    "herk": (correlations, "herk", 3), "image": (images, "image", 2),
    "beam_power": (beams, "beam_power", 1), "channelise": (banks, "channelise", 1),
    "hermitian": (systems, "solve_hermitian", 1), "spectrum": (spectra, "spectrum", 3),
    "readout": (readouts, "expectation", 4), "solve": (dense, "solve", 3),
}  # fmt: skip
"""Modules of sweeps, what they call there, and rows of ours."""


@pytest.fixture
def sizes(tmp_path: Path) -> str:
    path = tmp_path / "sizes.toml"
    path.write_text(SIZES)
    return str(path)


@pytest.mark.parametrize("what", GIVEN)
def test_given_sizes_are_measured_and_on_their_page(tmp_path: Path, sizes: str, what: str) -> None:
    path = tmp_path / f"h200-{what.replace('_', '-')}.csv"
    assert command.main([what, "--sizes", sizes, "--device", "cpu", "--csv", str(path)]) == 0
    rows = plain_rows(path)
    assert {row["verified"] for row in rows} == {"True"}, rows
    ours = [row for row in rows if row["implementation"] == "argand"]
    assert len(ours) == OURS[what][2]
    assert all(float(row["gbytes_per_s"]) > 0 for row in ours)
    assert all(row["over_bound"] or row["precision"] == "exact" for row in ours)
    table = TABLES[path.stem](tmp_path)
    lines = len({row["shape"] for row in rows}) if what == "solve" else len(ours)
    assert table.count("\n") == 2 + lines
    if what == "beam_power":
        *_, mine = table.splitlines()
        assert all(float(cell) > 0 for cell in mine.split("|")[6:8])  # over the product, detected


@pytest.mark.parametrize("what", GIVEN)
def test_a_wrong_result_is_not_verified(
    monkeypatch: pytest.MonkeyPatch, sizes: str, what: str
) -> None:
    module, name, _ = OURS[what]
    right = getattr(argand, name)

    def wrong(*arguments: Any, **options: Any) -> Any:
        found = right(*arguments, **options)
        if not options.get("details"):  # of which a row of systems has the steps
            found *= 1.5
        return found

    monkeypatch.setattr(module, name, wrong)
    assert command.main([what, "--sizes", sizes, "--device", "cpu"]) == 1


def test_every_sum_of_integers_and_every_mirror_is_compared() -> None:
    case, device = correlations.CorrelationCase(300, 40, "int8"), chosen_device("cpu")
    operands = case.operands(device, 1)
    (ours,), assess = case.ours(device), case.assessment(operands, device)
    right = ours.result(ours.compute(*ours.prepare(*operands)))
    assert assess(right, ours).verified  # type: ignore[union-attr]
    for off, reason in ((np.complex64(1), "is not exact"), (np.complex64(1j), "the conjugate")):
        found = right.copy()
        found.reshape(-1, 300, 300)[0, 211, 211] += off
        assert reason in assess(found, ours).reason  # type: ignore[union-attr]


@pytest.mark.parametrize("right", [True, False])
def test_shots_are_those_of_the_cpu(right: bool) -> None:
    case, device = readouts.ReadoutCase(8, "shots", 500), chosen_device("cpu")
    operands = case.operands(device, 1)
    ((ours,), (lines,)), assess = (case.ours(device), case.peers(device)), case.assessment(
        operands, device
    )  # fmt: skip
    for one in (ours, lines):
        outcomes, counts = one.compute(*operands)
        found = assess((outcomes, counts if right else counts + (outcomes == outcomes[1])), one)
        assert found.verified == right  # type: ignore[union-attr]


def test_errors_of_spectra_on_a_cpu_have_their_noise_floor(tmp_path: Path, sizes: str) -> None:
    path = tmp_path / "cpu-spectrum.csv"
    given = ["--sizes", sizes, "--device", "cpu", "--csv", str(path)]
    assert command.main(["spectrum", *given]) == 0
    *_, line = TABLES["cpu-spectrum"](tmp_path).splitlines()
    assert float(line.split("|")[5]) < -100


@pytest.mark.parametrize(
    ("what", "file"),
    [*((what, NAMED) for what in GIVEN),
     *((what, NAMED.with_name("cpu_sizes.toml")) for what in ("spectrum", "readout"))],
)  # fmt: skip
def test_named_sizes_are_those_of_a_case(what: str, file: Path) -> None:
    cases = drawn(what, 0, 1, file)
    assert cases
    assert all(case.given for case in cases)
    assert len({(case.shape, case.kind) for case in cases}) == len(cases)


@pytest.mark.parametrize(("content", "says"), [
    ("herk = [", "Invalid"), (b"\xff", "decode"), ("image = []", "must have herk = [...]"),
    ("herk = [{n = 4, input = 'int8'}]", "table 1 of herk: missing a required argument: 'k'"),
    ("herk = [{n = 4, k = 4, input = 'int8', m = 1}]", "unexpected keyword argument 'm'"),
    ("herk = [{n = 0, k = 4, input = 'int8'}]", "n must be a positive integer, got 0"),
    ("herk = [{n = 4, k = 4, input = 'fp16'}]", "input must be one of ['complex64', 'int8']"),
    ("herk = [{n = 4, k = 4, input = 'int8', precisions = ['fp8']}]", "precisions must be a list"),
])  # fmt: skip
def test_a_wrong_file_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | bytes, says: str
) -> None:
    path = tmp_path / "sizes.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SystemExit, match="2"):
        command.main(["herk", "--sizes", str(path), "--device", "cpu"])
    last = capsys.readouterr().err.splitlines()[-1]
    assert "--sizes: " in last
    assert str(path) in last
    assert says in last


def test_sizes_that_no_call_takes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="components must be at least 384"):
        banks.BankCase(16, 4, Fraction(1), 3, "int8", 383)
    with pytest.raises(ValueError, match="oversampling"):
        banks.BankCase(15, 4, Fraction(4, 3), 3, "int8")
    path = tmp_path / "sizes.toml"
    path.write_text(SIZES.replace("4/3", "1/0"))
    with pytest.raises(ValueError, match="oversampling must be a fraction such as 4/3, got '1/0'"):
        drawn("channelise", 0, 1, path)
    with pytest.raises(ValueError, match="components must make a mean of all segments"):
        spectra.SpectrumCase(16, 3, "int8", components=90)
    with pytest.raises(ValueError, match="count must be at most 4"):
        readouts.ReadoutCase(4, "marginals", 5)
    with pytest.raises(ValueError, match="times must be at least 9"):
        beams.BeamCase(4, 4, 9, "power", "int8", 8)

"""Runs of workloads with other parameters are not compared, whatever their sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from compared_tables import ROW, write_table

from workflow.compare.reading import Key, Row, read_rows
from workflow.compare.verdicts import Margins, compare
from workflow.outcome.manifest import write_manifest
from workflow.preflight.loading import load_study

BANK = {"kind": "channelise", "channels": 4, "taps": 2, "samples": 64, "antennas": 3}
READER = {"kind": "correlate", "input": {"voltages": {"workload": "bank"}}}


def rows(folder: Path, bank: dict[str, Any], reader: dict[str, Any]) -> dict[Key, Row]:
    """The rows of a results folder, whose manifest has the parameters of its study."""
    study = load_study({"workloads": {"bank": BANK | bank, "w": READER | reader}})
    table = write_table(folder / "tables" / "performance.csv", [ROW])
    parameters = {name: study.parameters(name) for name in study.names}
    paths = folder / "manifest.json", folder / "study.yaml"
    write_manifest(*paths, {}, [], {}, [table], parameters)
    return read_rows(folder)


@pytest.mark.parametrize(
    ("bank", "reader", "reason"),
    [
        ({"window": "hann"}, {}, 'parameters bank.window "hamming" / "hann"'),
        ({}, {"integrate": 4}, "parameters integrate null / 4"),
        ({"tones": [{"frequency": 0.1}] * 9}, {}, "parameters bank.tones "),
        ({"window": "hamming", "shards": 3, "tolerance": 1e-3}, {}, ""),
        ({}, {"kernels": {"tf32": "mma.sync"}, "precisions": ["tf32", "fp32"]}, ""),
    ],
)  # fmt: skip
def test_other_parameters_of_it_or_of_what_it_reads(
    tmp_path: Path, bank: dict[str, Any], reader: dict[str, Any], reason: str
) -> None:
    """Defaults count as given; how something is computed does not."""
    before, after = rows(tmp_path / "a", {}, {}), rows(tmp_path / "b", bank, reader)
    (compared,) = compare(before, after, Margins())
    assert compared.reason.startswith(reason)
    assert compared.is_compared == (not compared.reason) == (not reason)
    (compared,) = compare(before, after, Margins(across=frozenset({"parameters"})))
    assert compared.is_compared


def test_a_table_alone_tells_none(tmp_path: Path) -> None:
    before = rows(tmp_path, {}, {})
    alone = read_rows(tmp_path / "tables" / "performance.csv")
    assert before["w", "argand", "fp32", ""].parameters["bank.channels"] == "4"
    (compared,) = compare(before, alone, Margins())
    assert compared.is_compared


def test_all_workloads_that_lead_to_one_count() -> None:
    spectra = {"kind": "dft", "axis": "time"}
    below = {name: {"input": {"samples": {"workload": name}}} for name in ("bank", "spectra")}
    cases = {"bank": BANK, "spectra": spectra | below["bank"], "w": spectra | below["spectra"]}
    found = load_study({"workloads": cases}).parameters("w")
    assert {"axis", "bank.channels", "spectra.axis"} <= set(found)


def test_a_long_value_counts_to_its_end() -> None:
    tones = [{"frequency": n / 64} for n in range(16)]
    texts = {
        load_study({"workloads": {"bank": BANK | {"tones": given}}}).parameters("bank")["tones"]
        for given in (tones, [*tones[:-1], {"frequency": 0.5}])
    }
    assert len(texts) == 2
    assert max(map(len, texts)) < 120

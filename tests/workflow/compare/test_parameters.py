"""A comparison takes runs of the same parameters, and decides by intervals of ratios."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compared_tables import ROW, write_table

from workflow.compare.ratios import time_ratio
from workflow.compare.reading import Key, Row, Times, read_rows
from workflow.compare.verdicts import Margins, compare
from workflow.outcome.manifest import write_manifest
from workflow.preflight.loading import load_study

BANK = {"kind": "channelise", "channels": 4, "taps": 2, "samples": 64, "antennas": 3}
READER = {"kind": "correlate", "input": {"voltages": {"workload": "bank"}}}


def rows(
    folder: Path, bank: dict[str, Any], reader: dict[str, Any], digest: str = ""
) -> dict[Key, Row]:
    """The rows of a results folder, whose manifest has the parameters of its study.

    With a ``digest`` there is a row of the bank, read from a file that has it.
    """
    study = load_study({"workloads": {"bank": BANK | bank, "w": READER | reader}})
    of_bank = [ROW | {"workload": "bank", "source_sha256": digest}] if digest else []
    table = write_table(folder / "tables" / "performance.csv", [ROW, *of_bank])
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


def test_other_files_of_what_it_reads(tmp_path: Path) -> None:
    before, same, after = (rows(tmp_path / one, {}, {}, one[0]) for one in ("a", "aa", "b"))
    assert all(row.is_compared for row in compare(before, same, Margins()))
    compared, bank = compare(before, after, Margins())
    assert (compared.reason, bank.reason) == ("input of bank a / b", "input a / b")
    across = Margins(across=frozenset({"input"}))
    assert all(row.is_compared for row in compare(before, after, across))
    alone = read_rows(tmp_path / "b" / "tables" / "performance.csv")
    assert compare(before, alone, Margins())[0].is_compared


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


KEY = ("w", "argand", "fp32", "")


def measured(rng: np.random.Generator, calls: int, median: float, spread: float) -> Times:
    """Records of calls whose logarithms are normal."""
    drawn = median * np.exp(spread * rng.standard_normal(calls))
    p20, p50, p80 = map(float, np.quantile(drawn, [0.2, 0.5, 0.8]))
    return Times(p20=p20, p50=p50, p80=p80, iterations=calls)


@pytest.mark.parametrize(("calls", "spread"), [(3, 0.1), (5, 0.05), (20, 0.3), (200, 0.1)])
def test_the_interval_covers_the_true_ratio(
    calls: int, spread: float, rng: np.random.Generator
) -> None:
    """In at least 95 of 100 pairs of runs, also of few calls, whose quantiles are themselves noise.

    Of normal logarithms it is 12 % wider than need be: the line from p20 to p80 is steeper than the
    quantile function at the median.
    """
    covered = 0
    for pair in range(200):
        before, after = measured(rng, calls, 10.0, spread), measured(rng, calls, 13.0, spread)
        ratio = time_ratio(before, after, (str(pair), *KEY[1:]))
        assert ratio.low is not None
        assert ratio.high is not None
        covered += ratio.low <= 1.3 <= ratio.high
    assert covered / 200 >= 0.95


def test_more_calls_make_it_narrower() -> None:
    widths = []
    for calls in (5, 20, 100):
        times = Times(p20=9, p50=10, p80=12, iterations=calls)
        ratio = time_ratio(times, times, KEY)
        assert ratio.value == 1
        assert ratio.low is not None
        assert ratio.high is not None
        assert ratio.low < 1 < ratio.high
        widths.append(ratio.high / ratio.low)
    assert widths[0] > widths[1] > widths[2]


def test_an_interval_that_the_run_recorded_is_used() -> None:
    """Two equal normal intervals of the logarithm make one of the ratio that is sqrt(2) as wide."""
    times = Times(p20=1, p50=10, p80=100, low=10 / 1.1, high=11, iterations=20)
    ratio = time_ratio(times, times, KEY)
    assert ratio.low == pytest.approx(1.1 ** -(2**0.5), rel=0.02)
    assert ratio.high == pytest.approx(1.1 ** (2**0.5), rel=0.02)


@pytest.mark.parametrize(
    "times",
    [
        Times(p50=10),
        Times(p20=9, p50=10, p80=12),
        Times(p20=9, p50=10, p80=12, iterations=2),
        Times(p50=10, iterations=20),
        Times(p50=10, low=9, iterations=20),
    ],
)
def test_without_a_spread_there_is_no_interval(times: Times) -> None:
    ratio = time_ratio(times, Times(p20=9, p50=20, p80=22, iterations=20), KEY)
    assert (ratio.value, ratio.low, ratio.high) == (2, None, None)


def test_other_rows_do_not_change_it() -> None:
    times = Times(p20=9, p50=10, p80=12, iterations=20)
    assert time_ratio(times, times, KEY) == time_ratio(times, times, KEY)

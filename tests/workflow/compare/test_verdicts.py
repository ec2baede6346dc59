"""Verdicts: what is a change, what is a regression, what does not compare."""

from __future__ import annotations

from pathlib import Path

import pytest
from compared_tables import ROW, times, write_table

from workflow.compare.reading import read_rows
from workflow.compare.verdicts import Compared, Margins, compare
from workflow.compare.writing import summary

UNVERIFIED = {
    "verified": "false", "reason": "error 1 exceeds 0.1", "time_us_p20": "", "time_us_p50": "",
    "time_us_p80": "",
}  # fmt: skip


def comparison(
    folder: Path, before: dict[str, str], after: dict[str, str], margins: Margins | None = None
) -> Compared:
    tables = [
        read_rows(write_table(folder / name, [ROW | change]))
        for name, change in (("a.csv", before), ("b.csv", after))
    ]
    (found,) = compare(*tables, margins or Margins())
    return found


@pytest.mark.parametrize(
    ("change", "verdict", "regression"),
    [
        ({}, "unsettled", False),  # p20 to p80 is a third of the median, in 20 calls
        ({"time_us_p20": "9.9", "time_us_p80": "10.1"}, "unsettled", False),
        (times(1.5), "slower", True),
        (times(0.5), "faster", False),
        (times(1.5) | {"rel_frobenius": "2e-7"}, "slower, less accurate", True),
        (times(0.5) | {"rel_frobenius": "2e-7"}, "faster, less accurate", True),
        (times(0.5) | {"rel_frobenius": "5e-8"}, "faster, more accurate", False),
        (UNVERIFIED, "no longer verified", True),
        ({"time_us_p20": "", "time_us_p80": ""}, "times not comparable", False),
        ({"iterations": "1"}, "times not comparable", False),
        (dict.fromkeys(times(1), ""), "times not comparable", False),
    ],
)
def test_of_ours(change: dict[str, str], verdict: str, regression: bool, tmp_path: Path) -> None:
    found = comparison(tmp_path, {}, change)
    assert (found.verdict, found.regression) == (verdict, regression)
    assert found.is_compared


def test_equal_times_with_little_spread_are_the_same(tmp_path: Path) -> None:
    steady = {"time_us_p20": "9.99", "time_us_p80": "10.01"}
    assert comparison(tmp_path, steady, steady).verdict == "same"


def test_a_peer_is_no_regression(tmp_path: Path) -> None:
    peer = {"implementation": "numpy"}
    assert not comparison(tmp_path, peer, peer | times(2)).regression
    assert not comparison(tmp_path, peer, peer | UNVERIFIED).regression


@pytest.mark.parametrize(
    ("peers", "reason"),
    [
        (1.5, "the peers of this workload took 1.5 of A's time too"),
        (1.0, ""),
        (0.5, ""),  # the other way
    ],
)
def test_what_moved_with_the_peers_of_its_workload(
    peers: float, reason: str, tmp_path: Path
) -> None:
    numpy, other = {"implementation": "numpy"}, {"workload": "other", "implementation": "numpy"}
    changes = (times(1), times(1), times(1)), (times(1.6), times(peers), times(1))
    tables = [
        read_rows(
            write_table(
                tmp_path / f"{number}.csv",
                [ROW | who | time for who, time in zip(({}, numpy, other), run, strict=True)],
            )
        )
        for number, run in enumerate(changes)
    ]
    ours, peer, _ = compare(*tables, Margins())
    assert (ours.verdict, ours.regression, ours.reason) == ("slower", True, reason)
    assert peer.reason == ""
    apart = "slower as their peers are" if reason else "slower"
    assert f"rows: 1 {apart}, " in summary([ours, peer])


def test_what_was_not_verified_before(tmp_path: Path) -> None:
    assert comparison(tmp_path, UNVERIFIED, {}).verdict == "now verified"
    failed = (
        dict.fromkeys((*times(1), "iterations", "m", "n", "k", "device", "seed", "versions"), "")
        | {"verified": "false", "verdict": "failed", "reason": "run: killed"}
    )  # fmt: skip
    found = comparison(tmp_path, {"source_sha256": "a"}, failed)
    assert (found.verdict, found.reason, found.regression) == (
        "no longer verified", "run: killed", True,
    )  # fmt: skip
    assert comparison(tmp_path, failed, {}).verdict == "now verified"
    found = comparison(tmp_path, UNVERIFIED, UNVERIFIED)
    assert (found.verdict, found.reason) == (
        "not comparable",
        "verified in neither: error 1 exceeds 0.1",
    )


@pytest.mark.parametrize(
    ("change", "factor"),
    [
        ({"device": "e"}, "device d / e"),
        ({"shards": "2"}, "size kind=gemm m=8 n=9 k=10 / kind=gemm m=8 n=9 k=10 shards=2"),
        ({"m": "16"}, "size kind=gemm m=8 n=9 k=10 / kind=gemm m=16 n=9 k=10"),
        ({"seed": "2"}, "seed 1 / 2"),
        ({"versions": "argand 0.2.0; numpy 2.5.0"}, "numpy 2.4.6 / 2.5.0"),
        ({"versions": "numpy 2.4.6; driver 550.54"}, "driver none / 550.54"),
        ({"versions": "numpy 2.4.6; scipy 1.17.1"}, "scipy none / 1.17.1"),
    ],
)
def test_a_factor_that_differs(change: dict[str, str], factor: str, tmp_path: Path) -> None:
    found = comparison(tmp_path, {}, change | times(9))
    assert (found.verdict, found.reason, found.regression) == ("not comparable", factor, False)
    named = factor.partition(" ")[0]
    across = frozenset([named if named in ("device", "size", "seed") else "versions"])
    assert comparison(tmp_path, {}, change | times(9), Margins(across=across)).verdict == "slower"


@pytest.mark.parametrize(
    "change",
    [
        {"seed": ""},
        {"versions": ""},
        {"versions": "argand 0.2.0; numpy 2.4.6"},
        {"versions": "numpy 2.4.6; torch 3.0"},
        {"chunks": "17"},
    ],
)
def test_what_does_not_keep_rows_apart(change: dict[str, str], tmp_path: Path) -> None:
    """Our own version is what is compared, and free memory decides how many chunks there are.

    PyTorch's version matters to PyTorch's rows alone.
    """
    assert comparison(tmp_path, {}, change).is_compared


def test_other_data(tmp_path: Path) -> None:
    found = comparison(tmp_path, {"source_sha256": "a"}, {"source_sha256": "b"})
    assert found.reason == "input a / b"


def test_errors_below_what_fp64_can_tell_are_equal(tmp_path: Path) -> None:
    assert comparison(tmp_path, {"rel_frobenius": "0"}, {"rel_frobenius": "1e-16"}).error_ratio == 1
    assert comparison(tmp_path, {"rel_frobenius": "0"}, {"rel_frobenius": "1e-15"}).error_ratio > 9


def test_rows_of_one_run_alone(tmp_path: Path) -> None:
    a = read_rows(write_table(tmp_path / "a.csv", [ROW, ROW | {"precision": "fp64"}]))
    b = read_rows(write_table(tmp_path / "b.csv", [ROW, ROW | {"shard": "1-of-2"}]))
    found = {row.key[2:]: row.verdict for row in compare(a, b, Margins())}
    assert found[("fp64", "")] == "only in A"
    assert found[("fp32", "1-of-2")] == "only in B"


def test_an_interval_of_the_median_that_a_table_has(tmp_path: Path) -> None:
    narrow = {"time_us_low": "9.95", "time_us_high": "10.05"}
    assert comparison(tmp_path, narrow, narrow).verdict == "same"
    other = {"time_us_p50": "11", "time_us_low": "10.9", "time_us_high": "11.1"}
    assert comparison(tmp_path, narrow, other).verdict == "slower"


def test_the_times_of_a_model_decide_nothing(tmp_path: Path) -> None:
    model = {"precision": "tf32", "backend": "cpu", "iterations": "3"}
    found = comparison(tmp_path, model, model | times(3.0))
    assert (found.verdict, found.time, found.regression) == ("same", None, False)
    assert found.reason == "a model of a GPU's precision: its errors are compared alone"
    found = comparison(tmp_path, model, model | times(3.0) | {"rel_frobenius": "2e-7"})
    assert (found.verdict, found.regression) == ("less accurate", True)
    assert comparison(tmp_path, model, model | UNVERIFIED).verdict == "no longer verified"
    on_a_gpu = model | {"backend": "cuda", "iterations": "20"}
    assert comparison(tmp_path, on_a_gpu, on_a_gpu | times(3.0)).verdict == "slower"

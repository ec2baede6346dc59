"""Tables: speedups against the right peer, the Pareto front, and files that read back."""

import csv
from dataclasses import fields, replace

import h5py
import numpy as np
import pytest

from workflow.accuracy.grading import GrowthRow
from workflow.records import Record
from workflow.tables.ranking import OF_VERIFIED, best_baseline, complete, ordered, pareto
from workflow.tables.readable import number
from workflow.tables.study import UNITS, write_accuracy, write_performance, write_shards

GROWTH = [
    GrowthRow("tf32", "re", (16, 1024), (1e-5, 8e-5), (1e-3, 1e-2), 0.5, 0.5, "A"),
    GrowthRow("tf32", "im", (16, 1024), (1e-5, 9e-3), (1e-3, 1e-2), 1.64, 0.5, "C"),
]


def record(implementation="argand", precision="fp32", time=100.0, **changes):
    known = {
        "workload": "w", "kind": "gemm", "algorithm": "cgemm", "device": "d", "iterations": 20,
        "time_us_p50": time, "tflops": 1.0, "gbytes_per_s": 2.0, "limit_fraction": 0.123456,
        "energy_j": 3.0, "rel_frobenius": 1e-7, "componentwise_re": 1e-7, "componentwise_im": 2e-7,
        "bound": 1e-5, "tolerance": 1e-2, "verified": True,
    }  # fmt: skip
    known |= changes
    return Record(implementation=implementation, precision=precision, **known)


PEERS = [
    record("numpy", "fp64", 400.0),
    record("numpy", "fp32", 200.0),
    record("cublas", "fp32", 150.0),
]


def speedups(*records):
    return [r.speedup for r in complete(records)]


def test_speedup_is_against_the_fastest_peer_of_the_class():
    ours = record(time=50.0)
    assert speedups(ours, *PEERS) == [3.0, 1.0, 0.75, 1.0]


@pytest.mark.parametrize(
    ("precision", "peer"),
    [("fp64", "fp64"), ("3xtf32", "fp32"), ("tf32", "fp32"), ("bf16", "fp32")],
)
def test_a_class_without_a_peer_takes_the_next_more_accurate(precision, peer):
    assert best_baseline(record(precision=precision), PEERS).precision == peer


def test_a_less_accurate_peer_never_counts():
    fast = record("cublas", "tf32", 1.0)
    assert best_baseline(record(precision="fp32"), [fast]) is None
    assert speedups(record(precision="fp32"), fast) == [None, 1.0]


def test_a_model_of_a_gpu_has_no_speedup():
    peer = record("numpy", "fp32", 200.0, backend="cpu")
    models = [record(precision=name, backend="cpu") for name in ("tf32", "3xtf32")]
    assert speedups(record(backend="cpu"), *models, peer) == [2.0, None, None, 1.0]
    assert speedups(record(precision="tf32", backend="cuda"), peer) == [2.0, 1.0]


def test_a_class_of_its_own_comes_before_a_faster_one_that_is_more_accurate():
    slow = record("cublas", "tf32", 1000.0)
    assert best_baseline(record(precision="tf32"), [*PEERS, slow]) is slow


@pytest.mark.parametrize(
    "change",
    [
        {"workload": "other"}, {"device": "other"}, {"verified": False, "reason": "wrong"},
        {"time": None}, {"implementation": "argand"},
    ],
)  # fmt: skip
def test_what_is_no_peer(change):
    peer = record(**({"implementation": "cublas", "time": 1.0} | change))
    assert complete([record(), peer])[0].speedup is None


def test_unverified_rows_stay_without_numbers():
    failed = record(verified=False, reason="componentwise error 1 exceeds 0.1", speedup=9.0)
    failed = replace(failed, predicted_us=7.0, tflops=3.0, energy_j=1.0)
    (found,) = complete([failed])
    assert (found.time_us_p50, found.predicted_us, found.tflops, found.energy_j) == (None,) * 4
    assert all(getattr(found, name) in (None, "") for name in OF_VERIFIED)
    assert found == replace(failed, **{name: getattr(found, name) for name in OF_VERIFIED})
    with pytest.raises(ValueError, match="w: argand at fp32: not verified, and no reason"):
        complete([record(verified=False)])


def test_every_column_is_a_measurement_or_not():
    assert set(OF_VERIFIED) | set(UNITS) <= {field.name for field in fields(Record)}


def test_order_is_the_studys_then_ours_then_from_fp64_down():
    mixed = [
        record("numpy", "fp64", workload="z"),
        record(precision="bf16", workload="z"),
        record(precision="3xtf32", workload="a"),
        record(precision="fp64", workload="z"),
        record(precision="fp32", workload="a"),
    ]
    found = [(r.workload, r.implementation, r.precision) for r in ordered(mixed)]
    assert found == [
        ("z", "argand", "fp64"),
        ("z", "argand", "bf16"),
        ("z", "numpy", "fp64"),
        ("a", "argand", "fp32"),
        ("a", "argand", "3xtf32"),
    ]


def test_pareto_front():
    points = {"a": (10, 1e-3), "b": (20, 1e-4), "c": (30, 5e-4), "d": (40, 1e-7), "e": (10, 1e-2)}
    rows = [record(time=t, rel_frobenius=e, algorithm=name) for name, (t, e) in points.items()]
    rows.append(record(time=1.0, rel_frobenius=0.0, verified=False, reason="wrong"))
    rows.append(record(time=None))
    assert [r.algorithm for r in pareto(rows)] == ["a", "b", "d"]
    assert pareto([]) == []


def test_an_exact_result_ends_the_front():
    exact = record(time=10.0, rel_frobenius=0.0)
    assert pareto([exact, record(time=20.0, rel_frobenius=0.0)]) == [exact]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (1234.5, "1230"), (12.345, "12.3"), (9.996, "10.0"), (0.0012345, "0.00123"),
        (0.00012, "1.20e-04"), (999_499.0, "999000"), (999_999.0, "1.00e+06"), (-5.555, "-5.55"),
        (float("nan"), "nan"), (float("inf"), "inf"),
    ],
)  # fmt: skip
def test_three_significant_digits(value, text):
    assert number(value) == text


FAILED = record(
    "torch", "bf16", workload="a|b", verified=False, reason="<b>|x| exceeds 1</b>"
)  # fmt: skip
RECORDS = [record(time=50.0), record(precision="tf32"), record("numpy", "fp32", 200.0), FAILED]


@pytest.fixture
def tables(tmp_path):
    paths = {suffix: tmp_path / f"performance.{suffix}" for suffix in ("csv", "md", "h5", "html")}
    write_performance(
        RECORDS, csv_path=paths["csv"], markdown=paths["md"], hdf5=paths["h5"], html=paths["html"]
    )
    return paths


def test_csv_has_every_column_in_order(tables):
    rows = list(csv.DictReader(tables["csv"].read_text().splitlines()))
    assert tuple(rows[0]) == Record.columns_in_order()
    assert [row["speedup"] for row in rows] == ["4.0", "2.0", "1.0", ""]
    assert [row["verified"] for row in rows] == ["true", "true", "true", "false"]
    assert rows[3]["reason"] == FAILED.reason
    assert rows[0]["tolerance"] == "0.01"
    assert rows[3]["time_us_p50"] == ""


def test_markdown_has_a_cell_for_each_heading(tables):
    text = tables["md"].read_text()
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(RECORDS)
    bars = [line.replace("\\|", "").count("|") for line in lines]
    assert len(set(bars)) == 1
    assert "| 12.3 |" in lines[2]
    assert "a\\|b" in lines[-1]
    assert "| – |" in lines[-1]
    assert "next more accurate class" in text


def test_h5_reads_with_h5py_xarray_and_pandas(tables):
    with h5py.File(tables["h5"]) as file:
        table = file["performance"]
        assert list(table.attrs["columns"]) == list(Record.columns_in_order())
        assert table["time_us_p50"].attrs["units"] == "us"
        np.testing.assert_array_equal(table["time_us_p50"][...], [50.0, 100.0, 200.0, np.nan])
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    with xarray.open_dataset(tables["h5"], engine="h5netcdf", group="performance") as dataset:
        frame = dataset.to_dataframe()
    assert frame["implementation"].tolist() == ["argand", "argand", "numpy", "torch"]
    assert frame["reason"].tolist()[3] == FAILED.reason
    assert frame["verified"].tolist() == [1, 1, 1, 0]
    assert set(frame.columns) == set(Record.columns_in_order())


def test_html_is_whole_and_escaped(tables):
    text = tables["html"].read_text()
    assert text.count("<tr") == 1 + len(RECORDS)
    assert "<b>" not in text
    assert "&lt;b&gt;" in text
    assert "http" not in text
    assert "@" not in text.replace("@media", "")


def test_tables_of_no_records(tmp_path):
    paths = [tmp_path / name for name in ("p.csv", "p.md", "p.h5", "p.html")]
    write_performance([], csv_path=paths[0], markdown=paths[1], hdf5=paths[2], html=paths[3])
    assert paths[0].read_text().splitlines() == [",".join(Record.columns_in_order())]
    with h5py.File(paths[2]) as file:
        assert file["performance/workload"].shape == (0,)


def test_accuracy_joins_the_grade_of_our_products(tmp_path):
    softmax = record(precision="tf32", kind="softmax", componentwise_re=None)
    records = [*RECORDS, softmax, record("cublas", "tf32")]
    paths = {name: tmp_path / f"a.{name}" for name in ("csv", "md", "html")}
    write_accuracy(records, GROWTH, csv_path=paths["csv"], markdown=paths["md"], html=paths["html"])
    rows = list(csv.DictReader(paths["csv"].read_text().splitlines()))
    assert [row["grade"] for row in rows] == ["", "C", "", "", "", ""]
    assert [row["slope"] for row in rows] == ["", "1.64", "", "", "", ""]
    assert rows[0]["rel_frobenius"] == "1e-07"
    text = paths["md"].read_text()
    assert "| tf32 | im | 1.64 | C | 16 | 1.00e-05 | 1024 | 9.00e-03 |" in text
    assert "1.00e-07" in text
    assert "max_ulp" not in text
    assert paths["html"].read_text().count("</table>") == 2


def test_the_accuracy_table_says_which_lines_are_out_of_range(tmp_path):
    paths = {suffix: tmp_path / f"accuracy.{suffix}" for suffix in ("csv", "md", "html")}
    records = [
        record(),
        record(precision="3xfp16", lines_out_of_range=0, largest_spread=2.0),
        record(precision="fp16", lines_out_of_range=12, largest_spread=2.0**40),
    ]
    write_accuracy(records, [], csv_path=paths["csv"], markdown=paths["md"], html=paths["html"])
    rows = list(csv.DictReader(paths["csv"].read_text().splitlines()))
    assert [row["lines_out_of_range"] for row in rows] == ["", "0", "12"]
    text = paths["md"].read_text()
    assert "lines out of range | largest spread" in text
    assert "| – | – |" in text
    assert "| 0 | 2.00e+00 |" in text
    assert "| 12 | 1.10e+12 |" in text
    assert "2^17 at 3xfp16, 2^28 at fp16" in text


def test_records_are_not_changed(tables):
    assert RECORDS[0].row()["speedup"] is None


def test_every_shard_has_a_row(tmp_path):
    shards = [record(shard=f"{number}-of-2", time=10.0 * number) for number in (1, 2)]
    shards.append(record(precision="bf16", shard="1-of-2", verified=False, reason="too far"))
    write_shards(shards, csv_path=tmp_path / "s.csv", markdown=tmp_path / "s.md")
    with (tmp_path / "s.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["shard"], row["time_us_p50"], row["speedup"]) for row in rows] == [
        ("1-of-2", "10.0", ""),
        ("2-of-2", "20.0", ""),
        ("1-of-2", "", ""),
    ]
    assert "| 2-of-2 | w | argand | fp32 | 20.0 |" in (tmp_path / "s.md").read_text()

"""Measures of one kind: where they are declared, and what a whole has of its parts."""

from __future__ import annotations

import pytest

from workflow.accuracy.assessment import Accuracy, worst_of
from workflow.accuracy.measures import every_measure, measured, of_one_result
from workflow.records import Record
from workflow.tables.readable import ACCURACY


def accuracy_with(**values: float | None) -> Accuracy:
    return Accuracy(
        measures=measured(**values), verdict="verified", verified=True, reason="",
        reference="full", reference_rows=1,
    )  # fmt: skip


def test_a_whole_has_the_worst_of_its_parts_and_nothing_that_one_lacks() -> None:
    parts = {
        "a": accuracy_with(fidelity=0.5, norm_drift=1e-7, snr_error_db=1.0),
        "b": accuracy_with(fidelity=0.75, norm_drift=2e-7, snr_error_db=None),
    }
    assert worst_of(parts).measures == {"fidelity": 0.5, "norm_drift": 2e-7}


def test_a_measure_that_no_kind_declares_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must be one of \[.*'fidelity'.*\], got 'beauty'"):
        worst_of({"a": accuracy_with(beauty=1.0)})
    row = Record(
        workload="w", kind="gemm", implementation="argand", precision="fp32", algorithm="a",
        device="d",
    ).row()  # fmt: skip
    with pytest.raises(ValueError, match="unknown record columns"):
        Record.from_mapping(row | {"beauty": 1.0})


def test_every_measure_has_a_column_of_its_own() -> None:
    columns = Record.columns_in_order()
    assert len(columns) == len(set(columns))
    headings = {column.field: column.heading for column in ACCURACY}
    for name, measure in every_measure().items():
        assert name in columns
        assert headings.get(name) == (None if measure.text else measure.heading({}))
        assert measure.what.endswith(".")
    assert headings["snr_error_db"] == "SNR error (dB)"
    assert headings["evm_db"] == "EVM at the highest SNR (dB)"


def test_a_caption_says_where_a_measure_is_taken() -> None:
    values = measured(evm_db=-20.4, bit_error_rate=1e-3, snr_db=27.5, bit_errors="27.5:1/1000")
    shown = of_one_result(values)
    assert [one.heading(values) for one in shown] == [
        "EVM at 27.5 dB (dB)", "bit error rate at 27.5 dB"
    ]  # fmt: skip
    of_earlier_runs = measured(evm_db=-20.4)
    assert [one.heading(of_earlier_runs) for one in of_one_result(of_earlier_runs)] == [
        "EVM at the highest SNR (dB)"
    ]
    assert [one.column for one in of_one_result({"fidelity": 1.0})] == ["fidelity"]


def test_columns_of_records_are_those_that_they_were() -> None:
    """A kind may add some; files of earlier runs have these."""
    assert set(Record.columns_in_order()) >= {
        "max_ulp", "row_sum_error", "norm_drift", "fidelity", "backward_error", "expected_error",
        "coherence_error", "snr_error_db", "dynamic_range_db", "peak_shift", "stopband_leakage_db",
        "gain_ripple_db", "max_row_error", "lines_out_of_range",
    }  # fmt: skip
    assert "measures" not in Record.columns_in_order()

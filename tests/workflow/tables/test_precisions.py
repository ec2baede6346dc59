"""The table of what each precision gives, and times that did not settle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from test_tables import record

from workflow.measuring.surroundings import BUSY
from workflow.records import Record
from workflow.tables.precisions import (
    MODELS_TEXT,
    precisions_columns,
    precisions_rows,
    precisions_text,
)
from workflow.tables.readable import markdown_table
from workflow.tables.unsettled import unsettled_banner


def rows(
    *records: Any, tolerance: float | None = None, **delivered: str
) -> dict[str, dict[str, Any]]:
    tolerances = {} if tolerance is None else {"w": tolerance}
    return {row["what"]: row for row in precisions_rows(records, delivered, tolerances)}


def test_errors_measures_and_gains_stand_beside_each_other() -> None:
    fp64 = record(
        precision="fp64", time=300.0, rel_frobenius=0.0, backend="cuda", energy_j=None
    )  # fmt: skip
    tf32 = record(
        precision="tf32", time=100.0, rel_frobenius=2e-4, backend="cuda",
        measures={"dynamic_range_db": 77.76},
    )  # fmt: skip
    peer = record("numpy", "fp32", 10.0)
    found = rows(tf32, fp64, peer, tolerance=0.01, w="tf32")
    assert list(found) == ["error (tolerance 1.00e-02)", "dynamic range (dB)",
                           "times as fast as fp64", "energy of a call (J)"]  # fmt: skip
    shown = [(row.get("fp64"), row.get("tf32")) for row in found.values()]
    assert shown == [("0", "2.00e-04"), ("", "77.8"), ("1.00", "3.00"), ("", "3.00")]
    assert {row["product"] for row in found.values()} == {"tf32"}
    columns = precisions_columns([tf32, fp64, peer])
    assert [column.heading for column in columns] == [
        "workload", "product", "what", "fp64", "tf32"
    ]  # fmt: skip
    assert "| w | tf32 | dynamic range (dB) | – | 77.8 |" in markdown_table(
        columns, list(found.values())
    )


def test_times_of_models_say_nothing() -> None:
    exact = record(precision="fp64", time=300.0, backend="cpu")
    fp32 = record(precision="fp32", time=100.0, backend="cpu")
    model = record(precision="bf16", time=10.0, backend="cpu")
    gains = rows(exact, fp32, model)["times as fast as fp64"]
    assert (gains["fp32"], gains["bf16"]) == ("3.00", "")
    assert precisions_text([exact, model]).endswith(MODELS_TEXT)
    assert not precisions_text([exact, fp32]).endswith(MODELS_TEXT)


def test_gains_of_chunks_are_said_to_be_of_one_time() -> None:
    exact = record(precision="fp64", time=300.0, chunks=3)
    fp32 = record(precision="fp32", time=100.0, chunks=2)
    assert rows(exact, fp32)["times as fast as fp64 (chunks timed once)"]["fp32"] == "3.00"


def test_times_that_are_too_uneven_say_nothing() -> None:
    exact = replace(record(precision="fp64", time=100.0), time_us_low=90.0, time_us_high=150.0)
    fp32 = record(precision="fp32", time=105.0)
    uneven = replace(fp32, time_us_low=60.0, time_us_high=120.0)
    slower = replace(fp32, time_us_low=160.0, time_us_high=170.0)
    tf32 = replace(uneven, precision="tf32")
    assert "times as fast as fp64" not in rows(exact, uneven, tf32)
    gains = rows(exact, slower, tf32)["times as fast as fp64"]
    assert gains == gains | {"fp64": "1.00", "fp32": "0.952", "tf32": ""}


def test_what_did_not_verify_has_its_verdict_and_no_gain() -> None:
    exact = record(precision="fp64", time=300.0, verdict="verified")
    wide = record(precision="bf16", time=10.0, verified=False, verdict="unproven", reason="bound 3")
    found = rows(exact, wide, record(precision="fp32", time=100.0, verdict="verified"), w="fp64")
    assert (found["verdict"]["fp64"], found["verdict"]["bf16"]) == ("verified", "unproven")
    gains = found["times as fast as fp64"]
    assert (gains["fp32"], gains["bf16"]) == ("3.00", "")


def test_without_fp64_nothing_is_compared_with_it() -> None:
    found = rows(record(precision="tf32", backend="cuda"), record(precision="bf16", backend="cuda"))
    assert list(found) == ["error", "energy of a call (J)"]


def test_a_workload_without_results_has_a_verdict_alone() -> None:
    failed = record(time=None, verified=False, verdict="failed", reason="NaN", rel_frobenius=None)
    found = rows(failed)
    assert list(found) == ["verdict"]
    assert found["verdict"]["product"] == ""


def row(**values: Any) -> Record:
    return Record(
        workload="w", kind="gemm", implementation="argand", precision="fp32", algorithm="x",
        device="d", **{"time_us_p50": 1.0, "settled": True, **values},
    )  # fmt: skip


def test_nothing_is_said_of_settled_times() -> None:
    assert unsettled_banner([]) == ""
    # Nor of rows without a time, nor of those that were streamed or recorded before.
    assert unsettled_banner([row(), row(settled=None), row(time_us_p50=None, settled=None)]) == ""


def test_the_reason_is_what_was_seen() -> None:
    found = unsettled_banner(
        [row(load=1.9), row(settled=False, load=1.26), row(settled=False), row(settled=None)]
    )
    assert found == (
        "Times of 2 of 3 rows are unsettled: the interval of their median is wider than 10% of it. "
        "While they were measured, other programs kept up to 1.3 cores busy."
    )
    held = unsettled_banner(
        [row(settled=False, throttling="power cap; thermal, by software"),
         row(settled=False, load=BUSY, throttling="power cap")]
    )  # fmt: skip
    assert held.endswith(
        "other programs kept up to 0.2 cores busy and the clock was held down (power cap, thermal, "
        "by software)."
    )
    unknown = unsettled_banner([row(settled=False, load=0.1)])
    assert "neither load of other programs nor a lowered clock was seen" in unknown

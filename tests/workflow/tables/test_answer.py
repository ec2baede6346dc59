"""The answer of a study: which row, which peer, which words."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_tables import record

from workflow.figures.answer import answer_figure, draw_answer
from workflow.storage.run_folder import claim_folder
from workflow.tables.answer import ANSWER, Answer, answer_rows, answers
from workflow.tables.answer_page import Shown, write_answer
from workflow.tables.readable import markdown_table

SETTLED = {"time_us_low": 99.0, "time_us_high": 101.0}
PEER = {"time_us_low": 198.0, "time_us_high": 202.0}


WIDE = (
    {"time_us_low": 50.0, "time_us_high": 140.0}, {"time_us_low": 450.0, "time_us_high": 700.0},
)  # fmt: skip
"""Intervals of two times that are far apart all the same."""


def answer(*records: Any, precision: str | None = "fp32", failure: str = "") -> Answer:
    delivered = {} if precision is None else {"w": precision}
    (found,) = answers(list(records), delivered, {"w": failure} if failure else {})
    return found


def test_the_delivered_precision_against_the_best_peer() -> None:
    found = answer(
        record("argand", "fp64", 300.0),
        record("argand", "fp32", 100.0, ratio=8.0, **SETTLED),
        record("numpy", "fp32", 400.0),
        record("cublas", "fp32", 200.0, **PEER),
    )
    assert (found.precision, found.peer, found.speedup) == ("fp32", "cublas fp32", 2.0)
    assert (found.speedup_low, found.speedup_high) == (198 / 101, 202 / 99)
    assert found.verdict == (
        "verified, error 8.00 times below its bound; 2.00 times as fast as cublas at fp32"
    )


def test_an_error_of_one_rounding_is_at_its_bound() -> None:
    found = answer(record("argand", "fp32", 100.0, ratio=1.0003, **SETTLED))
    assert found.verdict.startswith("verified, error at its bound")


@pytest.mark.parametrize(
    ("ours", "peer", "words"),
    [
        ({"time": 100.0}, {"time": 102.0}, "as fast as numpy at fp32"),
        ({"time": 100.0}, {"time": 50.0}, "2.00 times slower than numpy at fp32"),
        (
            {"time": 100.0, "time_us_low": 60.0, "time_us_high": 140.0},
            {"time": 120.0, "time_us_low": 110.0, "time_us_high": 130.0},
            "times too uneven to compare with numpy at fp32",
        ),
        (
            {"time": 100.0, **WIDE[0]},
            {"time": 500.0, **WIDE[1]},
            "at least 3.21 times as fast as numpy at fp32",
        ),
        (
            {"time": 500.0, **WIDE[1]},
            {"time": 100.0, **WIDE[0]},
            "at least 3.21 times slower than numpy at fp32",
        ),
        (
            {"time": 100.0, "time_us_low": 90.0, "time_us_high": 100.0},
            {"time": 105.0, "time_us_low": 98.0, "time_us_high": 108.0},
            "as fast as numpy at fp32",
        ),
    ],
)
def test_words_for_speed(ours: dict[str, Any], peer: dict[str, Any], words: str) -> None:
    found = answer(record("argand", "fp32", **ours), record("numpy", "fp32", **peer))
    assert found.verdict.endswith(words)


def test_times_that_say_nothing_are_compared_with_no_peer() -> None:
    peer = record("numpy", "fp32", 50.0)
    model = answer(record("argand", "fp16", 100.0, backend="cpu"), peer, precision="fp16")
    assert (model.speedup, model.peer, model.time_us) == (None, "", 100.0)
    assert model.verdict.endswith("; a model of a GPU's precision, whose time says nothing of it")
    lost = {"verified": False, "verdict": "unproven", "reason": "bound 3"}
    unproven = answer(record("argand", "fp32", 10.0, **lost), peer)
    assert (unproven.speedup, unproven.peer, unproven.time_us) == (None, "", None)
    assert unproven.verdict == "unproven: bound 3; not compared: only verified results are"


def test_times_of_chunks_are_said_to_be_taken_once() -> None:
    streamed, peer = record("argand", "fp32", 100.0, chunks=17), record("numpy", "fp32", 50.0)
    words = "2.00 times slower than numpy at fp32"
    assert answer(streamed, peer).verdict.endswith(f"; {words}, each chunk timed once")
    assert answer(replace(streamed, chunks=None), peer).verdict.endswith(f"; {words}")
    assert "once" not in answer(streamed).verdict


def test_a_speedup_that_the_times_do_not_tell_is_not_in_the_table() -> None:
    uneven = {"time_us_low": 60.0, "time_us_high": 140.0}
    found = answer(
        record("argand", "fp32", 100.0, **uneven), record("numpy", "fp32", 300.0, **uneven)
    )
    assert found.is_uneven
    assert answer_rows([found])[0]["speedup"] is None
    (line,) = [x for x in answer_figure([found]).axes[0].lines if x.get_marker() == "o"]
    assert line.get_markerfacecolor() == "white"
    told = answer(
        record("argand", "fp32", 100.0, **SETTLED), record("numpy", "fp32", 200.0, **PEER)
    )
    assert not told.is_uneven
    assert answer_rows([told])[0]["speedup"] == 2.0


@pytest.mark.parametrize(
    ("time", "shown"),
    [
        (0.4, "400 ns"), (1.0, "1.00 µs"), (999.6, "1.00 ms"), (54200.0, "54.2 ms"),
        (1.87e6, "1.87 s"),
    ],
)  # fmt: skip
def test_times_and_measures_have_units(time: float, shown: str) -> None:
    measures = {"dynamic_range_db": 77.76, "peak_shift": 0.0, "row_sum_error": 1e-7}
    found = answer(record("argand", "fp32", time, measures=measures))
    assert found.measures == ("dynamic range 77.8 dB, peaks moved 0 cells, row sum error 1.00e-07")
    assert f"| {shown} |" in markdown_table(ANSWER, answer_rows([found]))


@pytest.mark.parametrize(
    ("error", "shown"), [(1e-6, "error -120 dB"), (0.0, ""), (None, ""), (float("nan"), "")]
)
def test_without_measures_of_its_kind_the_error_is_in_decibels(
    error: float | None, shown: str
) -> None:
    assert answer(record("argand", "fp32", rel_frobenius=error)).measures == shown


def test_without_a_peer_or_an_error() -> None:
    found = answer(record("argand", "fp32", rel_frobenius=0.0))
    assert found.verdict == "verified, equal to fp64; no peer to compare with"
    assert answer_rows([found])[0]["interval"] is None


def test_an_unproven_answer_says_so() -> None:
    found = answer(record("argand", "fp32", verified=False, verdict="unproven", reason="bound 3"))
    assert found.verdict.startswith("unproven: bound 3; ")
    assert not found.verified


def test_a_workload_without_a_product_says_why() -> None:
    found = answer(record(), precision=None, failure="no precision is within 1e-12")
    assert found.verdict == "no product: no precision is within 1e-12"
    table = markdown_table(ANSWER, answer_rows([found]))
    assert "no precision is within 1e-12" in table


def test_the_figure_has_a_line_for_each_answer(tmp_path: Path) -> None:
    some = [
        Answer("one", "gemm", "fp32", 1.0, 2.0, 1.9, 2.1),
        Answer("two", "dft", "3xfp16", 1.0, 0.5),
        Answer("three", "dft", verdict="no product: nothing was computed"),
    ]
    path = tmp_path / "answer.svg"
    draw_answer(path, some)
    first = path.read_bytes()
    draw_answer(path, some)
    assert path.read_bytes() == first
    draw_answer(path, [])


def test_the_page_begins_with_the_answers_and_needs_no_other_file(tmp_path: Path) -> None:
    records = [record("argand", "fp32", 100.0), record("numpy", "fp32", 300.0)]
    found = answers(records, {"w": "fp32"}, {"<lost>": "no <precision> within 1e-12"})
    figure = tmp_path / "figure.svg"
    draw_answer(figure, found)
    page, markdown = tmp_path / "answer.html", tmp_path / "answer.md"
    first = Shown("Speed", "what one sees", figure)
    others = [Shown("A & B", "<product>", figure)]
    write_answer(found, records, first, others, page=page, markdown=markdown)
    assert f"<h1>Study {tmp_path.name}: answers</h1>" in page.read_text()
    claim_folder(Path("studies/Nächte v1.2.yaml"), tmp_path)
    write_answer(found, records, first, others, page=page, markdown=markdown)
    text = page.read_text()
    assert "<h1>Study Nächte v1.2: answers</h1>" in text, "wherever its results are"
    parts = (
        '<table class="cards">', "3.00 times as fast as numpy", "what one sees", "Every precision",
        "All rows",
    )  # fmt: skip
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert "<table>" in text[places[-1] :]
    assert text.count("data:image/svg+xml;base64,") == 2
    assert not re.findall(r'(?:src|href)="(?!data:)', text)
    assert "<lost>" not in text
    assert "<product>" not in text
    assert "A &amp; B" in text
    assert "no &lt;precision&gt; within <span>1e-12</span>" in text, "in one line"
    assert "1 of 2 answers and 2 of 2 results verified, on d.\n" in markdown.read_text()
    missing = [{"workload": "w", "step": "write_uvh5", "reason": "no room"}]
    write_answer(found, records, first, [], page=page, markdown=markdown, failed=missing)
    for made in (page.read_text(), markdown.read_text()):
        assert "verified, on d. 1 step failed or did not run: see Failed." in made


def test_the_answer_stands_before_what_is_said_of_its_times(tmp_path: Path) -> None:
    loud = [record("argand", "fp32", 100.0, settled=False)]
    found = answers(loud, {"w": "fp32"}, {})
    figure = tmp_path / "figure.svg"
    draw_answer(figure, found)
    page, markdown = tmp_path / "answer.html", tmp_path / "answer.md"
    write_answer(found, loud, Shown("Speed", "", figure), [], page=page, markdown=markdown)
    for text in (page.read_text(), markdown.read_text()):
        assert text.index("no peer to compare with") < text.index("unsettled: the interval")
    assert "<figure>" not in page.read_text()  # of a speed over peers, where there are none

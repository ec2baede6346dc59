"""Text of a study on its way into the report: it is shown as text, and runs nowhere."""

from __future__ import annotations

import base64
import re
import urllib.parse
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import h5py
import numpy as np
import pytest
import yaml
from shared_runs import finish_with_report, measured_as

from workflow.figures.style import new_axes, save
from workflow.preflight.loading import load_study
from workflow.records import Record
from workflow.study import workload_from_json
from workflow.tables.readable import ACCURACY, PERFORMANCE, html_page, markdown_table

EVIL = "x</script></style></td><script>alert(1)</script><img src=x onerror=alert(2)>&'\"`{{1+1}}"
FILE = "x&'\"`.h5"
"""Snakemake refuses <name> and {name} in names of files."""


class Tags(HTMLParser):
    """The elements of a page with their attributes, and the text of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.scripts[-1] += data

    def shape(self) -> list[tuple[str, list[str]]]:
        return [(tag, sorted(attributes)) for tag, attributes in self.found]


def study_of(file: Path, dataset: str) -> dict[str, Any]:
    case = {"kind": "gemm", "input": {"file": str(file), "a": dataset, "b": dataset}}
    return {"device": "cpu", "precisions": ["fp32"], "baselines": "none", "workloads": {"w": case}}


def reported(folder: Path, root: Path, measured: Path, file: str, dataset: str) -> str:
    """The report of a study of that file and dataset, made by Snakemake."""
    folder.mkdir()
    with h5py.File(folder / file, "w") as opened:
        opened[dataset] = np.ones((2, 2), np.complex64)
    (folder / "study.yaml").write_text(yaml.safe_dump(study_of(folder / file, dataset)))
    measured_as(folder, measured)
    finish_with_report(root, folder)
    return (folder / "results" / "report.html").read_text()


def embedded(page: str) -> list[str]:
    """The tables and figures within a report, which are data URIs."""
    found = re.findall(r'data:[\w/+-]+;[^"\s]*?base64,([A-Za-z0-9+/=%]+)', page)
    decoded = [base64.b64decode(urllib.parse.unquote(text)) for text in found]
    return [content.decode("utf-8", "replace") for content in decoded]


@pytest.mark.exhaustive
def test_a_report_shows_names_of_datasets_and_runs_none(
    tmp_path: Path, root: Path, tiny_run: Path
) -> None:
    evil = reported(tmp_path / "evil", root, tiny_run, FILE, EVIL)
    parts = embedded(evil)
    assert len(parts) > 4
    tame = reported(tmp_path / "tame", root, tiny_run, "in.h5", "x")
    assert Tags(evil).shape() == Tags(tame).shape()
    assert len(parts) == len(embedded(tame))
    for page in (evil, *parts):
        assert "alert(1)</script>" not in page
        assert "<img src=x" not in page
    assert "u003cscript" in evil


def test_a_case_has_no_markup_and_means_the_same() -> None:
    study = load_study(study_of(Path(f"/{EVIL}"), EVIL))
    line = study.case_json("w")
    assert not set("<>&'`") & set(line)
    read = workload_from_json(line).case
    assert (read.input.a, str(read.input.file)) == (EVIL, f"/{EVIL}")


@pytest.mark.parametrize("columns", [PERFORMANCE, ACCURACY])
def test_tables_escape_every_text(columns: Any) -> None:
    def rows(text: str) -> list[dict[str, Any]]:
        record = Record(
            workload=text, kind="gemm", implementation=text, precision=text, algorithm=text,
            device=text, reason=text, reference=text,
        )  # fmt: skip
        return [record.row()]

    tame, evil = (html_page(x, [(x, x, columns, rows(x))]) for x in ("tame", EVIL))
    assert Tags(evil).shape() == Tags(tame).shape()
    markdown = markdown_table(columns, rows(EVIL + "\n[click](javascript:alert(3))"))
    assert "<" not in re.sub(r"\\<", "", markdown)
    assert "](" not in markdown
    assert len(markdown.splitlines()) == 3


def test_figures_escape_every_text(tmp_path: Path) -> None:
    def drawn() -> Any:
        figure, axes = new_axes(12, 8)
        axes.set_title(EVIL + " --> <!-- ]]>")
        axes.plot([0, 1], [0, 1], label=EVIL)
        axes.legend()
        return figure

    save(tmp_path / "x.svg", drawn)
    elements = ElementTree.parse(tmp_path / "x.svg").iter()
    tags = {str(element.tag).rpartition("}")[2] for element in elements}
    assert "script" not in tags
    assert "img" not in tags
    assert "<script" not in (tmp_path / "x.svg").read_text()

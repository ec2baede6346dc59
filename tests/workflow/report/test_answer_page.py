"""The page that begins with the answer, on the screen of a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from workflow.tables.answer import ANSWER, Answer, answer_rows
from workflow.tables.readable import PERFORMANCE, html_page

PHONE = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
FOUND = [
    Answer(
        "station-beams",
        "beamforming",
        "fp32",
        4e5,
        verdict="as fast as numpy at fp32",
        measures="norm drift 1.71e-07, 1 − fidelity 4.57e-14",
    ),
    Answer("a-workload-of-a-rather-long-name", "softmax", verdict=f"no product: {9 * 'NaN in x '}"),
]
EVERYTHING = {column.field: 1.0 if column.numeric else "text" for column in PERFORMANCE}

LINES = """
const words = document.createRange();
words.selectNodeContents(arguments[0].firstChild);
return words.getClientRects().length;
"""
"""Lines of the words before a cell's first number, which is an element of its own."""


@pytest.fixture
def phone(browser: Any) -> Iterator[Any]:
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    yield browser
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_each_answer_is_whole_and_can_be_searched(phone: Any, tmp_path: Path) -> None:
    """A card has a line for each cell with its heading; all rows, which are wider, are scrolled."""
    sections = [("", "", ANSWER, answer_rows(FOUND)), ("", "", PERFORMANCE, [EVERYTHING])]
    path = tmp_path / "answer.html"
    path.write_text(html_page("Answers", sections))
    phone.get(path.as_uri())
    cards = phone.find_elements("css selector", ".cards tbody tr")
    assert len(cards) == len(FOUND)
    headings = []
    for cell in cards[0].find_elements("css selector", "th, td"):
        assert cell.is_displayed()
        assert cell.rect["x"] + cell.rect["width"] <= PHONE["width"]
        style = "return getComputedStyle(arguments[0], '::before').content"
        headings.append(phone.execute_script(style, cell).strip('"'))
    assert cards[0].find_element("css selector", "th").get_attribute("scope") == "row"
    assert headings == ["workload", "precision", "in words", "in its field", "time", "kind"]
    (measures,) = cards[0].find_elements("xpath", "td[contains(., 'norm drift')]")
    assert phone.execute_script(LINES, measures) == 1, "a number stands in the line of its words"
    phone.find_element("css selector", "input").send_keys("numpy")
    assert [card.is_displayed() for card in cards] == [True, False]

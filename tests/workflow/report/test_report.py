"""The report of a finished run, opened in headless Chromium without a network."""

import base64
import json
import re
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from shared_runs import finish_with_report, made_once, session_folder

from tests.covers import EXHAUSTIVE
from tests.workflow.report.report_page import WAIT_S, By, ReportPage, WebDriverWait, table_texts
from workflow.records import Record
from workflow.tables.study import write_performance


@pytest.fixture(scope="session")
def finished(root, tmp_path_factory, tiny_run):
    """The folder of a finished run with its report; of every kind of workload where all is run."""

    def make(folder):
        study = (root / "config" / "test.yaml").read_text()
        (folder / "study.yaml").write_text(f"{study}\ngrade: true\n")
        finish_with_report(root, folder)

    if not EXHAUSTIVE:
        return tiny_run
    return made_once(session_folder(tmp_path_factory) / "run-of-every-kind", make)


def test_a_tolerance_stands_where_it_chose_the_precision(tiny_run):
    text = (tiny_run / "results" / "answer.md").read_text().partition("## Every precision")[2]
    shown = re.findall(r"^\| (\w+) \| \w+ \| (error.*?) \|", text, re.MULTILINE)
    assert shown == [("product", "error (tolerance 1.00e-05)"), ("spectrum", "error")]


@pytest.fixture
def page(finished, browser):
    return ReportPage(browser, finished / "results" / "report.html")


def recorded(finished):
    """(workload, implementation, precision) of every record of the run."""
    files = sorted((finished / "results" / "records").glob("*.jsonl"))
    # The last line of each has the number of the others and their SHA-256.
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()[:-1]]
    return {(row["workload"], row["implementation"], row["precision"]) for row in rows}


def workloads(finished):
    return sorted(path.stem for path in (finished / "results" / "products").glob("*.h5"))


def assert_quiet(browser):
    """No console errors, and nothing was asked of a network."""
    severe = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert severe == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    assert asked, "the log of requests is empty, so it proves nothing"
    local = ("file:", "data:", "blob:", "chrome:")
    assert [url[:80] for url in asked if not url.startswith(local)] == []


@pytest.mark.slow
def test_performance_table_shows_every_record(finished, page, browser):
    page.follow("Tables")
    assert "fastest verified peer of the same precision class" in page.caption("performance")
    page.view("performance")
    (rows,) = page.table_rows()
    keys = ("workload", "implementation", "precision")
    assert {tuple(row[key] for key in keys) for row in rows} == recorded(finished)
    for row in rows:
        if row["verified"] == "yes":
            assert float(row["time (µs)"]) > 0, row
        else:
            assert (row["time (µs)"], row["reason"] != "–") == ("–", True), row
    assert_quiet(browser)


@pytest.mark.slow
def test_accuracy_table_shows_errors_and_grades(finished, page, browser):
    page.follow("Tables")
    page.view("accuracy")
    errors, grades = page.table_rows()
    assert {row["workload"] for row in errors} == {
        workload for workload, _, _ in recorded(finished)
    }
    assert {"fp64", "fp32", "3xtf32"} <= {row["precision"] for row in grades}
    assert {row["part"] for row in grades} == {"re", "im"}
    assert all(re.fullmatch("[ACF]", row["grade"]) for row in grades)
    assert_quiet(browser)


OF_THE_STUDY = {
    "Accuracy": {
        "growth of the error with k": "growth.svg",
        "errors and their bounds": "accuracy.svg",
    },
    "Answer": {"times as fast as the best peer": "answer.svg"},
    "Limits": {"fraction of the limit": "limits.svg"},
}
CAPTIONS = {
    "Error against throughput": "Error against throughput for {}",
    "Products": "Modulus of each element of the first product",
}


@pytest.mark.slow
def test_every_figure_is_in_its_category(finished):
    """The page is searched for them; a browser shows some below."""
    text = (finished / "results" / "report.html").read_text()
    categories, results = (
        json.loads(re.search(rf"var {name} = (\{{.*\}})", text)[1])
        for name in ("categories", "results")
    )
    of_each = {name: f"{name}.svg" for name in workloads(finished)}
    for category, figures in (OF_THE_STUDY | dict.fromkeys(CAPTIONS, of_each)).items():
        inside = [results[path] for paths in categories[category].values() for path in paths]
        assert {label: one["name"] for one in inside for label in one["labels"].values()} == figures
        for one in inside:
            content = base64.b64decode(unquote(one["data_uri"].partition("base64,")[2]))
            svg = ElementTree.fromstring(content)
            assert float(svg.attrib["width"].removesuffix("pt")) > 100
            if one["name"] == "product.svg" and category in CAPTIONS:
                said = re.sub("<.*?>", "", one["caption"])
                assert CAPTIONS[category].format("product") in said


@pytest.mark.slow
def test_figures_of_a_workload_and_the_study_and_run_times_are_shown(finished, page, browser):
    product = next(name for name in workloads(finished) if name.startswith("product"))
    for category in CAPTIONS if EXHAUSTIVE else ("Products",):
        page.follow(category)
        assert sorted(page.rows()) == workloads(finished)
        for workload in workloads(finished) if EXHAUSTIVE else [product]:
            page.view(workload)
            assert page.figure_width(f"{workload}.svg") > 100
        assert CAPTIONS[category].format(product) in page.caption(product)
    for category in OF_THE_STUDY if EXHAUSTIVE else ("Accuracy",):
        page.follow(category)
        for label, name in OF_THE_STUDY[category].items():
            page.view(label)
            assert page.figure_width(name) > 100
    page.follow("Statistics")
    run_times = WebDriverWait(browser, WAIT_S).until(
        lambda _: browser.find_elements(By.CSS_SELECTOR, "canvas, svg.marks"), "no run times"
    )
    assert all(drawn.size["width"] > 50 for drawn in run_times)
    assert_quiet(browser)


@pytest.fixture
def table(tmp_path, browser):
    """A performance table of three rows, opened by itself."""
    times = {"fp64": 1200.0, "fp32": 90.0, "bf16": None}
    records = [
        Record(
            workload="w", kind="gemm", implementation="argand", precision=name, algorithm="x",
            device="d", time_us_p50=time, rel_frobenius=1e-5, bound=1e-3,
            verified=time is not None, reason="" if time else "a reason",
        )
        for name, time in times.items()
    ]  # fmt: skip
    path = tmp_path / "performance.html"
    write_performance(
        records, csv_path=tmp_path / "p.csv", markdown=tmp_path / "p.md",
        hdf5=tmp_path / "p.h5", html=path,
    )  # fmt: skip
    browser.get(path.as_uri())
    return browser.find_element(By.TAG_NAME, "table")


def precisions(table):
    return [row["precision"] for row in table_texts(table)]


@pytest.mark.slow
def test_a_click_sorts_by_number_and_keeps_what_has_none_last(table, browser):
    button = table.find_element(By.XPATH, ".//button[starts-with(., 'time')]")
    button.click()
    assert precisions(table) == ["fp32", "fp64", "bf16"]
    button.click()
    assert [row["precision"] for row in table_texts(table)] == ["fp64", "fp32", "bf16"]
    assert_quiet(browser)


@pytest.mark.slow
def test_search_leaves_the_rows_with_all_words(table, browser):
    search = browser.find_element(By.TAG_NAME, "input")
    search.send_keys("reason BF16")
    assert precisions(table) == ["bf16"]
    assert browser.find_element(By.ID, "count").text == "1 of 3 rows"
    search.clear()
    search.send_keys("nothing like it")
    assert precisions(table) == []


@pytest.mark.slow
def test_the_page_fits_a_phone(table, browser):
    assert table.size["width"] > 390
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 390, "height": 800, "deviceScaleFactor": 2, "mobile": True},
    )
    width = browser.execute_script("return document.scrollingElement.scrollWidth")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert width <= 390

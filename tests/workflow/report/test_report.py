"""The report of a finished run, opened in headless Chromium without a network."""

import json
import re
import shutil
from pathlib import Path

import pytest
from shared_runs import finish_with_report, made_once, session_folder

from tests.covers import EXHAUSTIVE
from workflow.records import Record
from workflow.tables.study import write_performance

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
By = pytest.importorskip("selenium.webdriver.common.by").By
WebDriverWait = pytest.importorskip("selenium.webdriver.support.wait").WebDriverWait

CHROMIUM = Path("/usr/bin/chromium")
CHROMEDRIVER = Path("/usr/bin/chromedriver")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1400,1000",
)  # fmt: skip
WAIT_S = 20


@pytest.fixture(scope="session")
def finished(root, tmp_path_factory, tiny_run):
    """The folder of a finished run with its report; of every kind of workload where all is run."""

    def make(folder):
        shutil.copy(root / "config" / "test.yaml", folder / "study.yaml")
        finish_with_report(root, folder)

    if not EXHAUSTIVE:
        return tiny_run
    return made_once(session_folder(tmp_path_factory) / "run-of-every-kind", make)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    for program in (CHROMIUM, CHROMEDRIVER):
        if not program.exists():
            pytest.skip(f"{program} is not installed (Debian: chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(CHROMEDRIVER)))
    yield found
    found.quit()


@pytest.fixture
def browser(chromium):
    chromium.get("about:blank")
    for name in ("performance", "browser"):
        chromium.get_log(name)  # drops what its own start page, or the test before, asked for
    return chromium


class ReportPage:
    """Snakemake's report, as a reader clicks through it."""

    def __init__(self, browser, path):
        self.browser = browser
        self.path = path
        self.open()

    def open(self):
        self.browser.get(self.path.as_uri())
        self.follow_exists("Workflow")

    def _links(self, text):
        links = self.browser.find_elements(By.CSS_SELECTOR, "a")
        return [link for link in links if link.text.strip() == text]

    def follow_exists(self, text):
        WebDriverWait(self.browser, WAIT_S).until(lambda _: self._links(text), text)

    def follow(self, *texts):
        """From the start page along links of these texts."""
        self.open()
        for text in texts:
            self.follow_exists(text)
            self._links(text)[-1].click()

    def rows(self):
        """The results of the category that is open, by the text of their row."""

        def found(_):
            rows = self.browser.find_elements(By.CSS_SELECTOR, "tr")
            return {r.text.strip(): r for r in rows if r.find_elements(*self._button("eye"))}

        return WebDriverWait(self.browser, WAIT_S).until(found, "no results listed")

    @staticmethod
    def _button(icon):
        return By.CSS_SELECTOR, f"[iconname={icon}]"

    def view(self, name):
        self.rows()[name].find_element(*self._button("eye")).click()

    def caption(self, name):
        self.rows()[name].find_element(*self._button("information-circle")).click()
        body = self.browser.find_element(By.TAG_NAME, "body")
        WebDriverWait(self.browser, WAIT_S).until(lambda _: "DESCRIPTION" in body.text)
        return body.text

    def figure_width(self, filename):
        """The width in pixels of an image that is shown, once it is decoded."""

        def decoded(_):
            for image in self.browser.find_elements(By.TAG_NAME, "img"):
                if f"filename={filename};" in (image.get_attribute("src") or ""):
                    return image.get_property("naturalWidth")
            return 0

        return WebDriverWait(self.browser, WAIT_S).until(decoded, f"{filename} is not shown")

    def table_rows(self):
        """The texts of the rows of the table that is shown, by heading."""
        frame = WebDriverWait(self.browser, WAIT_S).until(
            lambda _: self.browser.find_element(By.TAG_NAME, "iframe")
        )
        self.browser.switch_to.frame(frame)
        tables = [table_texts(table) for table in self.browser.find_elements(By.TAG_NAME, "table")]
        self.browser.switch_to.default_content()
        return tables


def table_texts(table):
    """A table's cells as dictionaries, of the rows that are not hidden."""
    headings, *rows = table.parent.execute_script(
        "return [...arguments[0].rows].filter(r => !r.hidden)"
        ".map(r => [...r.cells].map(c => c.innerText.trim()))",
        table,
    )
    return [dict(zip(headings, row, strict=True)) for row in rows]


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


@pytest.mark.slow
@pytest.mark.parametrize(
    "category", ["Error against throughput", "Products"], ids=["pareto", "product"]
)
def test_each_workload_has_its_figures(finished, page, browser, category):
    page.follow(category)
    assert sorted(page.rows()) == workloads(finished)
    for workload in workloads(finished):
        page.view(workload)
        assert page.figure_width(f"{workload}.svg") > 100
    assert_quiet(browser)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("category", "label", "filename"),
    [
        ("Accuracy", "growth of the error with k", "growth.svg"),
        ("Accuracy", "errors and their bounds", "accuracy.svg"),
        ("Answer", "times as fast as the best peer", "answer.svg"),
        ("Limits", "fraction of the limit", "limits.svg"),
    ],
)
def test_figures_of_the_whole_study(page, browser, category, label, filename):
    page.follow(category)
    page.view(label)
    assert page.figure_width(filename) > 100
    assert_quiet(browser)


@pytest.mark.slow
def test_captions_say_what_is_shown(finished, page):
    page.follow("Tables")
    assert "fastest verified peer of the same precision class" in page.caption("performance")
    page.follow("Error against throughput")
    name = workloads(finished)[0]
    assert f"Error against throughput for {name}" in page.caption(name)
    page.follow("Products")
    assert "Modulus of each element of the first product" in page.caption("product")


@pytest.mark.slow
def test_run_times_are_shown(page, browser):
    page.follow("Statistics")
    drawn = WebDriverWait(browser, WAIT_S).until(
        lambda _: browser.find_elements(By.CSS_SELECTOR, "canvas, svg.marks"), "no run times"
    )
    assert all(element.size["width"] > 50 for element in drawn)
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
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 390, "height": 800, "deviceScaleFactor": 2, "mobile": True},
    )
    width = browser.execute_script("return document.scrollingElement.scrollWidth")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert width <= 390
    assert table.size["width"] > 390

"""A report in a browser: what a reader clicks and sees."""

import pytest

By = pytest.importorskip("selenium.webdriver.common.by", reason="selenium is not installed").By
WebDriverWait = pytest.importorskip("selenium.webdriver.support.wait").WebDriverWait
TimeoutException = pytest.importorskip("selenium.common.exceptions").TimeoutException

WAIT_S = 60
"""Longest that a browser may take beside other tests and linters on two cores."""


class ReportPage:
    """Snakemake's report, as a reader clicks through it."""

    def __init__(self, browser, path):
        self.browser = browser
        self.path = path

    def open(self):
        """Show the start page; it takes seconds to load, so one that is there is gone back to."""
        if self.browser.current_url.partition("#")[0] == self.path.as_uri():
            self.browser.find_element(By.CSS_SELECTOR, "nav ol li a").click()
        else:
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
        """Show a result. A click while the page draws its rows again is lost, so it is repeated."""

        def shown(_):
            return self.browser.find_elements(By.CSS_SELECTOR, "iframe, img[src*='filename=']")

        def clicked(_):
            self.rows()[name].find_element(*self._button("eye")).click()
            try:
                return WebDriverWait(self.browser, WAIT_S / 4).until(shown)
            except TimeoutException:
                return False

        WebDriverWait(self.browser, WAIT_S).until(clicked, f"{name} is not shown")

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

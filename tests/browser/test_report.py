"""The HTML report in a real browser: nothing goes out, nothing is complained of, and everything can be reached, by
pointer and by keys.
"""

from __future__ import annotations

import re

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from tests.browser.chromium import PHONE, WIDE, Page
from tests.cli.gate.scheduled import samples

pytestmark = pytest.mark.browser
# The element whose background is seen behind another one.
BEHIND = """
let element = arguments[0];
while (getComputedStyle(element).backgroundColor === 'rgba(0, 0, 0, 0)') element = element.parentElement;
element.id ||= 'behind';
return element.id;
"""


def keys(page: Page, *pressed: str) -> None:
    """Press keys, wherever the focus is."""
    ActionChains(page.driver).send_keys(*pressed).perform()


def names(page: Page) -> list[str]:
    """The items in the list, as it is sorted and filtered."""
    return [row.get_attribute("title") or "" for row in page.all("#list .row")]


def shade(page: Page, selector: str, name: str) -> float:
    """The relative luminance of a colour of an element, 0 to 1 (WCAG 2)."""
    text = page.run("return getComputedStyle(arguments[0])[arguments[1]]", page.one(selector), name)
    parts = [int(part) / 255 for part in re.findall(r"\d+", text)[:3]]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_every_item_opens_quietly(report: Page, size: tuple[int, int], dark: bool) -> None:
    """Every item shows its name and fits the window's width; the console stays empty, and no request leaves the
    file.
    """
    for number in range(len(samples())):
        report.open(number, size=size, dark=dark)
        assert report.one("#pane h2").text.strip() != ""
        assert report.run("return document.documentElement.scrollWidth") <= size[0]
        assert report.complaints() == []
        asked = list(report.requests())
        assert asked and all(url.startswith(("file:", "data:")) for url in asked)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("selector", ["#pane .refuted", ".tile.proved", ".row .sub", "#pane .meta", "#pane .message"])
def test_contrast(report: Page, selector: str, dark: bool) -> None:
    """Text has a contrast of 4.5 to 1 at least with what is behind it, in light and in dark."""
    report.open(1, dark=dark)
    behind = report.run(BEHIND, report.one(selector))
    ink, paper = shade(report, selector, "color"), shade(report, f"[id='{behind}']", "backgroundColor")
    assert (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05) >= 4.5


def test_hostile_texts_do_nothing(report: Page) -> None:
    """A name that is markup stays text: no dialog comes, no element is made of it, and it is seen as it is."""
    report.open(5)
    assert report.all("#pane img") == [] and report.all("#pane script") == []
    assert "</script><script>alert(1)</script>" in report.one("#pane").text


def test_failures_come_first(report: Page) -> None:
    """The list begins with what fails, and the overview names each failing item under its code."""
    report.open()
    assert names(report)[-2:] == ["row_sum.py:row_sum", "tuned.jsonl:3"]
    assert "tuned.jsonl:1" in report.one("#pane").text and "LP314" in report.one("#pane").text


def test_search_filter_and_sort(report: Page) -> None:
    """Words search names, messages and codes; buttons and lists filter by verdict and code; another order is one
    choice.
    """
    report.open()
    report.one("#search").send_keys("lp314 JSONL:1")
    assert names(report) == ["tuned.jsonl:1"]
    assert report.one(".count").text == "1 of 6 items"
    report.one("#search").clear()
    report.one("#search").send_keys(" ")
    next(button for button in report.all(".chips button") if "proved" in button.text).click()
    assert names(report) == ["row_sum.py:row_sum", "tuned.jsonl:3"]
    next(button for button in report.all(".chips button") if "proved" in button.text).click()
    Select(report.one("select[aria-label=Code]")).select_by_visible_text("LP301")
    assert names(report) == ["tuned.jsonl:4"]
    Select(report.one("select[aria-label=Code]")).select_by_visible_text("any code")
    Select(report.one("select[aria-label=Sort]")).select_by_visible_text("as given")
    assert names(report)[0] == "row_sum.py:row_sum" and len(names(report)) == 6


def test_keys_alone_are_enough(report: Page) -> None:
    """Search, the list, the next failure and the way back are reached without a pointer."""
    report.open()
    keys(report, "/")
    assert report.driver.switch_to.active_element.get_attribute("id") == "search"
    keys(report, "tuned", Keys.ESCAPE, "j")
    assert report.one("#pane h2").text == "tuned.jsonl:1"
    keys(report, "f")
    assert report.one("#pane h2").text == "tuned.jsonl:2"
    report.run("arguments[0].focus()", report.one("#list"))
    keys(report, Keys.END)
    assert report.one("#pane h2").text == "tuned.jsonl:3"
    assert report.one("#list").get_attribute("aria-activedescendant") == "row-picked"
    keys(report, Keys.ARROW_UP, Keys.ENTER)
    assert report.driver.switch_to.active_element.get_attribute("id") == "pane"
    keys(report, Keys.ESCAPE)
    assert report.texts("#pane h2")[0] == "By file" and "What fails, by code" in report.texts("#pane h2")


def test_a_failed_item_says_what_is_wrong(report: Page) -> None:
    """The finding stands first, with its place, source line and counterexample, and its code is explained on demand."""
    report.open(1)
    text = report.one("#pane .finding").text
    assert "not injective" in text and "row_sum.py:" in text and "def row_sum(" in text
    assert report.one("#pane .source b").text.startswith('A: T.Buffer((16, "m"), "float32")')
    report.one("#pane a.code").click()
    report.wait("dialog[open]")
    assert "LP314" in report.one("dialog h3").text
    assert report.driver.switch_to.active_element.text == "Close"
    keys(report, Keys.ESCAPE)
    assert report.all("dialog[open]") == []


def test_steps_and_obligations(report: Page) -> None:
    """Each step opens to its obligations: verdict, claim, engine, strictness, reason."""
    report.open(0)
    steps = report.all("details.step")
    assert len(steps) == 5 and "transform_layout" in steps[0].text
    steps[0].find_element(By.TAG_NAME, "summary").click()
    report.wait("details.step th")  # they are made when the step opens
    heads = [cell.text for cell in steps[0].find_elements(By.CSS_SELECTOR, "th")]
    assert heads == ["verdict", "claim", "engine", "strictness", "reason"]
    assert "bit for bit" in steps[0].text


def test_the_difference_of_programs(report: Page) -> None:
    """Programs are compared as a whole and step by step, side by side and one above the other, with the words that
    changed marked.
    """
    report.open(0)
    section = report.section("Programs")
    marks = [mark.text for mark in section.find_elements(By.CSS_SELECTOR, ".new mark")]
    assert any("// 4" in text for text in marks)
    assert section.find_elements(By.CSS_SELECTOR, ".diff.beside")
    next(button for button in section.find_elements(By.TAG_NAME, "button") if button.text == "side by side").click()
    assert not section.find_elements(By.CSS_SELECTOR, ".diff.beside")
    assert section.find_elements(By.CSS_SELECTOR, "tr.gone") and section.find_elements(By.CSS_SELECTOR, "tr.new")
    Select(section.find_element(By.TAG_NAME, "select")).select_by_visible_text("4. split")
    assert any("i_0" in row.text for row in section.find_elements(By.CSS_SELECTOR, "tr.new"))
    section.find_element(By.CSS_SELECTOR, "button[aria-label='Step after']").click()
    assert Select(section.find_element(By.TAG_NAME, "select")).first_selected_option.text == "5. reorder"


@pytest.mark.parametrize("item", [0, 2])
def test_side_by_side_is_in_halves(report: Page, item: int) -> None:
    """Both programs have the same room, whether the difference begins with a change or with a fold."""
    report.open(item)
    section = report.section("Programs")
    row = next(
        row
        for row in section.find_elements(By.TAG_NAME, "tr")
        if len(row.find_elements(By.CSS_SELECTOR, "td.text")) == 2
    )
    left, right = (cell.size["width"] for cell in row.find_elements(By.CSS_SELECTOR, "td.text"))
    assert abs(left - right) <= 2


def test_lines_that_stay_are_folded(report: Page) -> None:
    """A long stretch without a change is folded, and opens by its button; the whole program is one button too."""
    report.open(3)
    section = report.section("Programs")
    before = len(section.find_elements(By.TAG_NAME, "tr"))
    next(button for button in section.find_elements(By.TAG_NAME, "button") if button.text == "whole program").click()
    whole = len(section.find_elements(By.TAG_NAME, "tr"))
    assert whole >= before and not section.find_elements(By.CSS_SELECTOR, ".fold")


def test_a_passing_item_has_contracts_and_assumptions(report: Page) -> None:
    """What padding holds and what is assumed are told, with whose it is."""
    report.open(0)
    assert "T.float32(0.0)" in report.section("What padding holds").text
    text = report.section("Assumptions").text
    assert "m + 3 fits int32" in text and "checked at every call" in text and "since step 1 (transform_layout)" in text


def test_the_essentials_without_script(report: Page) -> None:
    """With scripts off the page still says what fails and why."""
    report.driver.get("about:blank")
    report.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        report.driver.get(report.path.as_uri())
        text = report.one("body").text
    finally:
        report.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert "What fails" in text and "not injective" in text and "tuned.jsonl:3" in text


def test_a_print_has_the_failures(report: Page) -> None:
    """On paper there is the part that needs no script, or the item that is open; never the list's window."""
    report.open()
    report.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert report.one("#static").is_displayed() and not report.one("#side").is_displayed()
    report.open(1)
    report.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert not report.one("#static").is_displayed() and report.one("#pane h2").is_displayed()
    report.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_a_phone_shows_one_thing_at_a_time(report: Page) -> None:
    """Where it is narrow the list fills the window; an item takes its place, and a button leads back."""
    report.open(size=PHONE)
    assert report.one("#side").is_displayed() and not report.one("#pane").is_displayed()
    report.all("#list .row")[0].click()
    assert not report.one("#side").is_displayed() and report.one("#pane").is_displayed()
    report.one(".back").click()
    assert report.one("#side").is_displayed()


def test_ten_thousand_items(large: Page) -> None:
    """Of ten thousand items only those in sight are elements; search, the far end and an item in the middle are there
    at once.
    """
    large.open()
    assert "100 of 10,000 items fail" in large.one("h1").text
    assert len(large.all("#list .row")) < 40
    large.run(
        "const list = document.getElementById('list'); list.scrollTop = list.scrollHeight; list.dispatchEvent(new "
        "Event('scroll'))"
    )
    assert names(large)[-1].endswith("tuned.jsonl:9999")
    large.one("#search").send_keys("jsonl:5031")
    assert [name.rpartition(":")[2] for name in names(large)] == ["5031"]
    large.all("#list .row")[0].click()
    assert large.one("#pane h2").text.endswith("5031") and large.all(".layout canvas")
    assert large.complaints() == []
    large.open(9_999)
    assert large.one("#pane h2").text.endswith("tuned.jsonl:10000")

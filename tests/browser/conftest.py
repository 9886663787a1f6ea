"""One browser for all tests here, and the reports that they look at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from selenium import webdriver
from tests.browser.chromium import Page, started
from tests.cli.gate.scheduled import samples
from tests.cli.render.gate.made import summary_of

from layoutproof.cli.gate.outcomes import Outcome
from layoutproof.cli.render.gate.html import render_html

MANY = 10_000


@pytest.fixture(scope="session")
def driver() -> Iterator[webdriver.Chrome]:
    """The browser. Without one there is nothing to test here, and that is said once."""
    try:
        browser = started()
    except FileNotFoundError as problem:
        pytest.exit(str(problem), returncode=2)
    yield browser
    browser.quit()


def written(folder: Path, outcomes: Iterable[Outcome]) -> Path:
    """A report in a file."""
    kept = list(outcomes)
    path = folder / "report with a space.html"
    with path.open("w", encoding="utf-8") as file:
        render_html(kept, summary_of(kept), file)
    return path


@pytest.fixture(scope="session")
def small_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six items, of which five fail or are hostile."""
    return written(tmp_path_factory.mktemp("small"), samples())


@pytest.fixture(scope="session")
def large_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten thousand items, a hundred of which fail."""
    good, bad = samples()[0], samples()[2]
    named = (
        replace(bad if number % 100 == 99 else good, name=f"row_sum.py:row_sum, tuned.jsonl:{number + 1}")
        for number in range(MANY)
    )
    return written(tmp_path_factory.mktemp("large"), named)


@pytest.fixture
def report(driver: webdriver.Chrome, small_report: Path) -> Page:
    """The small report, not yet open."""
    return Page(driver, small_report)


@pytest.fixture
def large(driver: webdriver.Chrome, large_report: Path) -> Page:
    """The large report, not yet open."""
    return Page(driver, large_report)

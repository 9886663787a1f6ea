"""The playground in a browser, with Pyodide from a folder: maps decided, drawn and compared in the page alone."""

from __future__ import annotations

import os
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from docs.playground_files import VERSION, write_playground
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from tests.tree import ROOT

pytestmark = pytest.mark.browser
SECONDS = 240


class Quiet(SimpleHTTPRequestHandler):
    """Files, without a log; modules of JavaScript have their type."""

    def guess_type(self, path: Any) -> str:
        """A file's type; browsers want this one for modules."""
        return "text/javascript" if str(path).endswith(".mjs") else super().guess_type(path)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def pyodide() -> Path:
    """Pyodide's folder: as PYODIDE says, or the npm package, fetched once."""
    named = os.environ.get("PYODIDE")
    if named:
        return Path(named)
    place = ROOT / "build" / f"pyodide-{VERSION}"
    if not place.is_dir():
        place.mkdir(parents=True)
        subprocess.run(["npm", "pack", "--silent", f"pyodide@{VERSION}"], cwd=place, check=True, timeout=300)
        (packed,) = place.glob("*.tgz")
        with tarfile.open(packed) as archive:
            archive.extractall(place, filter="data")
    return place / "package"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The playground's address, offered by a plain server of files."""
    folder = tmp_path_factory.mktemp("playground")
    write_playground(folder, pyodide())
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/index.html"
    server.shutdown()
    server.server_close()
    thread.join()


class Playground:
    """The page in a browser."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def state(self, *words: str) -> str:
        """Wait for one of these states."""

        def reached(driver: webdriver.Chrome) -> bool:
            return driver.find_element(By.TAG_NAME, "body").get_attribute("data-state") in words

        WebDriverWait(self.driver, SECONDS).until(reached)
        return str(self.driver.find_element(By.TAG_NAME, "body").get_attribute("data-state"))

    def ask(self, **values: str) -> str:
        """Fill the form, press the button, and wait for the answer's state."""
        for name in ("map", "shape", "where", "other"):
            self.driver.execute_script(
                "document.getElementById(arguments[0]).value = arguments[1]", name, values.get(name, "")
            )
        self.driver.find_element(By.ID, "ask").click()
        return self.state("proved", "refuted", "needs", "error", "unknown")

    def rows(self) -> dict[str, str]:
        """The answer's rows."""
        lines = self.driver.find_elements(By.CSS_SELECTOR, "#rows tr")
        cells = [[cell.text for cell in line.find_elements(By.CSS_SELECTOR, "th, td")] for line in lines]
        return dict(cells)

    def shapes(self) -> int:
        """How many elements the picture has."""
        return len(self.driver.find_elements(By.CSS_SELECTOR, "#picture svg *"))


@pytest.fixture(scope="module")
def playground(address: str, driver: webdriver.Chrome) -> Playground:
    """The page, with Python loaded."""
    driver.get(address)
    found = Playground(driver)
    assert found.state("ready", "error") == "ready", driver.find_element(By.ID, "status").text
    return found


def test_a_map_is_decided_and_drawn(playground: Playground) -> None:
    """A map is proved, with its padding and its inverse, and its picture has its cells."""
    assert playground.ask(map="NHWC->NCHW4c", shape="1, 2, 3, 6") == "proved"
    rows = playground.rows()
    assert rows["padding where"] == "p1 == 1 and p4 >= 2"
    assert rows["inverse"] == "lambda p0, p1, p2, p3, p4: [0, p2, p3, 4*p1 + p4]"
    assert playground.shapes() > 48
    assert playground.ask(map="lambda i, j: [i, j//2]", shape="4, 6") == "refuted"
    assert "both go to" in playground.rows()["injective"]


def test_maps_are_compared(playground: Playground) -> None:
    """Two layouts are the same, or differ at an index."""
    lambdas = "lambda n, h, w, c: [n, c//4, h, w, c%4]"
    assert playground.ask(map="NHWC->NCHW4c", shape="2, 8, 8, 16", other=lambdas) == "proved"
    assert playground.ask(map="lambda i, j: [i, j]", shape="4, 4", other="lambda i, j: [j, i]") == "refuted"
    assert playground.ask(map="lambda i: [i * 3 % 7]", shape="7", other="lambda i: [i]") == "refuted"


def test_what_needs_a_solver_says_so(playground: Playground) -> None:
    """A question for isl or z3 is not answered, and the page gives the command that answers it."""
    assert playground.ask(map="lambda i, j: [i*i + j]", shape="n, m") == "needs"
    assert "layoutproof map" in playground.driver.find_element(By.ID, "command").text
    assert playground.ask(map="lambda i: [k]", shape="4") == "error"
    assert "is not defined here" in playground.rows()["input"]


def test_nothing_comes_from_elsewhere(playground: Playground, address: str) -> None:
    """The page asks its own server only, and a link has the question in it."""
    here = address.rpartition("/")[0]
    script = "return performance.getEntriesByType('resource').map((each) => each.name)"
    assert all(name.startswith((here, "data:")) for name in playground.driver.execute_script(script))
    playground.ask(map="lambda i: [i//4, i%4]", shape="14")
    assert "map=lambda" in playground.driver.current_url and "shape=14" in playground.driver.current_url

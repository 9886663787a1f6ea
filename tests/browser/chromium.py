"""A headless Chromium with its driver, both of the system: nothing is downloaded."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.command import Command
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

_NAMES = {"CHROMIUM": ("chromium", "chromium-browser", "google-chrome"), "CHROMEDRIVER": ("chromedriver",)}
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-device-scale-factor=1")
WIDE, PHONE = (1400, 900), (390, 844)


def tool(variable: str) -> str:
    """Where a program of the system is: as the variable says, or by one of its names. Raises FileNotFoundError where it
    is nowhere.
    """
    for name in (os.environ.get(variable, ""), *_NAMES[variable]):
        path = shutil.which(name) if name else None
        if path is not None:
            return path
    raise FileNotFoundError(
        f"{' or '.join(_NAMES[variable])} is not installed: apt install chromium chromium-driver, or name it in "
        f"{variable}"
    )


def started() -> webdriver.Chrome:
    """A browser without a window that keeps the console's log and the network's."""
    options = Options()
    options.binary_location = tool("CHROMIUM")
    for flag in _FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(tool("CHROMEDRIVER")))


class Page:
    """A report that is open in the browser."""

    def __init__(self, driver: webdriver.Chrome, path: Path) -> None:
        self.driver = driver
        self.path = path

    def open(self, item: int | None = None, *, size: tuple[int, int] = WIDE, dark: bool = False) -> None:
        """Load the report anew, at its overview or at an item."""
        self.driver.get("about:blank")
        screen = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        scheme = {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)
        self.drain()
        self.driver.get(self.path.as_uri() + ("" if item is None else f"#item={item}"))
        self.wait("body.scripted")

    def drain(self) -> None:
        """Forget what was logged."""
        self._log("browser")
        self._log("performance")

    def _log(self, kind: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.driver.execute(Command.GET_LOG, {"type": kind})["value"]
        return found

    def one(self, selector: str) -> WebElement:
        """The first element that a selector names."""
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        """All elements that a selector names."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        """Their texts."""
        return [element.text for element in self.all(selector)]

    def run(self, script: str, *arguments: Any) -> Any:
        """Run JavaScript in the page."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, selector: str) -> None:
        """Wait until there is such an element."""
        WebDriverWait(self.driver, 20).until(lambda driver: driver.find_elements(By.CSS_SELECTOR, selector))

    def section(self, title: str) -> WebElement:
        """The section of an item under a heading, brought into view."""
        found = next(
            one
            for one in self.all("#pane section")
            if one.find_elements(By.CSS_SELECTOR, "h2") and one.text.startswith(title)
        )
        self.run("arguments[0].scrollIntoView()", found)
        return found

    def complaints(self) -> list[str]:
        """What the console has to say."""
        return [entry["message"] for entry in self._log("browser")]

    def requests(self) -> Iterator[str]:
        """Every address that was asked for since it was loaded."""
        for entry in self._log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                yield message["params"]["request"]["url"]

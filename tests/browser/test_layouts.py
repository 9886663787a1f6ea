"""The pictures of layouts in a real browser: what a cell says to the pointer, a finger and the arrow keys, against the
maps.
"""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from tests.browser.chromium import PHONE, Page
from tests.cli.gate.scheduled import samples

pytestmark = pytest.mark.browser


SCROLL = """
const box = arguments[0].parentElement;
box.scrollLeft = Math.max(0, arguments[1] - 200);
box.scrollTop = Math.max(0, arguments[2] - 200);
"""
CORNER = "const box = arguments[0].getBoundingClientRect(); return [box.left, box.top]"
COLOURS = """
const [canvas, x, y, side] = arguments, seen = new Set();
const data = canvas.getContext('2d').getImageData(x, y, side, side).data;
for (let k = 0; k < data.length; k += 4) seen.add(data.slice(k, k + 3).join());
return seen.size;
"""


def layout_of(item: int) -> dict[str, Any]:
    """What the report was told of the first layout of an item."""
    detail = samples()[item].detail
    assert detail is not None
    layout: dict[str, Any] = detail["schedules"][0]["layouts"][0]
    return layout


def opened(page: Page, item: int, **how: Any) -> WebElement:
    """The picture of the first layout of an item, in view."""
    page.open(item, **how)
    canvas = page.one(".layout canvas")
    page.run("arguments[0].closest('.picture').scrollIntoView({block: 'center'})", canvas)
    return canvas


def point_of(canvas: WebElement, picture: dict[str, Any], number: int) -> tuple[float, float]:
    """The middle of the cell of a number among those shown, in pixels from the canvas' corner."""
    shown = list(product(*(range(len(level["shown"])) for level in picture["levels"])))[number]
    across = [level["starts"][at] for level, at in zip(picture["levels"], shown, strict=True) if level["right"]]
    down = [level["starts"][at] for level, at in zip(picture["levels"], shown, strict=True) if not level["right"]]
    size = (canvas.size["width"] - 2) / picture["width"]
    return (sum(across) + 0.5) * size + 1, (sum(down) + 0.5) * size + 1


def point_at(page: Page, canvas: WebElement, x: float, y: float) -> str:
    """Move the pointer there; what the tip says."""
    page.run(SCROLL, canvas, x, y)
    left, top = page.run(CORNER, canvas)
    page.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": left + x, "y": top + y})
    return page.one("#tip").text


def cells(picture: dict[str, Any]) -> list[tuple[int, ...]]:
    """The physical indices of the cells shown, in order."""
    return list(product(*(level["shown"] for level in picture["levels"])))


def test_the_pointer_tells_every_cell(report: Page) -> None:
    """Under the pointer, every cell says its physical index, its flat offset, and the logical index or the padding that
    it holds.
    """
    canvas, layout = opened(report, 0), layout_of(0)
    picture = layout["picture"]
    width = picture["sizes"]["m"]
    for number, cell in list(enumerate(cells(picture)))[::5]:
        tip = point_at(report, canvas, *point_of(canvas, picture, number))
        i, outer, inner = cell
        j = outer * 4 + inner
        assert tip.startswith(f"physical [{i}, {outer}, {inner}]")
        assert f"flat offset: {(i * picture['box'][1] + outer) * 4 + inner} of 128" in tip
        assert (f"logical index: i = {i}, j = {j}" in tip) if j < width else ("padding; it holds T.float32(0.0)" in tip)
    assert report.complaints() == []


def test_texels_are_told(report: Page) -> None:
    """A cell of a texture says its texel: x and y in texels, and the channel."""
    canvas, layout = opened(report, 3), layout_of(3)
    picture = layout["picture"]
    for number in (0, 5, 77, 301, len(picture["cells"]) - 1):
        row, chunk, column, channel = cells(picture)[number]
        tip = point_at(report, canvas, *point_of(canvas, picture, number))
        across = (chunk * 58 + column) * 4 + channel
        assert f"after flattening: [{row}, {across}]" in tip
        assert f"texel: x = {across // 4}, y = {row}, channel = {channel} ({'rgba'[channel]})" in tip
    assert "1044 \N{MULTIPLICATION SIGN} 58 texels of 4 channels" in report.one(".layout").text


def test_clashes_are_told(report: Page) -> None:
    """Where several logical indices meet, the cell names them."""
    canvas, layout = opened(report, 1), layout_of(1)
    tip = point_at(report, canvas, *point_of(canvas, layout["picture"], 0))
    assert "several logical indices meet here: [0, 0] and [1, 0]" in tip
    assert "not injective" in report.one(".layout .legend").text


def test_between_cells_there_is_no_tip(report: Page) -> None:
    """The gap between tiles, and the room beside the picture, say nothing."""
    canvas, layout = opened(report, 0), layout_of(0)
    size = (canvas.size["width"] - 2) / layout["picture"]["width"]
    assert point_at(report, canvas, 4.1 * size, 0.5 * size) == ""
    assert not report.one("#tip").is_displayed()


def test_arrow_keys_go_from_cell_to_cell(report: Page) -> None:
    """With the keyboard alone each cell is reached, across gaps too, and what it holds is read out below the
    picture.
    """
    canvas = opened(report, 0)
    report.run(
        "arguments[0].previousElementSibling.querySelector('input').focus()", canvas.find_element(By.XPATH, "..")
    )
    ActionChains(report.driver).send_keys(Keys.TAB).perform()
    if report.driver.switch_to.active_element.tag_name != "canvas":
        ActionChains(report.driver).send_keys(Keys.TAB).perform()
    assert report.driver.switch_to.active_element == canvas
    assert "physical [0, 0, 0]" in report.one(".readout").text
    ActionChains(report.driver).send_keys(*[Keys.ARROW_RIGHT] * 4, Keys.ARROW_DOWN).perform()
    assert "physical [1, 1, 0]" in report.one(".readout").text
    ActionChains(report.driver).send_keys(Keys.END).perform()
    assert "physical [15, 1, 3]" in report.one(".readout").text and "padding" in report.one(".readout").text
    ActionChains(report.driver).send_keys(Keys.ESCAPE).perform()
    assert not report.one("#tip").is_displayed() and report.one("#pane h2").text == "row_sum.py:row_sum"


def test_a_finger_does_what_the_pointer_does(report: Page) -> None:
    """A touch on a phone tells the cell."""
    canvas, layout = opened(report, 1, size=PHONE), layout_of(1)
    x, y = point_of(canvas, layout["picture"], 0)
    left, top = report.run(CORNER, canvas)
    report.driver.execute_cdp_cmd(
        "Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": left + x, "y": top + y}]}
    )
    report.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert "physical [0, 0]" in report.one(".readout").text


def test_a_logical_index_is_found(report: Page) -> None:
    """Asked for a logical index, the picture shows its cell, or says that it is none or not among those shown."""
    opened(report, 0)
    find = report.one(".layout .bar input")
    for asked, told in (
        ("3, 6", "physical [3, 1, 2]"),
        ("99,0", "a logical index has 2 numbers"),
        ("1", "a logical index has 2 numbers"),
    ):
        find.clear()
        find.send_keys(asked, Keys.ENTER)
        assert told in report.one(".readout").text


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_padding_is_drawn(report: Page, dark: bool) -> None:
    """Cells of padding look different from logical cells by more than a shade: they have stripes, in light and in
    dark.
    """
    canvas, picture = opened(report, 0, dark=dark), layout_of(0)["picture"]
    size = (canvas.size["width"] - 2) / picture["width"]
    seen = {}
    for is_padding in (False, True):
        number = next(k for k, holds in enumerate(picture["cells"]) if (holds < 0) == is_padding)
        x, y = point_of(canvas, picture, number)
        seen[is_padding] = report.run(COLOURS, canvas, int(x - size * 0.4), int(y - size * 0.4), int(size * 0.2))
    assert seen[False] == 1 and seen[True] > 1


def test_zoom(report: Page) -> None:
    """Buttons make cells larger and smaller, and the pointer still tells the right cell."""
    canvas, layout = opened(report, 0), layout_of(0)
    before = canvas.size["width"]
    report.one("button[aria-label='Larger cells']").click()
    assert canvas.size["width"] > before
    tip = point_at(report, canvas, *point_of(canvas, layout["picture"], 9))
    assert re.match(rf"physical \[{', '.join(map(str, cells(layout['picture'])[9]))}\]", tip)
    report.one("button[aria-label='Smaller cells']").click()
    assert canvas.size["width"] == before

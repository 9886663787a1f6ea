"""A picture as rectangles, lines and texts, and as a file: SVG, which is written directly, without a library, or for
slides and pages that take none PNG, drawn with matplotlib, which loads only then.

Lengths are pixels, x to the right, y down. The file depends on the scene alone.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import FancyBboxPatch

INK, EDGE, PAPER = "#16212b", "#5b6770", "#ffffff"
SANS, MONO = "DejaVu Sans,Verdana,sans-serif", "DejaVu Sans Mono,Menlo,Consolas,monospace"
CHARACTER = 0.62
"""The width of a character, in font sizes: of DejaVu Sans Mono, and about the widest average of DejaVu Sans."""


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle; `hatch` is the colour of lines across it, `title` what a viewer shows when pointed at."""

    x: float
    y: float
    width: float
    height: float
    fill: str = PAPER
    stroke: str = EDGE
    line: float = 0.8
    hatch: str = ""
    radius: float = 0.0
    dashed: bool = False
    title: str = ""

    @property
    def style(self) -> str:
        """What it shares with other rectangles, as attributes."""
        fill = f"url(#{_hatch_id(self)})" if self.hatch else self.fill
        dash = ' stroke-dasharray="4 3"' if self.dashed else ""
        return f'fill="{fill}" stroke="{self.stroke}" stroke-width="{_number(self.line)}"{dash}'

    def svg(self, style: str) -> str:
        """The element; `style` are the attributes that no group around it has."""
        x, y, width, height = map(_number, (self.x, self.y, self.width, self.height))
        name, shape = "path", f'd="M{x} {y}h{width}v{height}h-{width}z"'
        if self.radius:
            name = "rect"
            shape = f'x="{x}" y="{y}" width="{width}" height="{height}" rx="{_number(self.radius)}"'
        inner = f"><title>{escape(self.title, quote=False)}</title></{name}>" if self.title else "/>"
        return f"<{name} {shape}{style}{inner}"


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text; `anchor` is start, middle or end, and `y` its baseline."""

    x: float
    y: float
    text: str
    size: float
    anchor: str = "middle"
    fill: str = INK
    bold: bool = False
    mono: bool = False

    @property
    def style(self) -> str:
        """What it shares with other texts, as attributes."""
        weight = ' font-weight="bold"' if self.bold else ""
        family = f' font-family="{MONO}"' if self.mono else ""
        return f'font-size="{_number(self.size)}" text-anchor="{self.anchor}" fill="{self.fill}"{weight}{family}'

    def svg(self, style: str) -> str:
        """The element, as `Rect.svg`."""
        return f'<text x="{_number(self.x)}" y="{_number(self.y)}"{style}>{escape(self.text, quote=False)}</text>'


@dataclass(frozen=True, slots=True)
class Line:
    """A line through points, with an arrow's head at its end if `arrow`."""

    points: tuple[tuple[float, float], ...]
    stroke: str = EDGE
    line: float = 1.0
    opacity: float = 1.0
    arrow: bool = False

    @property
    def style(self) -> str:
        """What it shares with other lines, as attributes."""
        faint = f' stroke-opacity="{_number(self.opacity)}"' if self.opacity < 1 else ""
        return f'fill="none" stroke="{self.stroke}" stroke-width="{_number(self.line)}"{faint}'

    def svg(self, style: str) -> str:
        """The element, as `Rect.svg`, with the head."""
        path = "M" + "L".join(_point(point) for point in self.points)
        head = self.head
        tip = f'<path d="M{"L".join(map(_point, head))}Z" fill="{self.stroke}"/>' if head else ""
        return f'<path d="{path}"{style}/>{tip}'

    @property
    def head(self) -> tuple[tuple[float, float], ...]:
        """The corners of the arrow's head, the tip first; none without an arrow."""
        if not self.arrow:
            return ()
        (x0, y0), (x, y) = self.points[-2:]
        length = max(((x - x0) ** 2 + (y - y0) ** 2) ** 0.5, 1e-9)
        dx, dy = (x - x0) / length, (y - y0) / length
        size = 4 + 2 * self.line
        back_x, back_y = x - size * dx, y - size * dy
        return (
            (x, y),
            (back_x - dy * size / 2, back_y + dx * size / 2),
            (back_x + dy * size / 2, back_y - dx * size / 2),
        )


Item = Rect | Text | Line


@dataclass(slots=True)
class Scene:
    """A picture under construction; later items cover earlier ones. `title` names it for viewers."""

    title: str
    width: float = 0.0
    height: float = 0.0
    items: list[Item] = field(default_factory=list)

    def add(self, *items: Item) -> None:
        """Draw these on top."""
        self.items += items

    def place(self, other: Scene, x: float, y: float) -> None:
        """Draw another scene with its corner there."""
        self.items += [_moved(item, x, y) for item in other.items]
        self.width, self.height = max(self.width, x + other.width), max(self.height, y + other.height)

    def svg(self) -> str:
        """The SVG file."""
        size = f'width="{_number(self.width)}" height="{_number(self.height)}"'
        view = f'viewBox="0 0 {_number(self.width)} {_number(self.height)}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} font-family="{SANS}">'
        parts = [head, f"<title>{escape(self.title, quote=False)}</title>", *self._definitions()]
        parts.append(f'<rect width="100%" height="100%" fill="{PAPER}"/>')
        for style, group in groupby(self.items, key=lambda item: item.style):
            found = list(group)
            if len(found) == 1:
                parts.append(found[0].svg(f" {style}"))
            else:
                parts += [f"<g {style}>", *(item.svg("") for item in found), "</g>"]
        return "\n".join([*parts, "</svg>"]) + "\n"

    def _definitions(self) -> Iterator[str]:
        """The patterns of hatched rectangles."""
        hatched = {_hatch_id(item): item for item in self.items if isinstance(item, Rect) and item.hatch}
        for name, rect in hatched.items():
            yield (
                f'<pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse" '
                f'patternTransform="rotate(45)"><rect width="6" height="6" fill="{rect.fill}"/>'
                f'<path d="M0 0V6" stroke="{rect.hatch}" stroke-width="1.6"/></pattern>'
            )


def width_of(text: str, size: float) -> float:
    """About how wide a text is."""
    return len(text) * CHARACTER * size


def fitting(text: str, size: float, room: float) -> float:
    """The font size, `size` at most, at which a text fits."""
    return min(size, room / max(len(text), 1) / CHARACTER)


def cut(text: str, characters: int) -> str:
    """A text with its end replaced by an ellipsis where it is too long."""
    return text if len(text) <= characters else f"{text[: characters - 1]}…"


def legend(entries: Sequence[tuple[Rect, str]], width: float, size: float = 11.0) -> Scene:
    """Samples with their meaning, in as many lines as the width asks for. Of a sample only the look counts."""
    scene, x, y = Scene("legend", width), 0.0, 0.0
    for sample, text in entries:
        need = size * 3.0 + width_of(text, size)
        if x and x + need > width:
            x, y = 0.0, y + size * 1.7
        box = replace(sample, x=x, y=y + size * 0.1, width=size * 1.2, height=size * 1.2)
        scene.add(box, Text(x + size * 1.6, y + size * 1.1, text, size, "start", EDGE))
        x += need
    scene.height = y + size * 1.7 if entries else 0.0
    return scene


def _moved(item: Item, x: float, y: float) -> Item:
    if isinstance(item, Line):
        return replace(item, points=tuple((a + x, b + y) for a, b in item.points))
    return replace(item, x=item.x + x, y=item.y + y)


def _hatch_id(rect: Rect) -> str:
    return f"hatch-{rect.fill.removeprefix('#')}-{rect.hatch.removeprefix('#')}"


def _point(point: tuple[float, float]) -> str:
    return f"{_number(point[0])} {_number(point[1])}"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


_DPI = 160
_PIXELS_PER_INCH = 76.8
_MOST_INCHES = 13.5
_ANCHORS = {"start": "left", "middle": "center", "end": "right"}


def file_of(scene: Scene, ending: str) -> bytes:
    """The bytes of an `svg` or `png` file."""
    return scene.svg().encode() if ending == "svg" else png_of(scene)


def png_of(scene: Scene) -> bytes:
    """The bytes of a PNG file."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    scale = min(1.0, _MOST_INCHES * _PIXELS_PER_INCH / max(scene.width, scene.height))
    inches = (scene.width / _PIXELS_PER_INCH * scale, scene.height / _PIXELS_PER_INCH * scale)
    with rc_context({"hatch.linewidth": 0.6 * scale, "font.family": "DejaVu Sans"}):
        figure = Figure(figsize=inches, layout=None, facecolor=PAPER)
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_xlim(0, scene.width)
        axes.set_ylim(scene.height, 0)
        axes.set_axis_off()
        for number, item in enumerate(scene.items):
            _draw(axes, item, number + 1, scale)
        buffer = io.BytesIO()
        # No date in the file: the same picture gives the same bytes.
        figure.savefig(buffer, format="png", dpi=_DPI, metadata={"Software": "layoutproof"})
    return buffer.getvalue()


def _draw(axes: Axes, item: Item, order: int, scale: float) -> None:
    from matplotlib.patches import Polygon

    points = 72 / _PIXELS_PER_INCH * scale  # of one pixel
    if isinstance(item, Text):
        axes.text(
            item.x,
            item.y,
            item.text,
            ha=_ANCHORS[item.anchor],
            va="baseline",
            fontsize=item.size * points,
            color=item.fill,
            weight="bold" if item.bold else "normal",
            family="DejaVu Sans Mono" if item.mono else "DejaVu Sans",
            zorder=order,
        )
    elif isinstance(item, Line):
        across, down = zip(*item.points, strict=True)
        axes.plot(across, down, color=item.stroke, linewidth=item.line * points, alpha=item.opacity, zorder=order)
        if item.arrow:
            axes.add_patch(Polygon(item.head, closed=True, facecolor=item.stroke, edgecolor="none", zorder=order))
    else:
        axes.add_patch(_box(item, order, points))


def _box(item: Rect, order: int, points: float) -> FancyBboxPatch:
    from matplotlib.patches import FancyBboxPatch

    return FancyBboxPatch(
        (item.x, item.y),
        item.width,
        item.height,
        boxstyle=f"round,pad=0,rounding_size={item.radius}" if item.radius else "square,pad=0",
        facecolor=item.fill,
        edgecolor=item.hatch if item.hatch and not item.line else item.stroke,
        hatch="////" if item.hatch else None,
        linewidth=item.line * points,
        linestyle="--" if item.dashed else "-",
        zorder=order,
    )

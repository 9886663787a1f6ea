"""A scene as a file: SVG, or for slides and pages that take none PNG, drawn with matplotlib, which loads only then."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from layoutproof.cli.plot.scene import PAPER, Item, Line, Rect, Scene, Text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import FancyBboxPatch

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

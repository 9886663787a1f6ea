"""Attributes of operators that move a window: its size, strides, dilation, and what lies around the array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from layoutproof.graph.operators.convolution import window_steps
from layoutproof.importers.onnx.model import ModelNode
from layoutproof.importers.onnx.translate import only, require

ATTRIBUTES: Final[Mapping[str, Any]] = {"kernel_shape": (), "strides": (), "pads": (), "dilations": (), "auto_pad": "NOTSET"}
LARGEST: Final = 2**31
MOST_AXES: Final = 3
"""Over how many axes a window may go."""


@dataclass(frozen=True, slots=True)
class Windows:
    """On each axis: the extent, the window's size, strides and dilation. `given` are all attributes, with those for the cells around."""

    node: ModelNode
    sizes: tuple[int, ...]
    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    given: Mapping[str, Any]

    @property
    def same(self) -> bool:
        """Whether the cells around are as many as the strides ask for."""
        return self.given["auto_pad"] in ("SAME_UPPER", "SAME_LOWER")

    @property
    def spans(self) -> tuple[int, ...]:
        """How many elements lie between the first and the last of a window, these included."""
        return tuple((size - 1) * apart + 1 for size, apart in zip(self.window, self.dilation, strict=True))

    @property
    def needed(self) -> tuple[int, ...]:
        """How many cells around each axis make as many windows as strides do of the extent; below zero, where elements are left over."""
        return tuple(
            (-(-extent // stride) - 1) * stride + span - extent
            for extent, stride, span in zip(self.sizes, self.strides, self.spans, strict=True)
        )

    def halo(self) -> tuple[int, ...]:
        """How many cells lie around the array: before on each axis, then after. Raises LayoutproofError for what ONNX has not."""
        found = self._around()
        self.check_small(found)
        return found

    def check_small(self, around: Sequence[int]) -> None:
        """Raise LayoutproofError where places, those behind the last window too, cannot be computed in 32 bits."""
        rank = len(self.sizes)
        for extent, stride, span, before, after in zip(self.sizes, self.strides, self.spans, around[:rank], around[rank:], strict=True):
            small = extent * stride + before + after + 2 * span + stride < LARGEST
            require(small, self.node, f"windows of {span} places, {stride} apart, with {before} and {after} around {extent}, are too large")

    def _around(self) -> tuple[int, ...]:
        kind, pads = self.given["auto_pad"], tuple(self.given["pads"])
        require(kind in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"), self.node, f"there is no auto_pad {kind!r}")
        if kind in ("NOTSET", "VALID"):
            found = pads if pads and kind == "NOTSET" else (0,) * (2 * len(self.sizes))
            require(
                len(found) == 2 * len(self.sizes) and min(found) >= 0,
                self.node,
                f"pads are {2 * len(self.sizes)} numbers, none below zero, not {list(pads)}",
            )
            return found
        # As many windows as the stride makes of the extent; the odd cell stands where the name says.
        needed = [max(0, each) for each in self.needed]
        less, more = [each // 2 for each in needed], [each - each // 2 for each in needed]
        return (*less, *more) if kind == "SAME_UPPER" else (*more, *less)

    def steps(self, halo: Sequence[int]) -> tuple[int, ...] | None:
        """How many windows there are on each axis, where `ceil_mode` asks for more than fit; each begins in the array or before it."""
        if not self.given.get("ceil_mode", 0) or self.same:
            return None
        rank = len(self.sizes)
        found = []
        for extent, stride, span, before, after in zip(self.sizes, self.strides, self.spans, halo[:rank], halo[rank:], strict=True):
            number = -(-(before + extent + after - span) // stride) + 1
            found.append(number - 1 if (number - 1) * stride >= extent + before else number)
        return tuple(found)

    def fitting(self, halo: Sequence[int]) -> tuple[int, ...]:
        """How many windows there are on each axis."""
        rank = len(self.sizes)
        asked = self.steps(halo)
        if asked is not None:
            return asked
        return tuple(
            window_steps(before + extent + after, span, stride)
            for extent, stride, span, before, after in zip(self.sizes, self.strides, self.spans, halo[:rank], halo[rank:], strict=True)
        )


def windows_of(node: ModelNode, shape: Sequence[int], window: Sequence[int] | None = None, **more: Any) -> Windows:
    """The windows that a node moves over an array; `window` is their size where the operands say it. `more` are attributes beside these.

    Raises LayoutproofError for attributes that it has not, or that do not fit.
    """
    given = only(node, **ATTRIBUTES, **more)
    rank = len(shape) - 2
    told = f"arrays of {MOST_AXES + 2} axes at most are translated, with channels and places, not of {len(shape)}"
    require(1 <= rank <= MOST_AXES, node, told)
    size = tuple(given["kernel_shape"]) or tuple(window if window is not None else ())
    require(window is None or size == tuple(window), node, f"kernel_shape is {list(size)}, the filters have {list(window or ())}")
    found = {"kernel_shape": size, **{name: tuple(given[name]) or (1,) * rank for name in ("strides", "dilations")}}
    for name, numbers in found.items():
        fits = len(numbers) == rank and min(numbers) >= 1
        words = {1: "one positive number", 2: "two positive numbers", 3: "three positive numbers"}
        require(fits, node, f"{name} are {words[rank]}, not {list(numbers)}")
    # Between the elements of a window of one there is no gap.
    gaps = tuple(gap if extent > 1 else 1 for extent, gap in zip(size, found["dilations"], strict=True))
    return Windows(node, tuple(shape[2:]), size, found["strides"], gaps, given)

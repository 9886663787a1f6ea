"""ONNX operators over windows, in terms of the operator library: convolutions, their transposes, and pooling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from layoutproof.graph.operators.convolution import Sliding, conv, conv_transpose, window_steps
from layoutproof.graph.operators.reduction import arg_extreme
from layoutproof.graph.operators.spatial import avg_pool, has_elements, max_pool
from layoutproof.importers.onnx.onnx_model import ModelNode
from layoutproof.importers.onnx.translate import (
    Made,
    Translate,
    Translation,
    axis_of,
    called,
    entered,
    has,
    only,
    require,
    same_type,
)
from layoutproof.ir.primfunc import PrimFunc

ATTRIBUTES: Final[Mapping[str, Any]] = {
    "kernel_shape": (),
    "strides": (),
    "pads": (),
    "dilations": (),
    "auto_pad": "NOTSET",
}
LARGEST: Final = 2**31
MOST_AXES: Final = 3
"""Over how many axes a window may go."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Of each axis the extent, the window's size, stride and dilation; `given` are all attributes of the node."""

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
        """The cells around each axis for one window per stride of the extent; negative where elements are left over."""
        return tuple(
            (-(-extent // stride) - 1) * stride + span - extent
            for extent, stride, span in zip(self.sizes, self.strides, self.spans, strict=True)
        )

    def halo(self) -> tuple[int, ...]:
        """The halo: cells before each axis, then after. Raises LayoutproofError for unknown attributes."""
        found = self._around()
        self.check_small(found)
        return found

    def sliding(self, halo: tuple[int, ...]) -> Sliding:
        """How the windows move over the array with these cells around it."""
        return Sliding(self.strides, halo, self.dilation)

    def check_small(self, around: Sequence[int]) -> None:
        """Raise LayoutproofError where places, those behind the last window too, cannot be computed in 32 bits."""
        rank = len(self.sizes)
        for extent, stride, span, before, after in zip(
            self.sizes, self.strides, self.spans, around[:rank], around[rank:], strict=True
        ):
            small = extent * stride + before + after + 2 * span + stride < LARGEST
            require(
                small,
                self.node,
                f"windows of {span} places, {stride} apart, with {before} and {after} around {extent}, are too large",
            )

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
        """The windows on each axis if `ceil_mode` asks for more than fit; each starts in the array or before it."""
        if not self.given.get("ceil_mode", 0) or self.same:
            return None
        rank = len(self.sizes)
        found = []
        for extent, stride, span, before, after in zip(
            self.sizes, self.strides, self.spans, halo[:rank], halo[rank:], strict=True
        ):
            number = -(-(before + extent + after - span) // stride) + 1
            found.append(number - 1 if (number - 1) * stride >= extent + before else number)
        return tuple(found)

    def fitting(self, halo: Sequence[int]) -> tuple[int, ...]:
        """How many windows there are on each axis."""
        asked = self.steps(halo)
        return asked if asked is not None else self.whole(halo)

    def whole(self, halo: Sequence[int]) -> tuple[int, ...]:
        """How many windows fit on each axis."""
        rank = len(self.sizes)
        return tuple(
            window_steps(before + extent + after, span, stride)
            for extent, stride, span, before, after in zip(
                self.sizes, self.strides, self.spans, halo[:rank], halo[rank:], strict=True
            )
        )


def windows_of(node: ModelNode, shape: Sequence[int], window: Sequence[int] | None = None, **more: Any) -> Windows:
    """The windows that a node moves over an array; `window` is their size where the operands say it. `more` are
    attributes beside these.

    Raises LayoutproofError for attributes that it has not, or that do not fit.
    """
    given = only(node, **ATTRIBUTES, **more)
    rank = len(shape) - 2
    told = f"arrays of {MOST_AXES + 2} axes at most are translated, with channels and places, not of {len(shape)}"
    require(1 <= rank <= MOST_AXES, node, told)
    size = tuple(given["kernel_shape"]) or tuple(window if window is not None else ())
    require(
        window is None or size == tuple(window),
        node,
        f"kernel_shape is {list(size)}, the filters have {list(window or ())}",
    )
    found = {"kernel_shape": size, **{name: tuple(given[name]) or (1,) * rank for name in ("strides", "dilations")}}
    for name, numbers in found.items():
        fits = len(numbers) == rank and min(numbers) >= 1
        words = {1: "one positive number", 2: "two positive numbers", 3: "three positive numbers"}
        require(fits, node, f"{name} are {words[rank]}, not {list(numbers)}")
    # Between the elements of a window of one there is no gap.
    gaps = tuple(gap if extent > 1 else 1 for extent, gap in zip(size, found["dilations"], strict=True))
    return Windows(node, tuple(shape[2:]), size, found["strides"], gaps, given)


def _conv(into: Translation, node: ModelNode) -> Made:
    data, weight = _operands(into, node)
    windows = windows_of(node, data, weight[2:], group=1)
    halo, groups = windows.halo(), windows.given["group"]
    require(groups >= 1 and weight[0] % groups == 0, node, f"{weight[0]} filters are no {groups} groups")
    require(
        data[1] == weight[1] * groups,
        node,
        f"filters of {weight[1]} channels do not fit {data[1]} channels in {groups} groups",
    )
    require(
        min(windows.fitting(halo)) >= 1, node, f"filters of {list(windows.window)} leave nothing of {list(data[2:])}"
    )
    dtype = same_type(into, node, node.operands[:2], "f")
    func = conv(data, weight, windows.sliding(halo), groups, dtype)
    return _with_bias(into, node, func, weight[0])


def _conv_transpose(into: Translation, node: ModelNode) -> Made:
    data, weight = _operands(into, node)
    windows = windows_of(node, data, weight[2:], group=1, output_padding=(), output_shape=())
    groups = windows.given["group"]
    require(groups >= 1 and data[1] % groups == 0, node, f"{data[1]} channels are no {groups} groups")
    require(data[1] == weight[0], node, f"filters for {weight[0]} channels do not fit {data[1]} channels")
    whole = [
        (extent - 1) * stride + span
        for extent, stride, span in zip(windows.sizes, windows.strides, windows.spans, strict=True)
    ]
    halo, sizes = _spread(node, windows, whole)
    rank = len(whole)
    extra = tuple(
        size - each + halo[k] + halo[k + rank] for k, (size, each) in enumerate(zip(sizes, whole, strict=True))
    )
    require(min(sizes) >= 1, node, f"it would make an image of {list(sizes)}")
    dtype = same_type(into, node, node.operands[:2], "f")
    func = conv_transpose(data, weight, windows.sliding(halo), groups, extra, dtype)
    return _with_bias(into, node, func, weight[1] * groups)


def _spread(node: ModelNode, windows: Windows, whole: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The cells cut off before and after each axis, and the result's sizes; `whole` are the sizes without cuts."""
    given, rank = windows.given, len(whole)
    more = tuple(given["output_padding"]) or (0,) * rank
    require(
        len(more) == rank and min(more) >= 0,
        node,
        f"output_padding is {rank} numbers, none below zero, not {list(more)}",
    )
    asked, kind = tuple(given["output_shape"]), given["auto_pad"]
    if not asked and not windows.same:
        halo = windows.halo()
        return halo, tuple(
            each + added - halo[k] - halo[k + rank] for k, (each, added) in enumerate(zip(whole, more, strict=True))
        )
    # Some models give the whole shape.
    asked = asked[-rank:] if len(asked) == rank + 2 else asked
    require(not asked or len(asked) == rank, node, f"output_shape is {rank} sizes, not {list(asked)}")
    sizes = (
        asked
        if asked
        else tuple(extent * stride for extent, stride in zip(windows.sizes, windows.strides, strict=True))
    )
    away = [each + added - size for each, added, size in zip(whole, more, sizes, strict=True)]
    # Systems that run models do not agree on where elements stand that nothing reaches, a last one aside.
    least = -1 if asked and kind != "SAME_UPPER" else 0
    require(
        min(away) >= least, node, f"a result of {list(sizes)} is larger than {list(whole)}, which the filters reach"
    )
    away = [max(0, each) for each in away]
    windows.check_small((*sizes, *away))
    less, rest = [each // 2 for each in away], [each - each // 2 for each in away]
    return ((*less, *rest) if kind == "SAME_UPPER" else (*rest, *less)), sizes


def _operands(into: Translation, node: ModelNode) -> tuple[tuple[int, ...], tuple[int, ...]]:
    data, weight = (into.shape(name) for name in node.operands[:2])
    require(
        len(data) == len(weight), node, f"an array of {len(data)} axes has filters with as many, not with {len(weight)}"
    )
    return data, weight


def _with_bias(into: Translation, node: ModelNode, func: PrimFunc, channels: int) -> Made:
    """The result of a convolution, and the bias added to it where there is one."""
    (made,) = into.builder.call(func, *(into.value(name) for name in node.operands[:2]))
    if has(node, 2):
        bias = node.operands[2]
        require(
            into.shape(bias) == (channels,),
            node,
            f"its bias has one element for each of {channels} filters, not {list(into.shape(bias))}",
        )
        same_type(into, node, [bias, made], "f")
        made = into.builder.bias_add(made, into.value(bias, (channels, *(1,) * (len(made.shape) - 2))))
    return (made,)


CONVOLUTIONS: Mapping[str, Translate] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
}


def _max_pool(into: Translation, node: ModelNode) -> Made:
    require(
        len([name for name in node.results if name]) == 1,
        node,
        "the places of the largest elements, its second result, are not translated",
    )
    windows, halo, dtype = _windows(into, node, "fiu", ceil_mode=0, storage_order=0)
    shape = into.shape(node.operands[0])
    func = max_pool(shape, windows.window, windows.sliding(halo), windows.steps(halo), dtype)
    return (called(into, func, node.operands[0]),)


def _average_pool(into: Translation, node: ModelNode) -> Made:
    windows, halo, dtype = _windows(into, node, "f", ceil_mode=0, count_include_pad=0)
    shape, steps, counted = into.shape(node.operands[0]), windows.steps(halo), bool(windows.given["count_include_pad"])
    func = avg_pool(shape, windows.window, windows.sliding(halo), steps, counted, dtype)
    return (called(into, func, node.operands[0]),)


def _windows(into: Translation, node: ModelNode, kinds: str, **more: Any) -> tuple[Windows, tuple[int, ...], str]:
    """The windows, halo and type. Raises LayoutproofError where some window is outside of the array."""
    windows = windows_of(node, into.shape(node.operands[0]), **more)
    # Systems that run models do not agree on what lies around windows with gaps, or around those that leave elements
    # out at the end.
    plain = not windows.same or (max(windows.dilation) == 1 and min(windows.needed) >= 0)
    told = f"with strides {list(windows.strides)} and dilations {list(windows.dilation)}"
    require(
        plain,
        node,
        f"auto_pad {windows.given['auto_pad']} is not translated for windows of {list(windows.window)} {told}",
    )
    halo = windows.halo()
    fitting = windows.fitting(halo)
    # ONNX says that a window that is not whole is none then, while systems that run models add it.
    beyond = windows.given["auto_pad"] == "VALID" and windows.steps(halo) not in (None, windows.whole(halo))
    require(not beyond, node, "ceil_mode is not translated for auto_pad VALID where it asks for more windows")
    require(min(fitting) >= 1, node, f"windows of {list(windows.window)} leave nothing of {list(windows.sizes)}")
    for axis, (extent, number) in enumerate(zip(windows.sizes, fitting, strict=True)):
        inside = has_elements(
            extent, windows.window[axis], windows.strides[axis], windows.dilation[axis], halo[axis], number
        )
        require(inside, node, f"some windows have nothing of axis {axis + 2} of the array, only of the cells around it")
    return windows, halo, same_type(into, node, node.operands, kinds)


def _global(kind: str) -> Translate:

    def translate(into: Translation, node: ModelNode) -> Made:
        only(node)
        same_type(into, node, node.operands, "f")
        data = into.shape(node.operands[0])
        require(len(data) >= 3, node, f"an array of {len(data)} axes is no image")
        return (into.builder.reduce(kind, entered(into, node.operands[0]), tuple(range(2, len(data))), keep=True),)

    return translate


def _arg(kind: str) -> Translate:
    """The place of an extreme element along an axis."""

    def translate(into: Translation, node: ModelNode) -> Made:
        given = only(node, axis=0, keepdims=1, select_last_index=0)
        data = into.shape(node.operands[0])
        require(len(data) >= 1, node, "a single element has no axis")
        dtype, along = same_type(into, node, node.operands, "fiu"), axis_of(node, given["axis"], len(data) - 1)
        func = arg_extreme(kind, data, along, bool(given["keepdims"]), bool(given["select_last_index"]), dtype)
        return (called(into, func, node.operands[0]),)

    return translate


POOLING: Mapping[str, Translate] = {
    "ArgMax": _arg("argmax"),
    "ArgMin": _arg("argmin"),
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global("mean"),
    "GlobalMaxPool": _global("max"),
    "MaxPool": _max_pool,
}

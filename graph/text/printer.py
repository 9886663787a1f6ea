"""Graphs -> text that reads back equal: the functions, then one assignment for each constant and step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import isnan
from typing import Any

from layoutproof.graph.model import Call, Constant, Crop, Graph, LayoutTransform, Pad, Step
from layoutproof.graph.operators.page import tuple_text
from layoutproof.ir.index_map import index_map_text
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.text import expr_text, literal_float

MOST_INLINE = 16
"""The number of elements up to which a constant's data stands in the text."""

HEADER = "# A graph of layoutproof: functions in TVM's script syntax, then the steps that call them."


def print_graph(graph: Graph) -> str:
    """The text of a well-formed graph. Of large constants, and of those with NaN, it has the digest: the arrays go beside it."""
    lines = [HEADER, ""]
    for function in graph.functions():
        # The header of a function's text says what its namespace is called, which is the same for all of them.
        lines += [line for line in print_func(function).splitlines() if not line.startswith("# ")]
        lines.append("")
    parameters = ", ".join(f'{value.name}: G.Tensor({tuple_text(value.shape)}, "{value.dtype}")' for value in graph.inputs)
    lines += ["", "@G.graph", f"def {graph.name}({parameters}):"]
    lines += [f"    {line}" for line in _body(graph)]
    return "\n".join(_without_blank_runs([*lines, ""]))


def step_text(step: Step) -> str:
    """A step as it stands in a text, without the names of what it makes."""
    return _TEXTS[type(step)](step)


def is_inline(constant: Constant) -> bool:
    """Whether the constant's data stands in the text."""
    if constant.sha256 is not None or constant.data.size > MOST_INLINE:
        return False
    return not any(isnan(element) for element in constant.data.astype(float).reshape(-1))


def _body(graph: Graph) -> Iterator[str]:
    for constant in graph.constants:
        value = constant.value
        yield f'{value.name} = G.constant({tuple_text(value.shape)}, "{value.dtype}", {_data_text(constant)})'
    for step in graph.steps:
        made = ", ".join(value.name for value in step.results)
        yield f"{made} = {step_text(step)}"
    yield f"return {', '.join(graph.outputs)}"


def _data_text(constant: Constant) -> str:
    if not is_inline(constant):
        return f'sha256="{constant.digest}"'
    elements = constant.data.reshape(-1).tolist()
    texts = [literal_float(float(e)) if constant.value.dtype.is_float else str(e) for e in elements]
    return f"data=[{', '.join(texts)}]"


def _call(step: Call) -> str:
    return f"{step.function.name}({', '.join(step.operands)})"


def _transform(step: LayoutTransform) -> str:
    return f"G.layout_transform({step.operand}, {index_map_text(step.index_map)})"


def _pad(step: Pad) -> str:
    widths = ", ".join(f"({before}, {after})" for before, after in step.widths)
    return f"G.pad({step.operand}, [{widths}], {expr_text(step.value)})"


def _crop(step: Crop) -> str:
    known = "" if step.cropped_value is None else f", cropped_value={expr_text(step.cropped_value)}"
    return f"G.crop({step.operand}, {list(step.starts)}, {list(step.sizes)}{known})"


def _without_blank_runs(lines: list[str]) -> Iterator[str]:
    blank = False
    for line in lines:
        if line or not blank:
            yield line
        blank = not line


_TEXTS: Mapping[type[Any], Callable[[Any], str]] = {Call: _call, LayoutTransform: _transform, Pad: _pad, Crop: _crop}

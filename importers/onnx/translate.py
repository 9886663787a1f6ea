"""The state of a model's translation to a graph: values and nodes by name, calls of functions, and names of values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from keyword import iskeyword
from math import prod
from typing import Any

import numpy as np

from layoutproof.graph import codes
from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model.graph import Array, Call, Crop, Graph, LayoutTransform, Pad, Step, Value
from layoutproof.importers.onnx.onnx_model import MOST_BYTES, Model, ModelNode
from layoutproof.importers.onnx.optional_packages import library
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import fresh


def identifier(name: str) -> str:
    """A name of a model as one of a graph's text."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"v_{plain}" if not plain or plain[0].isdigit() or iskeyword(plain) else plain


def named(graph: Graph, known: Mapping[str, str]) -> Graph:
    """The graph with other names for what its steps make: `known` has names of a model by names of values; where two
    become one identifier, the later one gets a number. Inputs and constants stay as they are.
    """
    taken = {value.name for value in (*graph.inputs, *(constant.value for constant in graph.constants))}
    made = [value.name for step in graph.steps for value in step.results]
    names = {name: name for name in taken}
    # Values without a name in the model come last: theirs say nothing to those who know the model.
    for name in sorted(made, key=lambda name: name not in known):
        names[name] = fresh(identifier(known.get(name, name)), taken)
        taken.add(names[name])
    steps = tuple(_renamed(step, names) for step in graph.steps)
    return replace(graph, steps=steps, outputs=tuple(names[name] for name in graph.outputs))


def _renamed(step: Step, names: Mapping[str, str]) -> Step:
    match step:
        case Call():
            results = tuple(_called(value, names) for value in step.results)
            return replace(step, results=results, operands=tuple(names[name] for name in step.operands))
        case LayoutTransform() | Pad() | Crop():
            return replace(step, result=_called(step.result, names), operand=names[step.operand])


def _called(value: Value, names: Mapping[str, str]) -> Value:
    return replace(value, name=names[value.name])


class AsDefined(Exception):
    """A translation leaves a node to what ONNX defines its operator by."""


class Translation:
    """A model on its way: what each of its names is, an array or a value of the graph."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.builder = GraphBuilder(identifier(model.name))
        self.known: dict[str, Value | Array] = {**model.arrays}
        self.done = 0
        self.depth = 0
        self._made = 0
        self._constants: dict[tuple[int, tuple[int, ...]], tuple[Array, Value]] = {}
        taken = set[str]()
        for name, (shape, dtype) in model.inputs.items():
            # Names that differ may be one identifier.
            entered = fresh(identifier(name), taken)
            taken.add(entered)
            self.known[name] = self.builder.input(entered, shape, dtype)

    def value(self, name: str, shape: tuple[int, ...] | None = None) -> Value:
        """A name as a value of the graph, an array as a constant, of another shape where that is asked for.

        Raises LayoutproofError for an unknown name.
        """
        found = self.known_as(name)
        if isinstance(found, Value):
            return found if shape is None or found.shape == shape else self.builder.reshape(found, shape)
        wanted = shape if shape is not None else found.shape
        if found.size == 0:
            raise error(
                codes.OPERANDS, f"{name} has the shape {list(found.shape)} and no elements, expected is at least one"
            )
        if prod(wanted) != found.size:
            raise error(codes.OPERANDS, f"{name} has the shape {list(found.shape)}, expected is {list(wanted)}")
        try:
            DType.parse(found.dtype.name)
        except ValueError as problem:
            raise error(
                codes.MODEL_FILE, f"the array {name} of the model holds {found.dtype.name}, which is not known"
            ) from problem
        key = (id(found), wanted)
        if key not in self._constants:
            self._constants[key] = (found, self.builder.constant(found.reshape(wanted), identifier(name)))
        return self._constants[key][1]

    def known_as(self, name: str) -> Value | Array:
        """What a name is. Raises LayoutproofError for an unknown one."""
        if name not in self.known:
            told = f"nothing in the model makes {name}" if name else "an operand is left out that is needed"
            raise error(codes.NO_VALUE, told)
        return self.known[name]

    def array(self, node: ModelNode, name: str) -> Array:
        """A name that must be known at compile time. Raises LayoutproofError where it is not."""
        found = self.known.get(name)
        if found is None or isinstance(found, Value):
            raise refused(node, f"{name} is not known before the model runs")
        return found

    def integers(self, node: ModelNode, name: str) -> list[int]:
        """Integers known at compile time. Raises LayoutproofError where they are not, or are something else."""
        found = self.array(node, name)
        require(found.dtype.kind in "iu" and found.ndim <= 1, node, f"{name} is no list of integers")
        return [int(number) for number in found.reshape(-1)]

    def number(self, node: ModelNode, name: str) -> Any:
        """One number known at compile time, as numpy has it. Raises LayoutproofError where it is not."""
        found = self.array(node, name)
        require(found.size == 1, node, f"{name} is no single number, but {list(found.shape)} of them")
        return found.reshape(-1)[0]

    def make_room(self, node: ModelNode, shape: tuple[int, ...], itemsize: int) -> None:
        """Count an array that is made while the model is read. Raises LayoutproofError where all get too large."""
        require(all(extent >= 0 for extent in shape), node, f"{list(shape)} is the shape of no array")
        self._made += prod(shape) * itemsize
        require(
            self._made <= MOST_BYTES,
            node,
            f"with {list(shape)} more than {MOST_BYTES} bytes are made when the model is read",
        )

    def type_of(self, node: ModelNode, kind: int) -> np.dtype[Any]:
        """The numpy type of ONNX's number for it. Raises LayoutproofError for types without numbers."""
        try:
            found: np.dtype[Any] = np.dtype(library().helper.tensor_dtype_to_np_dtype(kind))
            DType.parse(found.name)
        except (KeyError, ValueError) as problem:
            raise refused(node, f"elements of the type that ONNX has under {kind} are not translated") from problem
        return found

    def numpy_type(self, found: Value | Array) -> np.dtype[Any]:
        """The type of elements as numpy has it."""
        return numpy_dtype(found.dtype) if isinstance(found, Value) else found.dtype

    def nothing(self, value: Value, axis: int) -> Array:
        """A part of a value that has no elements along an axis; without elements, it is known."""
        shape = tuple(0 if k == axis else extent for k, extent in enumerate(value.shape))
        return np.zeros(shape, dtype=numpy_dtype(value.dtype))

    @contextmanager
    def inside(self, known: dict[str, Value | Array]) -> Iterator[None]:
        """With other names, as they are in the body of a node; those of before are there again after it."""
        outer, self.known = self.known, known
        self.depth += 1
        try:
            yield
        finally:
            self.known = outer
            self.depth -= 1

    def is_known(self, *names: str) -> bool:
        """Whether all names are arrays."""
        return all(isinstance(self.known.get(name), np.ndarray) for name in names)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a name. Raises LayoutproofError for an unknown one."""
        return tuple(self.known_as(name).shape)


Made = tuple[Value | Array, ...]
"""The results of a node, in order."""

Translate = Callable[[Translation, ModelNode], Made]


def axis_of(node: ModelNode, axis: int, last: int) -> int:
    """An axis counted from the front; `last` is the largest that there may be. Raises LayoutproofError for others."""
    require(-last - 1 <= axis <= last, node, f"there is no axis {axis}")
    return axis % (last + 1)


def axes_of(into: Translation, node: ModelNode, given: Sequence[int] | None, number: int) -> tuple[int, ...] | None:
    """A list of integers that is an attribute in old versions and an operand in new ones; None where it is neither.

    Raises LayoutproofError where it is not known before the model runs.
    """
    if given is not None:
        return tuple(given)
    return tuple(into.integers(node, node.operands[number])) if has(node, number) else None


def only(node: ModelNode, **allowed: Any) -> dict[str, Any]:
    """The attributes of a node, those that it lacks as `allowed` has them. Raises LayoutproofError for others."""
    unknown = sorted(set(node.attributes) - set(allowed))
    if unknown:
        raise refused(node, f"the attribute {unknown[0]} is not translated")
    return {**allowed, **node.attributes}


def has(node: ModelNode, number: int) -> bool:
    """Whether an operand is given that may be left out."""
    return len(node.operands) > number and node.operands[number] != ""


def require(holds: bool, node: ModelNode, why: str) -> None:
    """Raise LayoutproofError unless something holds that the translation needs."""
    if not holds:
        raise refused(node, why)


def refused(node: ModelNode, why: str) -> LayoutproofError:
    """The error of a node that is not translated."""
    return error(codes.MODEL_OPERATOR, f"{node}: {why}")


Operand = str | Value | Array
"""The name of an operand in the model, or what was made of one."""


def type_of(into: Translation, node: ModelNode, operand: Operand) -> DType:
    """The type of an operand's elements. Raises LayoutproofError for one that no graph has."""
    found = into.known_as(operand) if isinstance(operand, str) else operand
    if isinstance(found, Value):
        return found.dtype
    try:
        return DType.parse(found.dtype.name)
    except ValueError as problem:
        raise refused(
            node,
            f"{operand if isinstance(operand, str) else 'an operand'} holds {found.dtype.name}, which is not known",
        ) from problem


def same_type(into: Translation, node: ModelNode, operands: Sequence[Operand], kinds: str = "fiub") -> str:
    """The name of the one type of some operands: of floats (`f`), integers with and without sign (`i`, `u`) or truth
    values (`b`).

    Raises LayoutproofError where they differ, or are of another kind than these.
    """
    found = {type_of(into, node, operand) for operand in operands}
    require(len(found) == 1, node, f"its operands are of one type, not of {' and '.join(sorted(map(str, found)))}")
    (dtype,) = found
    kind = "f" if dtype.is_float else "b" if dtype.is_bool else "u" if str(dtype).startswith("u") else "i"
    words = {"f": "floats", "i": "integers with a sign", "u": "integers without a sign", "b": "truth values"}
    require(kind in kinds, node, f"it is translated for {' and '.join(words[each] for each in kinds)}, not for {dtype}")
    return str(dtype)


def shape(into: Translation, operand: Operand) -> tuple[int, ...]:
    """The shape of an operand. Raises LayoutproofError for an unknown name."""
    return into.shape(operand) if isinstance(operand, str) else tuple(operand.shape)


def called(into: Translation, func: PrimFunc, *operands: Operand) -> Value:
    """The one result of a function."""
    return into.builder.call(func, *(entered(into, operand) for operand in operands))[0]


def entered(into: Translation, operand: Operand) -> Value:
    """An operand as a value of the graph."""
    if isinstance(operand, str):
        return into.value(operand)
    return operand if isinstance(operand, Value) else into.builder.constant(operand)

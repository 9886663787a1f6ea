"""A model on its way to a graph: what each of its names is, and what nodes are asked for."""

from __future__ import annotations

import re
from keyword import iskeyword
from math import prod
from typing import Any

import numpy as np

from layoutproof.graph import codes
from layoutproof.graph.assembly import unused
from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model import Array, Value
from layoutproof.importers.onnx.model import Model, ModelNode
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.dtype import DType


class Translation:
    """A model on its way: what each of its names is, an array or a value of the graph."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.builder = GraphBuilder(identifier(model.name))
        self.known: dict[str, Value | Array] = {**model.arrays}
        self._constants: dict[tuple[int, tuple[int, ...]], tuple[Array, Value]] = {}
        taken = set[str]()
        for name, (shape, dtype) in model.inputs.items():
            # Names that differ may be one identifier.
            entered = unused(identifier(name), taken)
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
        if prod(wanted) != found.size:
            raise error(codes.OPERANDS, f"{name} has the shape {list(found.shape)}, expected is {list(wanted)}")
        try:
            DType.parse(found.dtype.name)
        except ValueError as problem:
            raise error(codes.MODEL_FILE, f"the array {name} of the model holds {found.dtype.name}, which is not known") from problem
        key = (id(found), wanted)
        if key not in self._constants:
            self._constants[key] = (found, self.builder.constant(found.reshape(wanted), identifier(name)))
        return self._constants[key][1]

    def known_as(self, name: str) -> Value | Array:
        """What a name is. Raises LayoutproofError for an unknown one."""
        if name not in self.known:
            raise error(codes.NO_VALUE, f"nothing in the model makes {name or 'an operand that is left out'}")
        return self.known[name]

    def array(self, node: ModelNode, name: str) -> Array:
        """A name that must be known at compile time. Raises LayoutproofError where it is not."""
        found = self.known.get(name)
        if found is None or isinstance(found, Value):
            raise refused(node, f"{name} is not known before the model runs")
        return found

    def integers(self, node: ModelNode, name: str) -> list[int]:
        """A list of integers that must be known at compile time. Raises LayoutproofError where it is not, or is something else."""
        found = self.array(node, name)
        require(found.dtype.kind in "iu" and found.ndim <= 1, node, f"{name} is no list of integers")
        return [int(number) for number in found.reshape(-1)]

    def is_known(self, *names: str) -> bool:
        """Whether all names are arrays."""
        return all(isinstance(self.known.get(name), np.ndarray) for name in names)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a name. Raises LayoutproofError for an unknown one."""
        return tuple(self.known_as(name).shape)


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


def identifier(name: str) -> str:
    """A name of a model as one of a graph's text."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"v_{plain}" if not plain or plain[0].isdigit() or iskeyword(plain) else plain

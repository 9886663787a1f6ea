"""The network study: which contract serves every operator that reads a value, in the nine networks inside the package
`onnx`; and what padding costs against branches.

The operators of a network are of few kinds, and each kind has a template, whose cells say which contracts it allows. An
operator that moves elements along the channels (a concatenation, a reshape) or whose channels come in groups has none:
its guards stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

from layoutproof.graph.model.graph import Call, Graph
from layoutproof.ir.diagnostic import error
from layoutproof.studies import codes
from layoutproof.studies.journal import kept_in

KINDS: Mapping[str, str] = {
    "conv2d": "convolution",
    "dense": "matmul",
    "relu": "relu",
    "add": "add",
    "multiply": "multiply",
    "batch_norm": "add-one",
    "depthwise_conv2d": "sum-pool-channels",
    "max_pool2d": "max-pool-channels",
    "avg_pool2d": "sum-pool-channels",
    "mean": "sum-pool-channels",
    "softmax": "softmax",
    "response_norm": "sum-of-squares",
}
"""By the name of an operator, the template whose cells stand for it."""
ANYTHING = "anything"
FILE = "networks.json"
CHANNELS = 1


@dataclass(frozen=True, slots=True)
class Edge:
    """A value of a network that is read: its elements, its channels, and the operators that read it."""

    value: str
    elements: int
    channels: int
    readers: tuple[str, ...]

    def padding(self, block: int) -> int:
        """The elements of padding if channels come in blocks."""
        return self.elements // self.channels * (-self.channels % block)


def edges_of_networks(path: Path) -> dict[str, list[Edge]]:
    """The edges of the nine networks by name, kept in a file, since it takes a minute to read the networks."""

    def made() -> dict[str, list[dict[str, Any]]]:
        return {name: [asdict(edge) for edge in edges_of(graph)] for name, graph in _graphs()}

    data = kept_in(path, made)
    return {
        name: [Edge(**{**edge, "readers": tuple(edge["readers"])}) for edge in edges] for name, edges in data.items()
    }


def _graphs() -> Iterator[tuple[str, Graph]]:
    spec = find_spec("onnx")
    if spec is None or spec.origin is None:
        raise error(
            codes.STUDY_FILE, "the network study needs the package onnx", help="pip install 'layoutproof[onnx]'"
        )
    from layoutproof.importers.onnx.convert import graph_of
    from layoutproof.importers.onnx.onnx_model import read_model

    folder = Path(spec.origin).parent / "backend" / "test" / "data" / "light"
    for path in sorted(folder.glob("light_*.onnx")):
        yield path.stem.removeprefix("light_"), graph_of(read_model(path))


def edges_of(graph: Graph) -> Iterator[Edge]:
    """The values of a graph with a channel axis that calls read."""
    values = {v.name: v for v in graph.inputs}
    values |= {v.name: v for step in graph.steps if isinstance(step, Call) for v in step.results}
    readers: dict[str, list[str]] = {}
    for step in graph.steps:
        for operand in dict.fromkeys(step.operands) if isinstance(step, Call) else ():
            if operand in values:
                readers.setdefault(operand, []).append(_base(step.function.name) if isinstance(step, Call) else "")
    for name, value in values.items():
        if name in readers and len(value.shape) > CHANNELS:
            yield Edge(name, prod(value.shape), value.shape[CHANNELS], tuple(readers[name]))


def _base(name: str) -> str:
    return re.sub(r"_\d+$", "", name)


def allowed_by(records: Sequence[Mapping[str, Any]]) -> Mapping[str, frozenset[str]]:
    """By template, the contracts under which every guard goes: values by name, or anything."""
    found: dict[str, set[str]] = {}
    for record in records:
        contracts = found.setdefault(record["operator"], set())
        if record["verdict"] == "proved":
            contracts.add(ANYTHING if record["policy"] == "element-wise" else record["value"])
    return {name: frozenset(contracts) for name, contracts in found.items()}


def contracts_of(edge: Edge, allowed: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The contracts that serve every reader of an edge; who takes anything takes every value."""
    known: frozenset[str] | None = None
    for reader in edge.readers:
        mine = allowed.get(KINDS.get(reader, ""), frozenset())
        wide = mine | {"0", "-inf"} if ANYTHING in mine else mine
        known = wide if known is None else known & wide
    return known if known is not None else frozenset()


@dataclass(frozen=True, slots=True)
class Shares:
    """Of a network's edges: how many there are, and how many one contract serves: anything, else zero, else another."""

    network: str
    edges: int
    anything: int
    zero: int
    other: int

    @property
    def served(self) -> int:
        """The edges that one contract serves."""
        return self.anything + self.zero + self.other


def shares_of(network: str, edges: Sequence[Edge], allowed: Mapping[str, frozenset[str]]) -> Shares:
    """F3 for one network."""
    found = [contracts_of(edge, allowed) for edge in edges]
    anything = sum(ANYTHING in each for each in found)
    zero = sum("0" in each and ANYTHING not in each for each in found)
    return Shares(network, len(edges), anything, zero, sum(bool(each) for each in found) - anything - zero)


def front_of(
    edges: Sequence[Edge], allowed: Mapping[str, frozenset[str]], block: int, width: int = 4
) -> list[tuple[int, int]]:
    """F2 for one network and block: bytes of padding against guarded iterations, from no padding on.

    Every edge that one contract serves is either stored with padding, or its readers test each of their elements. The
    edges with the most tests for a byte are padded first, so these are the corners of the best that can be had.
    """
    served = [edge for edge in edges if edge.padding(block) and contracts_of(edge, allowed)]
    tests = {edge.value: edge.elements * len(edge.readers) for edge in edges if edge.channels % block}
    total, size = sum(tests.values()), 0
    points = [(0, total)]
    for edge in sorted(served, key=lambda e: (-tests[e.value] / e.padding(block), e.value)):
        size += edge.padding(block) * width
        total -= tests[edge.value]
        points.append((size, total))
    return points

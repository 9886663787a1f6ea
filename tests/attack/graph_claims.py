"""What is claimed of each value of a rewritten graph, looked at in runs: a claim that is proved, and is not so, is
wrong by itself.

Whatever a graph leaves open (undefined padding, elements that nobody writes) is something else at each call; what an
old graph's runs do not agree on is not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutproof.graph.model.graph import Graph, Pad, Value, number_of, shape_of, signature_of
from layoutproof.graph.model.graph_run import run_graph, run_values
from layoutproof.graph.model.graph_witness import GraphRewrite, Interface
from layoutproof.graph.operators.copies import as_call
from layoutproof.graph.planning.planner import Plan
from layoutproof.graph.tuning.kernels import Kernels
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.interp.memory import DEFINED, Fault, Fill, Filling
from layoutproof.ir.interp.run import run, same_values
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.verify.verdict.verdict import Status, Verdict

Array = NDArray[Any]
Arrays = Mapping[str, Array]
SPECIAL = (-0.0, float("nan"), float("inf"), -float("inf"), 0.0)
CLAIM = " holds what the witness says"


class Open:
    """A runner for graphs: every call has other numbers where its function leaves something open, unless `fill` says
    which.
    """

    def __init__(self, seed: int, fill: Fill) -> None:
        self.calls, self.fill = seed * 1_000, fill

    def __call__(self, func: PrimFunc, operands: Sequence[Array]) -> tuple[Array, ...]:
        """The results of a function."""
        self.calls += 1
        signature, random = signature_of(func), np.random.default_rng(self.calls)
        given = {buffer.name: array for buffer, array in zip(signature.operands, operands, strict=True)}
        filling = Filling(self.fill, self.calls)
        made = run(func, given, filling=filling)
        found = []
        for buffer in signature.results:
            shape = shape_of(buffer)
            left = np.asarray(made.states[buffer.name]).reshape(shape) != DEFINED
            filled = np.full(shape, filling.value(buffer.dtype)).astype(numpy_dtype(buffer.dtype))
            held = drawn(random, shape, buffer.dtype) if self.fill is Fill.RANDOM else filled
            found.append(np.where(left, held, made[buffer.name]))
        return tuple(found)


def drawn(random: np.random.Generator, shape: Sequence[int], dtype: DType) -> Array:
    """An array of numbers of a type, extremes among them."""
    if dtype.is_bool:
        return random.integers(0, 2, size=tuple(shape)).astype(np.bool_)
    if dtype.is_float:
        floats = random.normal(size=tuple(shape)) * 3
        floats = np.where(random.random(tuple(shape)) < 0.1, random.choice(SPECIAL, size=tuple(shape)), floats)
        return np.asarray(floats.astype(numpy_dtype(dtype)))
    low, high = dtype.min_int, dtype.max_int
    array = random.integers(max(low, -9), 10, size=tuple(shape))
    ends = random.choice(np.array([low, high], dtype=numpy_dtype(dtype)), size=tuple(shape))
    return np.asarray(np.where(random.random(tuple(shape)) < 0.1, ends, array.astype(numpy_dtype(dtype))))


def inputs_of(graph: Graph, seed: int) -> Arrays:
    """An array for each input."""
    random = np.random.default_rng(seed)
    return {value.name: drawn(random, value.shape, value.dtype) for value in graph.inputs}


def values_of(graph: Graph, inputs: Arrays, seed: int, fill: Fill = Fill.RANDOM) -> Arrays:
    """The values of a run, but for those that come of a step that faults, or of an input that is not given."""
    values = {**inputs, **{constant.value.name: constant.data for constant in graph.constants}}
    known, runner, filling = graph.by_name(), Open(seed, fill), Filling(fill, seed)
    for step in graph.steps:
        names = dict.fromkeys(step.operands)
        if not set(names) <= set(values):
            continue
        # As a function, so that undefined cells of a pad differ from one another too.
        alone = Graph(
            "alone",
            tuple(known[name] for name in names),
            (),
            (as_call(step, known) if isinstance(step, Pad) else step,),
            (),
        )
        try:
            values |= run_values(alone, {name: values[name] for name in names}, runner=runner, filling=filling)
        except (Fault, LayoutproofError):  # a layout record that was tampered with cannot be read
            continue
    return values


class Judge:
    """Knows what an old graph makes of some inputs."""

    def __init__(self, graph: Graph, seed: int) -> None:
        self.graph = graph
        self.inputs = inputs_of(graph, seed)
        self.runs = [values_of(graph, self.inputs, seed) for seed in range(1, 5)]
        self.runs += [values_of(graph, self.inputs, 9, fill) for fill in Fill if fill is not Fill.RANDOM]
        self.defined = {
            name: np.logical_and.reduce([same_values(self.runs[0][name], other[name]) for other in self.runs[1:]])
            for name in self.runs[0]
        }

    def lies(self, rewrite: GraphRewrite, interface: Interface, verdicts: Sequence[Verdict]) -> Iterator[str]:
        """What is proved of a rewrite, and is not so in a run."""
        proved = [verdict.claim.text for verdict in verdicts if verdict.status is Status.PROVED]
        told = {name for claim in proved if claim.endswith(CLAIM) for name in claim.removesuffix(CLAIM).split(", ")}
        ends = [claim for claim in proved if not claim.endswith(CLAIM)]
        if not told and not ends:
            return
        values = values_of(rewrite.new, self.given(rewrite.new, interface), 7)
        new = rewrite.new.by_name()
        for name in sorted(told):
            if name not in values:
                yield f"{name}, which faults"
            elif not self.holds(rewrite, new[name], values[name]):
                yield name
        if ends and not self.ends(rewrite, interface, values):
            yield "the outputs"

    def is_defined(self) -> bool:
        """Whether nothing in the old graph is left open."""
        return set(self.runs[0]) == set(self.graph.by_name()) and all(
            bool(np.all(defined)) for defined in self.defined.values()
        )

    def differences(self, made: Plan) -> Iterator[str]:
        """The outputs that generated C makes otherwise of a planned graph than of the old one, as the interface has
        them.
        """
        kernels, plain = Kernels(made.rewrite.schedules), Kernels()
        wanted = dict(
            zip(self.graph.outputs, run_graph(self.graph, self.inputs, runner=plain, mover=plain.move), strict=True)
        )
        new = made.rewrite.new
        taken = run_graph(new, self.given(new, made.interface), runner=kernels, mover=kernels.move)
        for name, array in made.interface.taken(self.graph, taken):
            if not bool(np.all(same_values(array, wanted[name]))):
                yield name

    def given(self, new: Graph, interface: Interface) -> Arrays:
        """The inputs by the interface, with random padding; without those that it has in another shape."""
        random, made = np.random.default_rng(5), dict[str, Array]()
        for value in new.inputs:
            array, index_map = self.inputs.get(value.name), interface.inputs.get(value.name)
            if array is not None and index_map is None and array.shape == value.shape:
                made[value.name] = array
            elif array is not None and index_map is not None and self.stores(index_map, array.shape, value.shape):
                inside = index_map.map_array(np.ones(array.shape, np.bool_), value.shape)
                made[value.name] = np.where(
                    inside, index_map.map_array(array, value.shape), drawn(random, value.shape, value.dtype)
                )
        return made

    def stores(self, index_map: IndexMap, shape: tuple[int, ...], box: tuple[int, ...]) -> bool:
        """Whether a map's image lies in a box."""
        values = index_map.output_values(shape)
        return len(values) == len(box) and all(
            0 <= int(v.min()) and int(v.max()) < n for v, n in zip(values, box, strict=True)
        )

    def holds(self, rewrite: GraphRewrite, value: Value, array: Array) -> bool:
        """Whether the elements of an old value stand where the witness says, and around them what it says."""
        place = rewrite.places[value.name]
        old = self.runs[0][place.value]
        if not self.stores(place.index_map, old.shape, value.shape):
            return False
        same = same_values(place.index_map.unmap_array(array, old.shape), old) | ~self.defined[place.value]
        if not bool(np.all(same)):
            return False
        if place.pad is None:
            return True
        around = array[~place.index_map.map_array(np.ones(old.shape, np.bool_), value.shape)]
        return bool(same_values(around, np.full(around.shape, number_of(place.pad), around.dtype)).all())

    def ends(self, rewrite: GraphRewrite, interface: Interface, values: Arrays) -> bool:
        """Whether the outputs are the old ones, as the interface has them."""
        if any(name not in values for name in rewrite.new.outputs):
            return False
        made = tuple(values[name] for name in rewrite.new.outputs)
        outputs = interface.outputs
        if outputs is None:
            outputs = tuple((name, IndexMap.identity(self.runs[0][name].ndim)) for name in rewrite.old.outputs)
        pairs = zip(outputs, made, strict=False)
        if len(outputs) != len(made) or not all(
            self.stores(m, self.runs[0][name].shape, array.shape) for (name, m), array in pairs
        ):
            return False
        taken = interface.taken(rewrite.old, made)
        if interface.outputs is None and [name for name, _ in taken] != list(rewrite.old.outputs):
            return False
        if {name for name, _ in taken} != set(rewrite.old.outputs):
            return False
        return all(bool(np.all(same_values(self.runs[0][name], array) | ~self.defined[name])) for name, array in taken)

"""ONNX's own tests of operators: the package makes them, with what each should make; here each is read and run."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from layoutproof.graph.model.graph_run import Mover, Runner, interpret, run_graph, transformed
from layoutproof.importers.onnx.convert import graph_of
from layoutproof.importers.onnx.onnx_model import model_of
from layoutproof.ir.diagnostic import LayoutproofError

Array = NDArray[Any]
DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"


@dataclass(frozen=True, slots=True)
class Case:
    """A model, what it is given and what it should make."""

    name: str
    model: onnx.ModelProto
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]

    @property
    def operators(self) -> frozenset[str]:
        """The operators of its nodes."""
        return frozenset(node.op_type for node in self.model.graph.node)

    def holding(self, kept: int) -> Case:
        """The same with all inputs but the first so many as arrays of the model."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        for item, value in zip(model.graph.input[kept:], self.inputs[kept:], strict=True):
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(array_of(value)), item.name))
        del model.graph.input[kept:]
        # Before version 4 of the format each array had to be an input as well.
        model.ir_version = max(model.ir_version, 4)
        return Case(self.name, model, self.inputs[:kept], self.outputs)


@cache
def node_cases() -> tuple[Case, ...]:
    """The tests of single operators, and the same as ONNX expands them."""
    from onnx.backend.test.case.node import collect_testcases

    # Some of them warn of numbers that they overflow on purpose.
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        made = collect_testcases(None)
    return tuple(
        Case(case.name, case.model, tuple(inputs), tuple(outputs))
        for case in made
        if case.model is not None and case.data_sets
        for inputs, outputs in case.data_sets[:1]
    )


def file_cases() -> Iterator[Case]:
    """The models in files, as other tools exported them long ago, with arrays beside them."""
    for path in sorted(DATA.glob("*/*/model.onnx")):
        folder = path.parent / "test_data_set_0"
        inputs, outputs = (tuple(_arrays(folder, kind)) for kind in ("input", "output"))
        yield Case(path.parent.name, onnx.load(str(path)), inputs, outputs)


def _arrays(folder: Path, kind: str) -> Iterator[Array]:
    for number in range(len(list(folder.glob(f"{kind}_*.pb")))):
        held = onnx.TensorProto()
        held.ParseFromString((folder / f"{kind}_{number}.pb").read_bytes())
        yield numpy_helper.to_array(held)


def array_of(value: Any) -> Any:
    """An array that is given as it is, or as ONNX keeps it."""
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def outcome(case: Case, runner: Runner = interpret, mover: Mover = transformed) -> str:
    """Empty where the model makes what it should; else why it is not read.

    Raises AssertionError where it makes anything else.
    """
    try:
        graph = graph_of(model_of(case.model))
    except LayoutproofError as refusal:
        return str(refusal).splitlines()[0]
    held, names = ({item.name for item in items} for items in (case.model.graph.initializer, case.model.graph.input))
    given: Sequence[Any] = case.inputs
    if held & names and len(given) == len(case.model.graph.input):
        given = [value for item, value in zip(case.model.graph.input, given, strict=True) if item.name not in held]
    inputs = {value.name: np.asarray(array_of(array)) for value, array in zip(graph.inputs, given, strict=True)}
    made = run_graph(graph, inputs, runner=runner, mover=mover)
    for found, wanted in zip(made, case.outputs, strict=True):
        check_equal(case.name, found, np.asarray(array_of(wanted)))
    return ""


def check_equal(name: str, found: Array, wanted: Array) -> None:
    """Raise AssertionError unless two arrays are equal, but for a few roundings in their type."""
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), (
        f"{name}: {found.dtype}{found.shape}, not {wanted.dtype}{wanted.shape}"
    )
    if wanted.dtype.kind in "biu":
        np.testing.assert_array_equal(found, wanted, err_msg=name)
        return
    step = {"bfloat16": 2.0**-8, "float16": 2.0**-11}.get(wanted.dtype.name, 2.0**-24)
    rough = np.float64
    np.testing.assert_allclose(
        found.astype(rough), wanted.astype(rough), rtol=max(1e-3, 8 * step), atol=max(1e-6, 4 * step), err_msg=name
    )


def read(case: Case) -> str:
    """The outcome: as the model is or, where it is refused so, with operands that stand in the model, as exporters
    write them.
    """
    first = outcome(case)
    if not first:
        return first
    for kept in (1, 0):
        if len(case.inputs) > kept and holdable(case.inputs[kept:]):
            held = outcome(case.holding(kept))
            if not held:
                return held
            first = first if kept == 0 else held
    return first


def holdable(values: Sequence[Any]) -> bool:
    """Whether all of these are arrays of numbers that a model can hold."""
    return all(
        isinstance(value, onnx.TensorProto)
        or (isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biuf")
        for value in values
    )

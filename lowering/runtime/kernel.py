"""A built function, called on arrays in logical or physical layout, and the interface of its launcher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import free_variables
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.calling_convention import Parameter
from layoutproof.lowering.runtime.array_layouts import Layout, Packer, Step
from layoutproof.lowering.runtime.arrays import (
    Array,
    as_array,
    check_apart,
    check_array,
    check_overlap,
    lane_shape,
    poison,
    split_lanes,
)
from layoutproof.lowering.runtime.call_arguments import (
    Assumption,
    Signature,
    Symbols,
    check_requirements,
    extent_text,
    scalar_value,
)
from layoutproof.lowering.runtime.enclosure import Cells, Enclosed, enclose
from layoutproof.lowering.runtime.inexact import EXACT, Inexact
from layoutproof.verify.verdict.verdict import Verdict

Scalars = Mapping[str, int | float]


class Source(Protocol):
    """Generated text of any target."""

    @property
    def text(self) -> str:
        """The compiled text."""
        ...

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The function's parameters in order."""
        ...

    @property
    def index_bits(self) -> int:
        """32 or 64."""
        ...


class Launcher(Protocol):
    """A compiled function.

    `copies`: it works on copies of the arrays, so that overlapping arrays become separate ones; `compiler` is named
    when results are wrong.
    """

    @property
    def copies(self) -> bool:
        """Whether each array is copied to separate memory."""
        ...

    @property
    def compiler(self) -> str:
        """The compiler's name for messages."""
        ...

    def check(self, symbols: Symbols) -> None:
        """Raise LayoutproofError where the target cannot take a call with these symbols, before anything runs."""
        ...

    def launch(self, arrays: Mapping[str, Array], scalars: Scalars) -> None:
        """Run on physical arrays, in place; `scalars` are the other parameters. Raises LayoutproofError (LP427)."""
        ...


@dataclass(frozen=True, slots=True, repr=False)
class BufferInfo:
    """One array parameter of a kernel. Extents are integers, or text where they depend on symbols.

    `steps` are the transforms in order, each with its index map and padding contract; `index_map` is their composition,
    None for the logical layout.
    """

    name: str
    dtype: DType
    logical_shape: tuple[int | str, ...]
    physical_shape: tuple[int | str, ...]
    index_map: IndexMap | None
    steps: tuple[Step, ...]
    is_output: bool

    @property
    def contracts(self) -> tuple[str | None, ...]:
        """The padding of each transform: None (unchanged), `undef` (anything), or a value's text."""
        return tuple(step.contract for step in self.steps)

    def __repr__(self) -> str:
        role = "output" if self.is_output else "input"
        maps = "".join(f", {index_map_text(s.index_map)} with padding {s.contract or 'untouched'}" for s in self.steps)
        return (
            f"<{role} {self.name}: {self.dtype}, logical {list(self.logical_shape)}, physical "
            f"{list(self.physical_shape)}{maps}>"
        )


@dataclass(frozen=True, slots=True)
class BuildReport:
    """How a kernel was built: command, files, and checks.

    `device` is where it runs, None for the processor; `fast_math` are the liberties that the device takes whatever the
    proofs allow, by which results may differ. `verdicts` are the proofs for this target alone.
    """

    target: str
    command: str
    source_path: str | None
    library_path: str | None
    reused: bool
    index_bits: int
    openmp: bool
    fast: bool
    self_check: str
    notes: tuple[str, ...]
    device: str | None = None
    fast_math: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()


@dataclass(frozen=True, slots=True)
class LoweredFunc:
    """A lowered, flattened function, the layouts of its arrays by name (by default logical), and its preconditions."""

    func: PrimFunc
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    assumptions: tuple[Assumption, ...] = ()


class Kernel:
    """A compiled function. `kernel(*inputs)` takes and gives logical arrays, `kernel.raw(*arrays)` physical ones.

    `assumptions` are the preconditions of the proofs, each with who ensures it: conditions on symbols are checked at
    every call; the contents of padding are established by a call, and left to the caller with `raw`; those on data are
    left to the caller. `inexact` is how results may differ from the program, `EXACT` for bit-equal results.
    """

    def __init__(
        self, lowered: LoweredFunc, source: Source, launcher: Launcher, report: BuildReport, inexact: Inexact = EXACT
    ) -> None:
        self.name = lowered.func.name
        self.inexact = inexact
        self.lowered = lowered.func
        self.report = report
        self.assumptions = lowered.assumptions
        self.launcher = launcher
        self._source = source
        self._noalias = self.lowered.noalias
        self._signature = Signature(self.name, source.parameters)
        self._arrays = [p for p in source.parameters if p.buffer is not None]
        self._packers = {p.name: Packer(lowered.layouts.get(p.name, _plain(p)), p.dtype) for p in self._arrays}
        self._bounds = {p.name: p.bounds for p in source.parameters if p.bounds is not None}

    @property
    def source(self) -> Source:
        """The generated text, with its parameters."""
        return self._source

    @property
    def buffers(self) -> dict[str, BufferInfo]:
        """Each array parameter, by name."""
        return {p.name: self._info(p) for p in self._arrays}

    def _info(self, parameter: Parameter) -> BufferInfo:
        assert parameter.buffer is not None
        layout = self._packers[parameter.name].layout
        composed: IndexMap | None = None
        for step in layout.steps:
            composed = step.index_map if composed is None else step.index_map.compose(composed)
        logical, physical = (_numbers(shape) for shape in (layout.logical_shape, parameter.buffer.shape))
        return BufferInfo(parameter.name, parameter.dtype, logical, physical, composed, layout.steps, parameter.writes)

    @property
    def may_differ(self) -> bool:
        """Whether results may differ from the interpreter's, within an enclosure."""
        return self.inexact.meets(self.lowered)

    def enclosed(
        self, arrays: Mapping[str, Array], numbers: Mapping[str, int | float], *, limit: int, cells: Cells | None = None
    ) -> dict[str, Enclosed]:
        """The bounds of the results of a call on logical arrays, by parameter, in logical layout.

        With `cells`, those of these logical elements of some parameters alone, in order. Raises NoEnclosureError where
        the program has no enclosure, LayoutproofError past `limit` iterations.
        """
        symbols = {name: int(number) for name, number in numbers.items()}
        physical = {p.name: self._packers[p.name].pack(arrays[p.name], symbols) for p in self._arrays}
        arguments = {**physical, **numbers}
        if cells is not None:
            places = {name: [self._place(name, index, symbols) for index in chosen] for name, chosen in cells.items()}
            return enclose(self.lowered, arguments, self.inexact, limit=limit, cells=places)
        found = enclose(self.lowered, arguments, self.inexact, limit=limit)
        return {
            name: Enclosed(*(self._packers[name].unpack(end, symbols) for end in (between.low, between.high)))
            for name, between in found.items()
        }

    def _place(self, name: str, index: tuple[int, ...], symbols: Mapping[str, int]) -> tuple[int, ...]:
        """The physical index of a logical one."""
        packer = self._packers[name]
        for step in packer.layout.steps:
            index = step.index_map.evaluate(index, symbols)
        box, shape = packer.shapes(symbols)[-1], self.physical_shape(name, symbols)
        return tuple(int(i) for i in np.unravel_index(int(np.ravel_multi_index(index, box)), shape)) if index else ()

    def physical_shape(self, name: str, symbols: Mapping[str, int]) -> tuple[int, ...]:
        """The physical shape of a parameter for known symbols. Raises KeyError for an unknown parameter."""
        parameter = self._signature.by_name[name]
        assert parameter.buffer is not None
        return tuple(int(evaluate(extent, symbols)) for extent in parameter.buffer.shape)

    def __repr__(self) -> str:
        return f"<kernel {self._signature}>"

    def __call__(self, *arguments: object, **named: object) -> Array | tuple[Array, ...]:
        """Run on logical arrays; gives the arrays of written parameters: one as itself, several as a tuple.

        Takes the inputs in order (parameters that are not written, or are read before they are written), or all
        parameters; any by name. An output that is given is written to and returned. Scalars in a shape may be omitted.
        Raises LayoutproofError for an argument that does not fit (LP420 to LP429) and for symbols that violate a
        precondition (LP431), before anything runs.
        """
        given = self._signature.assign(arguments, named)
        symbols = Symbols(self._bounds)
        logical = self._take(given, symbols, "logical")
        if self._noalias:
            # Packing makes copies, which no longer show that the arrays given were one.
            check_overlap([(p.name, logical[p.name], p.writes) for p in self._arrays if p.name in logical])
        physical: dict[str, Array] = {}
        for parameter in self._arrays:
            physical[parameter.name] = self._physical(parameter, logical.get(parameter.name), symbols)
        self._run(physical, given, symbols)
        results = [self._result(p, logical.get(p.name), physical[p.name], symbols) for p in self._arrays if p.writes]
        return results[0] if len(results) == 1 else tuple(results)

    def raw(self, *arguments: object, **named: object) -> None:
        """Run on physical arrays, in place: all in order of the parameters, or by name. Raises as a call does."""
        given = self._signature.assign(arguments, named, every_array=True)
        symbols = Symbols(self._bounds)
        physical = self._take(given, symbols, "physical")
        self._run(physical, given, symbols)

    def _take(self, given: Mapping[str, object], symbols: Symbols, kind: str) -> dict[str, Array]:
        """The arrays given, checked; binds the symbols that they and the scalars determine."""
        arrays: dict[str, Array] = {}
        for parameter in self.source.parameters:
            if parameter.name not in given:
                continue
            if parameter.buffer is None:
                value = scalar_value(parameter, given[parameter.name])
                if parameter.dtype.is_integer:
                    symbols.bind(parameter.name, int(value), f"the argument {parameter.name}")
                continue
            array = as_array(parameter.name, given[parameter.name], written=parameter.writes)
            check_array(parameter.name, array, parameter.dtype, written=parameter.writes)
            symbols.match(
                parameter.name,
                kind,
                self._extents(parameter, kind),
                split_lanes(parameter.name, array, parameter.dtype),
            )
            arrays[parameter.name] = array
        for parameter in self._arrays:
            # An array is all the memory that there is: another start would lead out of it.
            if parameter.buffer is not None:
                symbols.start(parameter.name, parameter.buffer.elem_offset)
        check_requirements(self.name, self.assumptions, symbols)
        for name, array in arrays.items():
            parameter = self._signature.by_name[name]
            symbols.check(name, kind, self._extents(parameter, kind), split_lanes(name, array, parameter.dtype))
        self.launcher.check(symbols)
        return arrays

    def _extents(self, parameter: Parameter, kind: str) -> Sequence[Any]:
        assert parameter.buffer is not None
        return parameter.buffer.shape if kind == "physical" else self._packers[parameter.name].layout.logical_shape

    def _physical(self, parameter: Parameter, logical: Array | None, symbols: Symbols) -> Array:
        """The array for the target: the user's own where its layout is the logical one, else a new one."""
        packer = self._packers[parameter.name]
        if logical is not None:
            return packer.pack(logical, symbols.values) if packer.layout.steps else logical
        assert parameter.buffer is not None
        shape = tuple(symbols.evaluate(extent, parameter.name) for extent in parameter.buffer.shape)
        try:
            return np.full(
                lane_shape(shape, parameter.dtype), poison(parameter.dtype), dtype=numpy_dtype(parameter.dtype)
            )
        except (MemoryError, ValueError) as problem:
            message = f"there is no memory for {parameter.name}, {list(shape)} elements of {parameter.dtype}"
            raise error(codes.ARGUMENT_SHAPE, f"{message}: {problem}") from problem

    def _result(self, parameter: Parameter, logical: Array | None, physical: Array, symbols: Symbols) -> Array:
        packer = self._packers[parameter.name]
        if not packer.layout.steps:
            return physical
        found = packer.unpack(physical, symbols.values)
        if logical is None:
            return found
        logical[...] = found
        return logical

    def _run(self, arrays: Mapping[str, Array], given: Mapping[str, object], symbols: Symbols) -> None:
        if self._noalias:
            check_overlap([(p.name, arrays[p.name], p.writes) for p in self._arrays])
        elif self.launcher.copies:
            check_apart([(p.name, arrays[p.name], p.writes) for p in self._arrays])
        scalars = [p for p in self.source.parameters if p.buffer is None]
        self.launcher.launch(arrays, {p.name: self._scalar(p, given, symbols) for p in scalars})

    def _scalar(self, parameter: Parameter, given: Mapping[str, object], symbols: Symbols) -> int | float:
        if parameter.name in given:
            return scalar_value(parameter, given[parameter.name])
        return symbols.value(parameter.name, self.name)


def _plain(parameter: Parameter) -> Layout:
    assert parameter.buffer is not None
    return Layout(parameter.buffer.shape)


def _numbers(extents: Sequence[Any]) -> tuple[int | str, ...]:
    return tuple(extent_text(e) if free_variables(e) else int(evaluate(e, {})) for e in extents)

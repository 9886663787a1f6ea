"""Readable C11 from a lowered, flattened function: one C function, with a header for C programs.

The generated function returns 0, or an error code if it did nothing (out of memory, overlapping arguments, an extent
out of its bounds). Undefined behaviour (division by zero, too wide a shift, a float out of an integer's range, an
access out of bounds) is not checked at run time: the proof excludes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from layoutproof.ir import interval
from layoutproof.ir.dtype import Kind
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.codegen.c_arithmetic import Integers
from layoutproof.lowering.codegen.c_check import check_c
from layoutproof.lowering.codegen.c_expr import Expressions
from layoutproof.lowering.codegen.c_helpers import helper_text
from layoutproof.lowering.codegen.c_stmt import Statements, describe
from layoutproof.lowering.codegen.c_stream import write_tile
from layoutproof.lowering.codegen.c_types import Binding, CType, Fragment, int_literal, loaded, storage_type, value_type
from layoutproof.lowering.codegen.calling_convention import Bounds, MemoryMap, Parameter, parameters_of
from layoutproof.lowering.codegen.requirements import (
    NOTHING_ASSUMED,
    Contract,
    Requirement,
    is_expressible,
    write_requirement,
)
from layoutproof.lowering.codegen.writer import Names, Writer, entry_name, inside_comment

FLAGS = ("-std=c11", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing", "-fno-tree-slp-vectorize")
"""What the generated text needs from a compiler to mean what the program means; none of it is a fast-math assumption.

The last is for GCC (12, at `-O3`): where it joins statements, not iterations, to vectors it takes `(double)(float)x`
for `x`, and `(int64_t)(int8_t)x >> 37` for a shift by 5. Loops keep their lanes, and vectors of the program are vectors
of the text.
"""

ERRORS: Mapping[int, tuple[str, str]] = {
    1: ("LP_NO_MEMORY", "out of memory"),
    2: ("LP_OVERLAP", "two buffers overlap and one of them is written"),
    3: ("LP_BAD_EXTENT", "an extent or a scalar is not as assumed"),
}
"""Return values other than 0: their names in C and what they mean."""

_MACROS: Mapping[str, str] = {
    "LP_PARALLEL_FOR": "omp parallel for",
    "LP_PARALLEL": "omp parallel",
    "LP_FOR": "omp for nowait",
    "LP_SIMD": "omp simd",
    "LP_ATOMIC_WRITE": "omp atomic write",
}


_WIDTH = 120  # a longer signature has one parameter a line


@dataclass(frozen=True, slots=True)
class CSource:
    """Generated C: the text of the `.c` and the `.h` file, the function's name and its parameters in order."""

    text: str
    header: str
    entry: str
    parameters: tuple[Parameter, ...]
    index_bits: int
    uses_openmp: bool


def emit_c(
    func: PrimFunc,
    *,
    index_bits: int | None = None,
    bounds: Bounds | None = None,
    notes: Mapping[str, str] | None = None,
    contract: Contract = NOTHING_ASSUMED,
) -> CSource:
    """The C of a function without blocks, whose buffers are accessed with one index.

    `index_bits` is the width of index arithmetic; by default 32 where every index is shown to fit, else 64. `bounds`
    are the least and largest values of scalar parameters and shape symbols by name (a symbol is at least 0); the
    function refuses others. `notes` are remarks by buffer name for the comment on the parameters, such as the layout.
    `contract` holds the preconditions of the proofs: the function refuses symbols that do not meet a requirement; the
    comment lists what is left to the caller. Raises LayoutproofError (LP401 to LP403) for what C cannot express, LP404
    for a program nested too deeply.
    """
    remarks = notes if notes is not None else {}
    memory = check_c(func)
    limits = bounds if bounds is not None else {}
    if index_bits is None:
        first = _Emission(func, memory, limits, CType.I32, contract)
        if not first.overflows:
            return first.source(remarks, 32)
        index_bits = 64
    index_type = CType.I64 if index_bits == 64 else CType.I32
    return _Emission(func, memory, limits, index_type, contract).source(remarks, index_bits)


class _Emission:
    """One attempt at writing a function, with one index type."""

    def __init__(
        self, func: PrimFunc, memory: MemoryMap, bounds: Bounds, index_type: CType, contract: Contract
    ) -> None:
        self.func = func
        self.contract = contract
        self.entry = entry_name(func.name)
        self.names = Names((self.entry,))
        self.expressions = Expressions(memory, Integers(index_type))
        self.parameters = tuple(
            replace(p, c_name=self.names.declare(p.name)) for p in parameters_of(func, memory, bounds)
        )
        self.body = Writer(depth=1)
        self.statements = Statements(self.expressions, self.body, self.names, func.noalias, tiles=write_tile)
        self._declare()
        self._check_arguments()
        start = Writer(depth=1)
        self.statements.writer = start
        self.statements.emit(func.body)
        if self.statements.may_fail:
            self.body.line("int error = LP_OK;")
        code = self.body.text() + start.text()
        unused = (p.c_name for p in self.parameters if p.buffer is None and re.search(rf"\b{p.c_name}\b", code) is None)
        self.code = "".join(f"    (void){name};\n" for name in unused) + code

    @property
    def overflows(self) -> bool:
        """Whether some index may not fit 32 bits."""
        return self.expressions.integers.overflows

    def _declare(self) -> None:
        for parameter in self.parameters:
            if parameter.buffer is not None:
                self.expressions.pointers[parameter.buffer.data.name] = parameter.c_name
                if not parameter.reads and not parameter.writes:
                    self.body.line(f"(void){parameter.c_name};")
            else:
                scalar = loaded(parameter.c_name, parameter.dtype, self.expressions.helpers, parameter.bounds)
                self.expressions.variables[parameter.name] = scalar
                if parameter.dtype.kind is Kind.INT:
                    self.expressions.index_names.add(parameter.name)

    def _check_arguments(self) -> None:
        for parameter in self.parameters:
            for test in _limits(parameter):
                with self.body.nested(f"if ({test})"):
                    self.body.line("return LP_BAD_EXTENT;")
        names = self._integers()
        for requirement in self.contract.requirements:
            if is_expressible(requirement, names) and not self._is_limit(requirement):
                self.expressions.helpers.update(write_requirement(requirement, names, self.body))
        if self.func.noalias:
            buffers = [p for p in self.parameters if p.buffer is not None]
            for position, a in enumerate(buffers):
                for b in buffers[position + 1 :]:
                    if a.writes or b.writes:
                        self._check_overlap(a, b)

    def _is_limit(self, requirement: Requirement) -> bool:
        """Whether the bounds of a parameter imply it."""
        limit = requirement.least
        return limit is not None and any(
            p.name == limit[0] and p.bounds is not None and p.bounds.low >= limit[1] for p in self.parameters
        )

    def _integers(self) -> dict[str, str]:
        """The C names of the parameters that are whole numbers or truth values."""
        return {p.name: p.c_name for p in self.parameters if p.buffer is None and not p.dtype.is_float}

    def _check_overlap(self, a: Parameter, b: Parameter) -> None:
        self.expressions.helpers.add("lp_overlap")
        with self.body.nested(f"if (lp_overlap({a.c_name}, {self._bytes(a)}, {b.c_name}, {self._bytes(b)}))"):
            self.body.line("return LP_OVERLAP;")

    def _bytes(self, parameter: Parameter) -> str:
        assert parameter.buffer is not None
        count = self.statements.element_count(parameter.buffer)
        width = parameter.dtype.element.bytes
        size = Fragment(str(width), Binding.PRIMARY, CType.I32, interval.point(width))
        if count.range.low == count.range.high:
            return str(count.range.low * width)
        return self.expressions.integers.index_product(count, size).text

    def _signature(self, restrict: bool) -> str:
        arguments = [self._argument(p, restrict) for p in self.parameters] or ["void"]
        whole = f"int {self.entry}({', '.join(arguments)})"
        return whole if len(whole) <= _WIDTH else f"int {self.entry}(\n    " + ",\n    ".join(arguments) + ")"

    def _argument(self, parameter: Parameter, restrict: bool) -> str:
        storage = storage_type(parameter.dtype)
        if parameter.buffer is None:
            return f"{storage} {parameter.c_name}"
        const = "" if parameter.writes else "const "
        return f"{const}{storage} *{'restrict ' if restrict and self.func.noalias else ''}{parameter.c_name}"

    def _comment(self, notes: Mapping[str, str], title: str) -> Iterator[str]:
        yield "/*"
        yield f" * {inside_comment(title)}"
        yield " *"
        width = max((len(p.c_name) for p in self.parameters), default=0)
        for parameter in self.parameters:
            yield f" *   {parameter.c_name:<{width}}  {inside_comment(describe_parameter(parameter, notes))}"
        yield " *"
        overlap = " and do not overlap where one of them is written" if self.func.noalias else ""
        yield f" * Buffers are row-major{overlap}."
        names = self._integers()
        left = [r.text for r in self.contract.requirements if not is_expressible(r, names)]
        for title, texts in (
            ("Checked at every call", [r.text for r in self.contract.requirements if r.text not in left]),
            ("Preconditions that are not checked", [*left, *self.contract.promises]),
        ):
            yield from [f" * {title}:", *(f" *   {inside_comment(text)}" for text in texts)] if texts else []
        yield f" * Returns 0, or {', '.join(f'{code}: {meaning}' for code, (_, meaning) in ERRORS.items())}."
        yield " */"

    def source(self, notes: Mapping[str, str], index_bits: int) -> CSource:
        """The finished text."""
        title = f"{self.func.name}: generated by layoutproof, C11. Compile with {' '.join(FLAGS)}, link with -lm."
        lines = list(self._comment(notes, title))
        headers = ("float", "math", "stdbool", "stddef", "stdint", "stdlib", "string")
        lines += [f"#include <{name}.h>" for name in headers]
        lines += ["", _PREAMBLE, *self._macros(), ""]
        helpers = helper_text(self.expressions.helpers)
        lines += [helpers, ""] if helpers else []
        text = "\n".join(lines) + f"\n{self._signature(restrict=True)} {{\n{self.code}{self._ending()}}}\n"
        openmp = bool(self.statements.macros & set(_MACROS))
        return CSource(text, self._header(notes), self.entry, self.parameters, index_bits, openmp)

    def _ending(self) -> str:
        return f"    return {'error' if self.statements.may_fail else 'LP_OK'};\n"

    def _macros(self) -> Iterator[str]:
        used = sorted(self.statements.macros)
        if used:
            yield "\n#define LP_PRAGMA(text) _Pragma(#text)"
        openmp = [name for name in used if name in _MACROS]
        if openmp:
            yield "#if defined(_OPENMP)"
            yield from (f"#define {name} LP_PRAGMA({_MACROS[name]})" for name in openmp)
            yield "#else"
            yield from (f"#define {name}" for name in openmp)
            yield "#endif"
        if "LP_UNROLL" in used:
            yield "#if defined(__clang__)"
            yield "#define LP_UNROLL(times) LP_PRAGMA(unroll times)"
            yield "#elif defined(__GNUC__)"
            yield "#define LP_UNROLL(times) LP_PRAGMA(GCC unroll times)"
            yield "#else"
            yield "#define LP_UNROLL(times)"
            yield "#endif"

    def _header(self, notes: Mapping[str, str]) -> str:
        guard = f"LAYOUTPROOF_{self.entry.upper()}_H"
        lines = [f"#ifndef {guard}", f"#define {guard}", "", "#include <stdint.h>", ""]
        lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
        lines += self._comment(notes, f"{self.func.name}: generated by layoutproof.")
        lines += [f"{self._signature(restrict=False)};", ""]
        lines += ["#ifdef __cplusplus", "}", "#endif", "", "#endif"]
        return "\n".join(lines) + "\n"


def _limits(parameter: Parameter) -> Iterator[str]:
    """C conditions that are true where a scalar is out of its bounds."""
    if parameter.bounds is None or not parameter.dtype.is_integer:
        return
    whole, ctype = interval.of_type(parameter.dtype), value_type(parameter.dtype)
    if parameter.bounds.low > whole.low:
        yield f"{parameter.c_name} < {int_literal(parameter.bounds.low, ctype)}"
    if parameter.bounds.high < whole.high:
        yield f"{parameter.c_name} > {int_literal(parameter.bounds.high, ctype)}"


def describe_parameter(parameter: Parameter, notes: Mapping[str, str]) -> str:
    """A parameter for a comment: its type, what is done with it, and the remark on it."""
    if parameter.buffer is None:
        return f"{parameter.dtype}, {'an extent' if parameter.is_symbol else 'a scalar'}"
    roles = [word for word, holds in (("read", parameter.reads), ("written", parameter.writes)) if holds]
    role = " and ".join(roles) if roles else "unused"
    note = notes.get(parameter.name)
    return f"{describe(parameter.buffer)}, {role}" + (f"; {note}" if note is not None else "")


_names = ", ".join(["LP_OK", *(f"{name} = {code}" for code, (name, _) in ERRORS.items())])
_PREAMBLE = f"""#if FLT_EVAL_METHOD == 1 || FLT_EVAL_METHOD == 2
#error "every operation must round in its own type; on 32-bit x86 compile with -msse2 -mfpmath=sse"
#endif

#if defined(__GNUC__)
/* The text says what the program says, comparisons that are always true included. */
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wtype-limits"
#endif

enum {{ {_names} }};"""

"""Operators of studies: program templates with the places where layouts pad them, from the library or from a file.

A template is text in the script syntax with `$` places: the element type, the extents, and what the entry of
`programs/operators.toml` puts in. An operator says of each buffer's axes and each block's variables which of them a
layout pads, with one letter each.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import DType
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.studies import codes

TYPES: tuple[str, ...] = ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32")
"""The element types of studies. The programs have no 8-bit floats."""
ROWS, COLUMNS, HALO_COLUMNS = 2, 14, 12
"""The extents where a study fixes them: 14 is padded by every layout, and a halo of 12 fits between offsets of 2."""
SYMBOLS = ("m", "n")
LETTERS = "rnh."

Sizes = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Operator:
    """A program template. `buffers` and `blocks` have a letter for each axis and each variable of a block: `n` is
    padded by every layout, `r` by those with two padded axes, `h` is an axis with a halo, `.` is never padded.
    `outputs` are written, `temporaries` allocated, the padding of `anything` always holds anything. `text` is the
    template; `places` what stands in it. With `sizes` the template is a program of its own, with these extents or none.
    """

    name: str
    about: str
    text: str
    types: tuple[str, ...]
    buffers: Mapping[str, str]
    blocks: Mapping[str, str]
    outputs: tuple[str, ...]
    temporaries: tuple[str, ...] = ()
    anything: tuple[str, ...] = ()
    wide: str | None = None
    halo: bool = False
    places: Mapping[str, str] = field(default_factory=dict)
    own: bool = False

    @property
    def inputs(self) -> tuple[str, ...]:
        """The buffers that are only read and have an axis that layouts may pad."""
        written = (*self.outputs, *self.temporaries)
        return tuple(name for name, axes in self.buffers.items() if name not in written and set(axes) & set("nh"))

    @property
    def padded_outputs(self) -> tuple[str, ...]:
        """The outputs that every layout pads."""
        return tuple(name for name in self.outputs if set(self.buffers[name]) & set("nh"))

    def sizes(self, shape: str) -> Sizes | None:
        """The extents of a shape: `fixed`, `symbolic` (None), or numbers such as `3x30`."""
        if shape == "symbolic":
            return None
        if shape == "fixed":
            return {"m": ROWS, "n": HALO_COLUMNS if self.halo else COLUMNS}
        rows, columns = shape.split("x")
        return {"m": int(rows), "n": int(columns)}

    def program(self, dtype: str, sizes: Sizes | None) -> PrimFunc:
        """The program for a type and extents, or for all extents."""
        if self.own:
            return loads(self.text, f"{self.name}.py")
        return loads(self.script(dtype, sizes), f"{self.name}.py")

    def script(self, dtype: str, sizes: Sizes | None) -> str:
        """The program's text."""
        wide = self.wide if self.wide is not None else dtype
        numbers = {name: name if sizes is None else str(sizes[name]) for name in SYMBOLS}
        declared = [f"{name} = T.int32()" for name in SYMBOLS if sizes is None and f"${name}" in self.text]
        count = f"T.{dtype}({numbers['n']})" if sizes is not None else f'T.Cast("{dtype}", n)'
        simple = {"T": dtype, "W": wide, "name": self.name.replace("-", "_"), "count": count}
        values = {**simple, **numbers, **ends_of(DType.parse(dtype))}
        inner = {key: Template(text).substitute(values) for key, text in self.places.items()}
        sized = {"sizes": "\n    ".join(declared)}
        text = Template(self.text).substitute({**values, **inner, **sized})
        return "".join(line for line in text.splitlines(keepends=True) if line.strip())


def ends_of(dtype: DType) -> Mapping[str, str]:
    """What stands for the ends of a type in a template: the value below (above) all others, and all bits set."""
    if dtype.is_float:
        return {"lowest": f'T.{dtype}("-inf")', "highest": f'T.{dtype}("inf")', "ones": f"T.{dtype}(0)"}
    ones = -1 if dtype.min_int < 0 else dtype.max_int
    return {
        "lowest": f"T.{dtype}({dtype.min_int})",
        "highest": f"T.{dtype}({dtype.max_int})",
        "ones": f"T.{dtype}({ones})",
    }


@cache
def library() -> Mapping[str, Operator]:
    """The operators that come with the tool, by name, in the order of their file."""
    folder = files("layoutproof.studies") / "programs"
    table = tomllib.loads((folder / "operators.toml").read_text(encoding="utf-8"))
    return {name: _entry(name, given, folder) for name, given in table.items()}


def _entry(name: str, given: Mapping[str, Any], folder: Any) -> Operator:
    return Operator(
        name,
        given["about"],
        (folder / f"{given['program']}.tmpl").read_text(encoding="utf-8"),
        _types(given["types"]),
        given["buffers"],
        given["blocks"],
        tuple(given["outputs"]),
        tuple(given.get("temporaries", ())),
        tuple(given.get("anything", ())),
        given.get("wide"),
        given.get("halo", False),
        given.get("with", {}),
    )


def _types(given: str | list[str]) -> tuple[str, ...]:
    if given == "any":
        return TYPES
    if given in ("float", "int"):
        return tuple(name for name in TYPES if DType.parse(name).is_float is (given == "float"))
    return tuple(given)


def operator_of_text(
    name: str, text: str, buffers: Mapping[str, str], blocks: Mapping[str, str], outputs: tuple[str, ...]
) -> Operator:
    """A user's program as an operator. Raises LayoutproofError for text that is no program, for a buffer or a block
    that it does not have, and for letters that do not fit.
    """
    func = loads(text, name)
    known = {buffer.name: buffer.rank for buffer in func.buffers}
    for buffer, axes in buffers.items():
        _check_letters(name, buffer, axes, known)
    for output in outputs:
        if output not in known:
            raise error(codes.OPERATOR, f"{name} has no output {output}; its parameters are {', '.join(known)}")
    dtypes = tuple(dict.fromkeys(str(b.dtype.element) for b in func.buffers if b.name in buffers))
    return Operator(name, f"the program {name}", text, dtypes, buffers, blocks, outputs, own=True)


def text_of_call(path: Path, call: str | None) -> str:
    """The program of a call in an ONNX model, by the name of its function, or of its only one. Raises LayoutproofError
    for a file that is not read as a model, and where there is no such call.
    """
    from layoutproof.graph.model.graph import Call
    from layoutproof.importers.onnx.convert import graph_of
    from layoutproof.importers.onnx.onnx_model import read_model
    from layoutproof.ir.script.printer import print_func

    steps = graph_of(read_model(path)).steps
    functions = {step.function.name: step.function for step in steps if isinstance(step, Call)}
    name = next(iter(functions)) if call is None and len(functions) == 1 else call
    if name not in functions:
        message = f"{path} has no call {call}" if call is not None else f"{path} has {len(functions)} calls"
        raise error(codes.OPERATOR, message, help=f"`call` is one of {', '.join(functions) or 'none'}")
    return print_func(functions[name])


def _check_letters(name: str, given: str, letters: str, known: Mapping[str, int]) -> None:
    if given not in known:
        raise error(codes.OPERATOR, f"{name} has no buffer {given}; it has {', '.join(known)}")
    if not re.fullmatch(f"[{re.escape(LETTERS)}]*", letters) or len(letters) != known[given]:
        message = f"{name}: buffer {given} takes {known[given]} of the letters `{LETTERS}`, not {letters!r}"
        raise error(codes.OPERATOR, message, help="n: padded; r: padded by layouts of two axes; h: a halo; .: neither")

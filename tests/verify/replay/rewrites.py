"""Rewrites for the tests of replays: a program re-laid by the pass, with a change made in the text of the result."""

from __future__ import annotations

from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite, Witness
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.layout.pad_value import PadText
from layoutproof.lowering.layout.transform_layout import relay
from layoutproof.lowering.passes.find import find_buffer


def func(parameters: str, body: str, *, noalias: bool = True) -> PrimFunc:
    """A function of the given parameters, such as `A: f32[3, 14], B: f32[3]`, and body lines."""
    types = {
        "f16": "float16",
        "bf16": "bfloat16",
        "f32": "float32",
        "f64": "float64",
        "i32": "int32",
        "i8": "int8",
        "bool": "bool",
    }
    given = []
    for parameter in parameters.split("; "):
        name, _, rest = parameter.partition(": ")
        kind, _, shape = rest.rstrip("]").partition("[")
        axes = shape.split(", ") if shape else []
        quoted = ", ".join(axis if axis.isdigit() else f'"{axis}"' for axis in axes)
        given.append(f'{name}: T.Buffer(({quoted},), "{types[kind]}")' if axes else f"{name}: T.{types[kind]}")
    symbols = dict.fromkeys(
        axis
        for p in parameters.split("; ")
        for axis in p.partition("[")[2].rstrip("]").split(", ")
        if axis.isidentifier()
    )
    lines = [f"{s} = T.int32()" for s in symbols]
    if noalias:
        lines.append('T.func_attr({"tirx.noalias": True})')
    lines += [line for line in body.strip("\n").split("\n") if line.strip()]
    text = f"@T.prim_func\ndef main({', '.join(given)}):\n" + "".join(f"    {line}\n" for line in lines)
    return loads(text, "case.py")


def relaid(
    old: PrimFunc, buffer: str, index_map: str, pad: PadText = None, *, change: tuple[str, str] | None = None
) -> Rewrite:
    """The re-laying of a buffer; `change` replaces a piece of the new program's text, which must be there."""
    rewrite = relay(old, find_buffer(old, buffer), parse_index_map(index_map), pad)
    if change is None:
        return rewrite
    text = print_func(rewrite.new)
    assert change[0] in text, text
    return Rewrite(old, loads(text.replace(*change), "changed.py"), rewrite.witness)


def pair(old: PrimFunc, new: PrimFunc) -> Rewrite:
    """A rewrite that moves no cell."""
    return Rewrite(old, new, Witness(()))

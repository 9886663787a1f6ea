"""Which notation a text is in, told from its form, and reading it: all notations but isl's, which needs a library."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import Source, error
from layoutproof.ir.notations.layout_strings import layout_map
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.notations.notation import Context, Notation, WrittenLayout, whole
from layoutproof.ir.visit import free_variables

Reader = Callable[[str, Context, str], WrittenLayout]

_WORDS = re.compile(r"\s*(\w+)\s*->\s*(\w+)\s*")
# What a text begins with, or contains; the first that matches tells.
_FORMS: tuple[tuple[Notation, re.Pattern[str]], ...] = (
    (Notation.LAMBDA, re.compile(r"\s*\(*\s*lambda\b")),
    (Notation.MMA, re.compile(r"\s*[A-Z][A-Za-z]*[0-9]*P?_[0-9]+x[0-9]+x")),
    (
        Notation.TRITON,
        re.compile(r"\s*#(?:(?:ttg|triton_gpu)\.)?[a-z_]+\s*<"),
    ),
    (Notation.MLIR, re.compile(r"\s*(?:affine_map|memref|strided)\s*<|.*\binner_tiles\s*=", re.DOTALL)),
    (Notation.XLA, re.compile(r"\s*(?:[a-z]+[0-9]*[a-z0-9]*\[[^\]]*\]\s*)?\{\s*(?:[0-9]|\}|:)")),
    (Notation.ISL, re.compile(r"\s*(?:\[[^\]]*\]\s*->\s*)?\{")),
    (Notation.STRIDES, re.compile(r"\s*(?:shape|size|strides?|offset|storage_offset|itemsize)\s*=(?!=)")),
    (Notation.CUTE, re.compile(r"\s*(?:Sw|Swizzle)\s*<|[^>]*[0-9)}]\s*:\s*[(_\-0-9]", re.DOTALL)),
    (Notation.MLIR, re.compile(r"\s*\(\s*(?:d[0-9]+\s*(?:,|\))|\)).*->\s*\(", re.DOTALL)),
)


def notation_of(text: str) -> Notation:
    """The notation of a text by its form; a lambda, which is the project's own, where it has the form of none."""
    for notation, form in _FORMS:
        if form.match(text):
            return notation
    # Loaded only for a text that has none of these forms.
    from layoutproof.ir.notations.onednn import is_plain, is_tag

    words = _WORDS.fullmatch(text)
    if words is not None:
        # No tag has capitals alone: a block of a dimension stands beside the dimension itself.
        is_tag_pair = not words[1].isupper() and (is_plain(words[1]) or is_plain(words[2]))
        return Notation.ONEDNN if is_tag_pair else Notation.STRING
    if "->" in text:
        return Notation.EINOPS
    return Notation.ONEDNN if is_tag(text.strip()) else Notation.LAMBDA


def _read_lambda(text: str, context: Context, name: str) -> WrittenLayout:
    extents = context.shape if context.shape is not None else ()
    symbols = dict.fromkeys([*context.symbols, *(v for extent in extents for v in free_variables(extent))])
    return WrittenLayout(Notation.LAMBDA, text, parse_index_map(text, name, symbols=symbols), context.shape)


def _read_string(text: str, context: Context, name: str) -> WrittenLayout:
    words = _WORDS.fullmatch(text)
    if words is None:
        message = "two layouts such as NHWC->NCHW4c are expected"
        raise error(codes.NOTATION, message, whole(Source(name, text)))
    return WrittenLayout(Notation.STRING, text, layout_map(words[1], words[2]), context.shape)


# Readers whose file does not have the notation's name.
_ELSEWHERE: Mapping[Notation, tuple[str, str]] = {
    Notation.TRITON: ("triton_encodings", "read_triton"),
    Notation.MMA: ("atoms", "read_atom"),
}


def reader_of(notation: Notation) -> Reader:
    """The reader of a notation other than isl's (`verify/isl/layout_relation.py`), whose file is loaded when it is
    needed.
    """
    if notation is Notation.LAMBDA:
        return _read_lambda
    if notation is Notation.STRING:
        return _read_string
    module, function = _ELSEWHERE.get(notation, (notation.value, f"read_{notation.value}"))
    reader: Reader = getattr(import_module(f"layoutproof.ir.notations.{module}"), function)
    return reader

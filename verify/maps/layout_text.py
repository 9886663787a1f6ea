"""Layouts from text in any notation: the notation is told from the form of the text, or named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import LayoutproofError, Source, error
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.detect import notation_of, reader_of
from layoutproof.ir.notations.notation import Context, Notation, WrittenLayout, whole
from layoutproof.ir.text import expr_text


def read_layout(
    text: str,
    shape: Sequence[Expr] | None = None,
    *,
    axes: Mapping[str, int] | None = None,
    notation: Notation | str | None = None,
    symbols: Sequence[Var] = (),
    name: str = "<layout>",
) -> WrittenLayout:
    """The layout of a text. `shape` is the logical one where the text does not say it; `axes` are lengths of einops'
    axes, `symbols` names that a lambda may use besides those of the shape; `name` stands for the text in messages.

    Raises LayoutproofError, at its place in the text, for one that cannot be read.
    """
    found = notation_of(text) if notation is None else Notation(notation)
    context = Context(None if shape is None else tuple(shape), axes if axes is not None else {}, tuple(symbols))
    if axes and found is not Notation.EINOPS:
        message = f"axes are lengths of an einops pattern, and the text is in the notation {found}"
        raise error(codes.NOTATION_INCOMPLETE, message, whole(Source(name, text)))
    if found is Notation.ISL:
        # It loads what decides by integer sets.
        from layoutproof.verify.isl.layout_relation import read_isl

        return read_isl(text, context, name)
    try:
        return reader_of(found)(text, context, name)
    except LayoutproofError as problem:
        if notation is None and "lambda" not in text and problem.diagnostics[0].code == codes.SYNTAX:
            message = "the text has the form of no notation"
            raise error(codes.NOTATION_INCOMPLETE, message, whole(Source(name, text)), help=_FORMS) from problem
        raise


def total_map(layout: WrittenLayout, name: str = "<layout>") -> IndexMap:
    """The map of a layout that is defined on its whole shape. Raises LayoutproofError for any other."""
    if layout.where is not None:
        where = expr_text(layout.where, "plain")
        message = f"the relation is defined only where `{where}`: a map of the whole shape is needed here"
        raise error(codes.NOTATION_INCOMPLETE, message, whole(Source(name, layout.text)), help=_HELP)
    return layout.index_map


_FORMS = (
    "expected a lambda, such as `lambda i: [i//4, i%4]`, two layouts, such as NHWC->NCHW4c, or a layout of "
    "CuTe, Triton, MLIR, oneDNN, einops, isl, strides or XLA; on the command line --notation names one"
)
_HELP = "`layoutproof layout` compares maps that are defined on a part of their box"

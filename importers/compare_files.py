"""`layoutproof.compare`, which takes functions, and files of programs or of MLIR."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import load, read_text
from layoutproof.ir.text import Style, expr_text
from layoutproof.lowering import codes
from layoutproof.lowering.compare import compare_programs
from layoutproof.lowering.compare.comparison import Comparison
from layoutproof.lowering.compare.stated_layouts import MapLike

if TYPE_CHECKING:
    from layoutproof.importers.mlir.validation import Pair

Given = PrimFunc | str | Path


def compare(
    before: Given,
    after: Given,
    *,
    layouts: Mapping[str, MapLike] | None = None,
    pads: Mapping[str, Any] | None = None,
    match: Mapping[str, str] | None = None,
    where: Expr | str | None = None,
) -> Comparison:
    """Whether `after` does what `before` does, up to the layouts of parameters.

    `before` and `after` are functions, or paths of files. Of two files of MLIR (`.mlir`) the function of the first is
    compared with that of its name in the second, with what MLIR says of their arguments.

    `layouts` says how parameters of `before`, by name, are stored in `after`: an `IndexMap`, a function of the indices,
    text, or two layout strings (`"NHWC->NCHW4c"`). A parameter of one shape in both keeps its layout by default. If
    the shapes differ, and `after` has no layout record, the layout is searched. `pads` are the contracts of padding, as
    `Schedule.transform_layout` takes them; others are searched. Parameters are paired by position, or by `match`, name
    in `after` to name in `before`. `where` is a condition on symbols that callers guarantee.

    Raises LayoutproofError for files that cannot be read, for programs that are not well-formed or whose parameters do
    not correspond, for a layout that is not injective or does not fit, and for unknown names.
    """
    if _is_mlir(before) and _is_mlir(after):
        pair = _pair(str(before), str(after))
        condition = expr_text(where, Style.PLAIN) if isinstance(where, Expr) else where
        return pair.compared(layouts=layouts, where=condition, pads=pads, match=match)
    for name, given in (("before", before), ("after", after)):
        if _is_mlir(given):
            other = "after" if name == "before" else "before"
            raise error(
                codes.ARGUMENT_TYPE, f"compare, argument {name!r} is a file of MLIR; {other!r} has to be one, too"
            )
    first, second = (load(each) if isinstance(each, (str, Path)) else each for each in (before, after))
    return compare_programs.compare(first, second, layouts=layouts, pads=pads, match=match, where=where)


def _is_mlir(given: Given) -> bool:
    return isinstance(given, (str, Path)) and str(given).endswith(".mlir")


def _pair(before: str, after: str) -> Pair:
    from layoutproof.importers.mlir.validation import pair_of_texts

    texts = ((before, read_text(Path(before))), (after, read_text(Path(after))))
    name = _only(texts[0])
    return pair_of_texts(texts, (name, name))


def _only(before: tuple[str, str]) -> str:
    from layoutproof.importers.mlir.validation import functions_of_text

    names = list(functions_of_text(*before))
    if len(names) != 1:
        message = f"{before[0]} has {len(names)} functions: {', '.join(names)}"
        raise error(codes.ARGUMENT_TYPE, message, help="`layoutproof tv` compares each of them; --function names one")
    return names[0]

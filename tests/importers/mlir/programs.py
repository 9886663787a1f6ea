"""Short functions of MLIR for tests, and verdicts on pairs of them."""

from __future__ import annotations

import textwrap

from layoutproof.importers.mlir.validation import pair_of_texts
from layoutproof.lowering.compare.comparison import Comparison
from layoutproof.verify.settings import Settings, within


def function(arguments: str, body: str, results: str = "") -> str:
    """`func.func @f` with these arguments; a body without a return gets one."""
    text = textwrap.indent(textwrap.dedent(body).strip("\n"), "  ")
    end = "" if "return" in text.splitlines()[-1] else "\n  return"
    return f"func.func @f({arguments}){f' -> {results}' if results else ''} {{\n{text}{end}\n}}\n"


def compared(before: str, after: str, may_alias: bool = False) -> Comparison:
    """The comparison of the functions of two texts, bit for bit."""
    files = ("before.mlir", before), ("after.mlir", after)
    pair = pair_of_texts(files, ("f", "f"), may_alias)
    with within(Settings(allowed=frozenset())):
        return pair.compared()

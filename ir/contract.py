"""The value that a padding contract states, read from a layout record's text: a constant, or a function of the physical index.

Source: the seed `layout-transformation-padding-roadmap`, "Defining Padded Values".
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.script.expressions import ExpressionReader, Names
from layoutproof.ir.script.functions import FUNCTIONS, PLAIN_FUNCTIONS, PLAIN_NAMESPACES
from layoutproof.ir.script.parsing import parse_expression
from layoutproof.ir.source import Source


def read_contract(contract: str, box: Buffer, symbols: Iterable[Var] = (), dtype: DType | None = None) -> tuple[tuple[Var, ...], Expr]:
    """The value of a contract's text as an expression over the variables of the physical index, which come with it.

    `box` is the buffer as the record's step left it: its name is that of the contract's own loads. The value is of `dtype`, one element of
    the buffer by default. Raises LayoutproofError for text that cannot be read.
    """
    tree, text = parse_expression(Source("<contract>", contract), "a pad value")
    names = [f"p{axis}" for axis in range(len(box.shape))]
    if isinstance(tree, ast.Lambda):
        names = [argument.arg for argument in (*tree.args.posonlyargs, *tree.args.args)]
        tree = tree.body
    cell = tuple(Var(name) for name in names)
    scope: dict[str, Expr | Buffer] = {box.name: box}
    scope.update((v.name, v) for v in (*symbols, *cell) if v.name not in scope or v in cell)
    reader = ExpressionReader(text, Names(scope), FUNCTIONS, PLAIN_NAMESPACES, PLAIN_FUNCTIONS)
    return cell, reader.expr(tree, box.dtype.element if dtype is None else dtype)

"""Mutants of the program after: one small wrong thing in it, of each kind that transforms get wrong. The judge says
which change results.

python -m tests.attack.compare_mutants --each 30 --workers 2
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import (
    Compare,
    Expr,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Select,
    Var,
    const,
)
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite, Witness
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import Block, BufferStore, Evaluate, For, IfThenElse, Seq, Stmt, seq
from layoutproof.ir.visit import free_variables, map_children, stores_in, substitute, walk
from layoutproof.ir.wellformed import check_wellformed
from tests.attack.mutants import MUTATORS, at_one_place
from tests.lowering.compare.pairs import UPSTREAM, Pair

Change = Callable[[PrimFunc, Random], PrimFunc | None]


@dataclass(frozen=True)
class Mutant:
    """A program with one thing changed, and what kind of thing."""

    kind: str
    func: PrimFunc


def _somewhere(
    func: PrimFunc, rng: Random, fits: Callable[[Node], bool], change: Callable[[Any], Node | None]
) -> PrimFunc | None:
    body = at_one_place(func.body, fits, change, rng)
    return None if body is None else func.with_body(body)


def _of_rewrites(name: str) -> Change:
    """A change of the new program as it is made of rewrites."""

    def change(func: PrimFunc, rng: Random) -> PrimFunc | None:
        made = MUTATORS[name](Rewrite(func, func, Witness(())), rng)
        return None if made is None else made.new

    return change


# ---- conditions


def _is_condition(node: Node) -> bool:
    return isinstance(node, IfThenElse | IfThenElseExpr | Select | Assume) or (
        isinstance(node, Block) and bool(list(_compares(node.where)))
    )


def _compares(expr: Expr) -> Iterator[Compare]:
    return (n for n in walk(expr) if isinstance(n, Compare))


def guard_constant(func: PrimFunc, rng: Random) -> PrimFunc | None:
    """A number in a condition is one more or one less."""

    def in_condition(expr: Expr) -> Expr | None:
        numbers = [n for n in walk(expr) if isinstance(n, IntImm) and not n.dtype.is_bool]
        if not numbers:
            return None
        chosen, step = rng.choice(numbers), rng.choice([1, -1])
        changed = _with_node(expr, chosen, const(chosen.value + step, chosen.dtype))
        return changed if isinstance(changed, Expr) else None

    def change(node: IfThenElse | IfThenElseExpr | Select | Assume | Block) -> Node | None:
        name = "where" if isinstance(node, Block) else "condition"
        changed = in_condition(getattr(node, name))
        return None if changed is None else _with(node, name, changed)

    return _somewhere(func, rng, _is_condition, change)


def _with(node: Node, name: str, value: Expr) -> Node:
    given: dict[str, Any] = {name: value}
    return replace(node, **given)


def _with_node(root: Node, target: Node, by: Node) -> Node:
    """The tree with one of its nodes, found by identity, replaced."""
    return by if root is target else map_children(root, lambda child: _with_node(child, target, by))


def predicate_side(func: PrimFunc, rng: Random) -> PrimFunc | None:
    """A guard holds where it did not, or the sides of a choice change places; an `and` is an `or`."""

    def change(node: IfThenElse | IfThenElseExpr | Select | Logical) -> Node | None:
        if isinstance(node, Logical):
            other = next(op for op in type(node.op) if op is not node.op)
            return replace(node, op=other)
        return replace(node, condition=Not(node.condition))

    return _somewhere(func, rng, lambda n: isinstance(n, IfThenElse | IfThenElseExpr | Select | Logical), change)


# ---- values


def pad_value(func: PrimFunc, rng: Random) -> PrimFunc | None:
    """A constant that is stored, or that is one side of a choice, is another one."""

    def other(value: Expr) -> Expr | None:
        if isinstance(value, FloatImm):
            return const(rng.choice([v for v in (0.0, -0.0, 1.0, -1.0) if str(v) != str(value.value)]), value.dtype)
        return const(value.value + 1, value.dtype) if isinstance(value, IntImm) and not value.dtype.is_bool else None

    def change(node: BufferStore | IfThenElseExpr | Select) -> Node | None:
        names = ("value",) if isinstance(node, BufferStore) else ("then", "otherwise")
        for name in rng.sample(names, len(names)):
            changed = other(getattr(node, name))
            if changed is not None:
                return _with(node, name, changed)
        return None

    return _somewhere(func, rng, lambda n: isinstance(n, BufferStore | IfThenElseExpr | Select), change)


def wrong_axis(func: PrimFunc, rng: Random) -> PrimFunc | None:
    """An index is computed from another loop: the wrong reduction axis, a row for a column."""

    def change(node: BufferLoad | BufferStore) -> Node | None:
        own = {v for i in node.indices for v in free_variables(i)}
        axes = [k for k, i in enumerate(node.indices) if free_variables(i)]
        others = [v for v in variables if v not in own] or list(own)
        if not axes or not others:
            return None
        axis, by = rng.choice(axes), rng.choice(others)
        index = node.indices[axis]
        var = rng.choice(sorted(free_variables(index), key=lambda v: v.name))
        if by is var or by.dtype != var.dtype:
            return None
        indices = (*node.indices[:axis], substitute(index, {var: by}), *node.indices[axis + 1 :])
        return replace(node, indices=indices)

    blocks = [v.var for n in walk(func.body) if isinstance(n, Block) for v in n.iter_vars]
    variables: list[Var] = blocks if blocks else [n.var for n in walk(func.body) if isinstance(n, For)]
    return _somewhere(func, rng, lambda n: isinstance(n, BufferLoad | BufferStore), change)


# ---- statements


def init_dropped(func: PrimFunc, rng: Random) -> PrimFunc | None:
    """A block has no init any more."""
    return _somewhere(func, rng, lambda n: isinstance(n, Block) and n.init is not None, lambda b: replace(b, init=None))


def init_late(func: PrimFunc, rng: Random) -> PrimFunc | None:
    """What stands before another statement stands behind it."""

    def change(node: Seq) -> Node | None:
        if len(node.body) < 2:
            return None
        k = rng.randrange(len(node.body) - 1)
        body = list(node.body)
        body[k], body[k + 1] = body[k + 1], body[k]
        return seq(*body)

    return _somewhere(func, rng, lambda n: isinstance(n, Seq), change)


def loop_reversed(func: PrimFunc, rng: Random) -> PrimFunc | None:
    """A loop runs backwards, so that what depends on the order of its iterations comes out otherwise."""

    def change(loop: For) -> Node | None:
        last = loop.start + (loop.extent - const(1, loop.var.dtype))
        return replace(loop, body=_substituted(loop.body, loop.var, last - (loop.var - loop.start)))

    return _somewhere(func, rng, lambda n: isinstance(n, For), change)


def _substituted(stmt: Stmt, var: Var, by: Expr) -> Stmt:
    def visit(node: Node) -> Node:
        return by if node is var else map_children(node, visit)

    changed = visit(stmt)
    assert isinstance(changed, Stmt)
    return changed


def assumption_dropped(func: PrimFunc, rng: Random) -> PrimFunc | None:
    """The program does not say any more what it assumes."""

    def is_assumption(node: Node) -> bool:
        return isinstance(node, Evaluate) and isinstance(node.value, Assume)

    return _somewhere(func, rng, is_assumption, lambda e: Evaluate(const(0)))


KINDS: Mapping[str, Change] = {
    "guard constant": guard_constant,
    "predicate side": predicate_side,
    "index swap": _of_rewrites("indices_swapped"),
    "index off by one": _of_rewrites("index_off"),
    "pad value": pad_value,
    "dropped init": init_dropped,
    "moved init": init_late,
    "init in a loop": _of_rewrites("init_moved"),
    "< for <=": _of_rewrites("comparison_changed"),
    "operand swap": _of_rewrites("operands_swapped"),
    "lost store": _of_rewrites("store_lost"),
    "wrong axis": wrong_axis,
    "loop order": _of_rewrites("loops_swapped"),
    "loop reversed": loop_reversed,
    "stage order": _of_rewrites("stages_swapped"),
    "loop bound": _of_rewrites("extent_changed"),
    "constant": _of_rewrites("constant_changed"),
    "operation": _of_rewrites("operation_changed"),
    "cast": _of_rewrites("rounded"),
    "other buffer": _of_rewrites("buffer_changed"),
    "lost guard": _of_rewrites("guard_dropped"),
    "lost assumption": assumption_dropped,
}


def mutants(
    func: PrimFunc, seed: int, count: int, beside: PrimFunc | None = None, among: Sequence[str] = tuple(KINDS)
) -> Iterator[tuple[Mutant, Mutant | None]]:
    """Up to `count` well-formed mutants that are all different, of each of some kinds in turn.

    Where `beside` is the same program at another size, each comes with the same mutant of that.
    """
    rng, seen, made = Random(seed), {print_func(func)}, 0
    kinds = list(among)
    rng.shuffle(kinds)
    for _ in range(40):
        for kind in kinds:
            drawn = rng.getrandbits(32)
            mutant = _mutant(func, kind, drawn)
            if mutant is None or print_func(mutant.func) in seen:
                continue
            variant = _mutant(beside, kind, drawn) if beside is not None else None
            if beside is not None and variant is None:
                continue
            seen.add(print_func(mutant.func))
            made += 1
            yield mutant, variant
            if made == count:
                return


def _mutant(func: PrimFunc, kind: str, drawn: int) -> Mutant | None:
    try:
        changed = KINDS[kind](func, Random(drawn))
    except (TypeError, ValueError):  # nodes refuse what makes no sense
        return None
    if changed is None or not list(stores_in(changed.body)) or check_wellformed(changed):
        return None
    try:
        return Mutant(kind, loads(print_func(changed)))
    except ValueError:
        return None


# ---- upstream's pairs at sizes that the interpreter can run

SMALLER: Mapping[str, Mapping[str, str]] = {
    "02_relu_nhwc": {"32": "2", "56": "3", "30": "6", "8": "2", "7": "1"},
    "04_conv2d_nhwc": {"56": "3", "58": "5", "57": "4", "70": "6", "18": "2", "17": "1"},
    "07_dense": {"100": "36", "70": "5", "7": "3", "6": "2"},
}
_DIGITS = re.compile(r"(?<![\w.])\d+(?![\w.])")


@cache
def smaller(pair: Pair) -> Pair | None:
    """The same pair at a smaller size; None where it is small enough as it is."""
    table = SMALLER.get(pair.name)
    if table is None:
        return None
    texts = [(UPSTREAM / f"{pair.name}.{side}.py").read_text() for side in ("before", "after")]
    before, after = (loads(_DIGITS.sub(lambda m: table.get(m[0], m[0]), text)) for text in texts)
    return replace(pair, before=before, after=after)

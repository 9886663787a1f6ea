"""The instances of every store of a small program, found by running its loops, and what a witness makes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Allocate, Block, BufferStore, Evaluate, For, IfThenElse, Seq, Stmt, body_of
from layoutproof.ir.visit import loops_of_stores, stores_in

Instance = tuple[int, ...]
Env = dict[str, int]


def instances_of(func: PrimFunc, symbols: Mapping[str, int] | None = None) -> dict[int, list[Instance]]:
    """The values of the loops around each store, by its number, in the order in which they happen."""
    found: dict[int, list[Instance]] = {number: [] for number in range(len(list(stores_in(func.body))))}
    numbers = {id(store): number for number, store in enumerate(stores_in(func.body))}
    around = loops_of_stores(func.body)
    for store, env in _run(func.body, dict(symbols if symbols is not None else {})):
        number = numbers[id(store)]
        found[number].append(tuple(env[loop.var.name] for loop in around[number]))
    return found


def _run(stmt: Stmt, env: Env) -> Iterator[tuple[BufferStore, Env]]:
    value = partial(evaluate, env=env)
    match stmt:
        case BufferStore():
            yield stmt, env
        case For(var=var, start=start, extent=extent, body=body):
            first = int(value(start))
            for iteration in range(first, first + int(value(extent))):
                yield from _run(body, {**env, var.name: iteration})
        case IfThenElse(condition=condition, then=then, otherwise=otherwise):
            if bool(value(condition)):
                yield from _run(then, env)
            elif otherwise is not None:
                yield from _run(otherwise, env)
        case Block():
            inner = {**env, **{i.var.name: int(value(i.binding)) for i in stmt.iter_vars}}
            if bool(evaluate(stmt.where, inner)):
                yield from _run(body_of(stmt), inner)
        case Seq(body=body):
            for part in body:
                yield from _run(part, env)
        case Allocate(body=body):
            yield from _run(body, env)
        case Evaluate():
            return
        case _:
            raise AssertionError(f"{type(stmt).__name__} has no place in these tests")


def check_theta(rewrite: Rewrite, symbols: Mapping[str, int] | None = None) -> None:
    """Where the witness speaks of an instance, it takes new instances to old ones, one to one, and leaves out none of
    them.
    """
    known = dict(symbols if symbols is not None else {})
    old, new = instances_of(rewrite.old, known), instances_of(rewrite.new, known)
    computed: dict[int, Counter[Instance]] = {number: Counter() for number in old}
    for claim in rewrite.witness.instances:
        if claim.old_store is None or claim.instances is None:
            continue
        names = [v.name for v in claim.instances.inputs]
        for instance in new[claim.new_store]:
            env = {**known, **dict(zip(names, instance, strict=True))}
            if claim.where is None or bool(evaluate(claim.where, env)):
                computed[claim.old_store][claim.instances.evaluate(instance, known)] += 1
    for number, each in old.items():
        assert computed[number] == Counter(each), f"old store {number}"

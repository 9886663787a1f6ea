"""Rewrites from two texts, for tests of the walk in lockstep."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent, indent

from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import CellMap, InstanceMap, Rewrite, Witness
from layoutproof.ir.script.reader import loads
from layoutproof.ir.visit import buffers_in, stores_in
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.lockstep.prove import Lockstep, prove_lockstep
from layoutproof.verify.values.prover import ValueProver
from layoutproof.verify.verdict.verdict import Open, Status

PROVER = ValueProver()
SPLIT = "lambda i: [i//4, i%4]"


def function(arguments: str, body: str, attrs: str = '"tirx.noalias": True') -> PrimFunc:
    """A function from its arguments (`A: 14, B: 14 int32`, shapes by commas in brackets) and the text of its body."""
    text = indent(dedent(body).strip(), "    ")
    return loads(f"@T.prim_func\ndef main({arguments}):\n    T.func_attr({{{attrs}}})\n{text}\n")


def buffer(name: str, shape: str, dtype: str = "float32") -> str:
    """A parameter."""
    return f'{name}: T.Buffer(({shape},), "{dtype}")'


def record(name: str, logical: str, step: str, shape: str, contract: str) -> str:
    """The attribute with one layout record of one step; `contract` is Python text."""
    steps = f'[{{"index_map": "{step}", "shape": [{shape}], "contract": {contract}}}]'
    return f'"layoutproof.layout": {{"{name}": {{"logical_shape": [{logical}], "steps": {steps}}}}}'


def data_of(func: PrimFunc, name: str) -> str:
    """The name of the data variable of a buffer."""
    found = (*func.buffers, *buffers_in(func.body))
    return next(b.data.name for b in found if b.name == name)


def lockstep(
    old: PrimFunc,
    new: PrimFunc,
    *,
    cells: Mapping[str, str] | None = None,
    pairs: Mapping[int, int | None] | None = None,
) -> Lockstep | Open:
    """Walk two programs. `cells` are index maps by buffer name; new store `n` computes old store `pairs[n]`, store `n`
    if not given.
    """
    stores = len(list(stores_in(new.body)))
    before = len(list(stores_in(old.body)))
    chosen = pairs if pairs is not None else {n: n if n < before else None for n in range(stores)}
    maps = tuple(InstanceMap(n, o, None if o is None else IndexMap.identity(0)) for n, o in chosen.items())
    moved = tuple(
        CellMap(data_of(old, name), data_of(new, name), parse_index_map(text)) for name, text in (cells or {}).items()
    )
    names = tuple(name for name in cells or {} if any(b.name == name for b in old.buffers))
    rewrite = Rewrite(old, new, Witness(maps, moved, names))
    return prove_lockstep(rewrite, Facts.of(old), Facts.of(new), PROVER)


def accepted(found: Lockstep | Open) -> list[str]:
    """The claims of a walk that matched everything."""
    assert isinstance(found, Lockstep), found.reason
    assert found.verdicts
    assert {v.status for v in found.verdicts} == {Status.PROVED}
    return [v.claim.text for v in found.verdicts]


def refused(found: Lockstep | Open, part: str) -> str:
    """The reason of a walk that did not, which says `part`."""
    assert isinstance(found, Open), [v.claim.text for v in found.verdicts]
    assert part in found.reason, found.reason
    return found.reason

"""Whether a rewrite leaves everything as it was, found by walking both programs in lockstep.

Sound on its own, given that the cell maps are injective and land inside, that parameters keep their order and types, and that the new
program does not fault (the checker's other obligations): then every observable cell ends with the value that it had. It decides
rewrites that keep the order of what is done; whatever reorders is for the exact dataflow. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.layout_record import LayoutRecord, LayoutStep, layout_records
from layoutproof.ir.rewrite import Rewrite
from layoutproof.verify.apart import ASKED, UNSAID, are_apart, is_asked, is_unsaid
from layoutproof.verify.claim import Claim, ClaimKind
from layoutproof.verify.facts import Facts, proved
from layoutproof.verify.instances import Scene
from layoutproof.verify.lockstep.asking import Asking
from layoutproof.verify.lockstep.assumptions import Assumptions
from layoutproof.verify.lockstep.contracts import new_steps
from layoutproof.verify.lockstep.extras import Extras
from layoutproof.verify.lockstep.items import Flattener, Item
from layoutproof.verify.lockstep.memory import Memories, Relaid
from layoutproof.verify.lockstep.owed import Owed
from layoutproof.verify.lockstep.refusal import Mismatch
from layoutproof.verify.lockstep.sides import Side
from layoutproof.verify.lockstep.values import Prover
from layoutproof.verify.lockstep.walk import Walk
from layoutproof.verify.verdict import Verdict

ENGINE = "lockstep"
SAME_ORDER = Claim(ClaimKind.SAME_VALUE, "both programs do the same things in the same order, under the same conditions")
_UNCHANGED = Claim(ClaimKind.SAME_VALUE, "the program is the one that it was")


@dataclass(frozen=True, slots=True)
class Lockstep:
    """What the walk found: proved claims where everything matched, else `reason` says what did not, and where."""

    verdicts: tuple[Verdict, ...]
    reason: str | None = None


def prove_lockstep(rewrite: Rewrite, old: Facts, new: Facts, values: Prover) -> Lockstep:
    """Walk both programs of a rewrite. `values` is asked where structure and index arithmetic do not tell that two values are the same."""
    watch = old.watch()
    if rewrite.old.body == rewrite.new.body and rewrite.old.buffer_map == rewrite.new.buffer_map and not rewrite.witness.cells:
        try:
            _apart(rewrite)
            _check_records(rewrite, ())
        except Mismatch as problem:
            return Lockstep((), problem.reason)
        return Lockstep((proved(_UNCHANGED, "structure", watch),))
    try:
        said, engines = _walk(rewrite, old, new, values)
    except Mismatch as problem:
        return Lockstep((), problem.reason)
    engine = "+".join(dict.fromkeys((ENGINE, *engines)))
    return Lockstep(tuple(proved(claim, engine, watch) for claim in (SAME_ORDER, *said)))


def _walk(rewrite: Rewrite, old: Facts, new: Facts, values: Prover) -> tuple[list[Claim], list[str]]:
    apart = _apart(rewrite)
    asking = Asking(old)
    before, after = Side.of(old, apart=apart), Side.of(new, apart=apart)
    memories = Memories.of(rewrite, before, after, asking)
    grown = _grown(rewrite, memories)
    origins = {m.new_store: m.old_store for m in rewrite.witness.instances if m.old_store is not None}
    mine, theirs = Flattener(before), Flattener(after)
    extras = Extras(memories, asking, Assumptions(memories, asking, grown))
    walking = Walk(memories, asking, values, mine, theirs, origins, extras)
    walking.sequence(mine.items(Item(rewrite.old.body)), theirs.items(Item(rewrite.new.body)), Scene(), top=True)
    said = [*walking.said, *Owed(memories, asking, theirs, grown).check(walking.top)]
    if is_asked(rewrite):
        said.append(ASKED)
    return said, list(asking.engines)


def _apart(rewrite: Rewrite) -> bool:
    """Whether parameters do not overlap. Raises Mismatch where the new program just says so."""
    if is_unsaid(rewrite):
        raise Mismatch(UNSAID)
    return are_apart(rewrite)


def _grown(rewrite: Rewrite, memories: Memories) -> Mapping[str, tuple[LayoutStep, ...]]:
    """The layout steps that records have more, which must say what the cell maps say.

    Raises Mismatch where a parameter moved and its record says something else.
    """
    old, new = layout_records(rewrite.old), layout_records(rewrite.new)
    found: dict[str, tuple[LayoutStep, ...]] = {}
    for data, relaid in memories.relaid.items():
        name = memories.became(data).name
        steps = new_steps(old.get(data.name), new.get(name))
        if steps:
            new[name].check_names(v.name for v in memories.old.facts.program.symbols)
        composed: IndexMap | None = None
        for step in steps:
            composed = step.index_map if composed is None else step.index_map.compose(composed)
        if composed is not None and _said(composed) == _said(relaid.cells) and _fits(old.get(data.name), new.get(name), relaid):
            found[name] = steps
        elif data in memories.old.parameters:
            raise Mismatch(f"the layout record of {relaid.after.name} does not say where its cells went")
    moved = {memories.became(data).name for data in memories.relaid}
    _check_records(rewrite, moved)
    return found


def _fits(old: LayoutRecord | None, new: LayoutRecord | None, relaid: Relaid) -> bool:
    """Whether a record goes on where it was, or starts with the shape that the memory had, and ends with the one that it has."""
    if new is None or new.shape != LayoutRecord(relaid.after.shape).shape:
        return False
    if old is None:
        return new.logical_shape == LayoutRecord(relaid.before.shape).shape
    return new.logical_shape == old.logical_shape and new.steps[: len(old.steps)] == old.steps


def _check_records(rewrite: Rewrite, moved: Collection[str]) -> None:
    """Raises Mismatch where the record of memory whose cells stay says that they moved."""
    old = layout_records(rewrite.old)
    for name, record in layout_records(rewrite.new).items():
        if name not in moved and record.steps and old.get(name) != record:
            raise Mismatch(f"the layout record of {name} is another one, and its cells stay where they are")


def _said(index_map: IndexMap) -> str:
    """An index map's text with its inputs numbered."""
    return index_map_text(index_map.rename([f"x{k}" for k in range(len(index_map.inputs))]))

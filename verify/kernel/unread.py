"""Stores that the end of the program or no read finds: to padding and temporaries, copies to parameters, and what is
overwritten. The argument is that of `copies`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from layoutproof.verify.kernel.copies import END, Place, Reads
from layoutproof.verify.kernel.encoding import Cases, Context, differ, loads_of
from layoutproof.verify.kernel.extras import NoOp, extras, located, prove_meets, prove_outside, record
from layoutproof.verify.kernel.integers import Case
from layoutproof.verify.kernel.polynomials import Poly
from layoutproof.verify.kernel.programs import Statement
from layoutproof.verify.kernel.reader import read_extent, read_map, scope_of
from layoutproof.verify.kernel.refinement import Part, before, both, instance, not_before, of_part, prove_executed
from layoutproof.verify.kernel.rejected import Rejected
from layoutproof.verify.kernel.step import Map, Source, Step


def prove_unseen(extra: NoOp) -> None:
    """The cell is padding that a layout leaves undefined, or one of a temporary, and no instance of a part loads it."""
    prove_not_observable(extra.step, *extra.cell(), extra.statement.buffer)
    prove_unread(extra)
    extra.prove_evaluated(extra.statement.value)


def prove_not_observable(step: Step, context: Context, index: Sequence[Poly], name: str) -> None:
    """A cell is padding that a layout leaves undefined, or one of a temporary."""
    buffer = step.new.buffers[name]
    owner = step.owner(step.new, buffer.data)
    if owner is None or owner.is_parameter:
        entries = record(step, name)
        if len(entries) != 1 or entries[0].get("contract") != "undef":
            raise Rejected(f"{name} is observable")
        if buffer.data in step.viewed:
            raise Rejected(f"the record of {name} does not say which elements of a view are padding")
        symbols = scope_of(step.new.symbols)
        names, outputs, where = read_map(str(entries[0].get("index_map")), symbols, {})
        logical = step.new.layouts[buffer.data].get("logical_shape", ())
        if names is None or where is not None or len(outputs) != len(index):
            raise Rejected(f"the record of {name} has no such map")
        shape = [read_extent(str(extent), symbols) for extent in logical]
        prove_outside(step, context, index, shape, Map(names, outputs))


def prove_unread(extra: NoOp, until: Source | None = None) -> None:
    """No read finds what is stored; where a store is given that comes later, none before that. A load whose origin is
    given is no read.
    """
    step, new = extra.step, extra.statement
    origins = {s.index for (side, _), k in step.copies.origins.items() if side == "new" for x in k.values() for s in x}
    copies = [s for s in step.new.stores if s.value[0] == "load" and step.is_beside(s.value[2])]
    further = [*copies, *(s for s in step.new.stores if s.number in origins)]
    for reader, part in (*((part.new, part) for part in extra.parts), *((s, None) for s in further)):
        known = step.copies.origins.get(("new", reader.number), {})
        loads = [x for k, x in enumerate(dict.fromkeys(loads_of(reader.value))) if not known.get(k)]
        for load in (*loads, *(x for text in (*reader.guards, *reader.indices) for x in loads_of(text))):
            if step.new.buffers[load[2]].data == step.new.buffers[new.buffer].data:
                context, env = extra.asked()
                other = of_part(context, part, "r")[0] if part is not None else instance(context, reader, "r")
                context.zeros += step.apart(context, ((new.buffer, new.indices), env), (load[2:], other))
                cases: Cases = (Case(),)
                if until is not None:
                    writer, at = located(step.new, context, (new, env), until)
                    cases = both(before(new, env, reader, other), not_before(writer, at, reader, other))
                step.refuse(context, cases)


def prove_dropped(step: Step, old: Statement) -> None:
    """What an old store that is dropped stores to is a temporary. That no read is of it is proved of the reads."""
    owner = step.owner(step.old, step.old.buffers[old.buffer].data)
    if owner is None or owner.is_parameter:
        raise Rejected(f"old store {old.number} is not computed, and {old.buffer} is observable")


def prove_copied(extra: NoOp) -> None:
    """The cell of a parameter gets its value at the end from its other home, and no read is of it."""
    step, new = extra.step, extra.statement
    found = step.source_of(step.new.buffers[new.buffer])
    known = step.copies.origins.get(("new", new.number)) or step.new.buffers[new.buffer].data in step.viewed
    if known or new.value[0] != "load" or not step.is_beside(new.value[2]) or found is None or found[1] is not None:
        raise Rejected(f"line {new.line} is no copy")
    prove_unread(extra)
    context, env = extra.asked()
    cell = ("load", new.value[1], found[0].name, new.indices)
    Reads(step, extra.parts).read(context, Place(cell, END, env), Place(new.value, new, env))


def prove_covered(step: Step, parts: Sequence[Part], part: Part) -> None:
    """What a part stores beside a parameter a copy takes there, or the cell is not observable."""
    if part.new.number not in step.copies.covers:
        raise Rejected(f"nothing copies what line {part.new.line} stores")
    context = step.context()
    env, old_env = of_part(context, part, "i")
    copy, at = located(step.new, context, (part.new, env), step.copies.covers[part.new.number])
    if (
        copy.buffer != part.old.buffer
        or step.new.buffers[copy.buffer].data in step.viewed
        or any(other.new is copy for other in parts)
    ):
        raise Rejected(f"line {copy.line} is no copy")
    for asked in extras(step, parts, copy):
        prove_copied(NoOp(step, copy, asked, parts))
    prove_executed(step, context, (replace(copy, guards=()), at), ())
    cell = [context.number(index, old_env) for index in part.old.indices]
    for guard in copy.guards:
        without = context.copy()
        without.require(guard, at, truth=False)
        prove_not_observable(step, without, cell, copy.buffer)
        context.require(guard, at)
    for index, value in zip(copy.indices, cell, strict=True):
        step.refuse(context, differ(context.number(index, at), value))


def prove_overwritten(extra: NoOp) -> None:
    """An instance of a part, which is given, stores to the cell later, and no read comes before that."""
    step, new = extra.step, extra.statement
    source = step.copies.covers.get(new.number)
    if source is None:
        raise Rejected(f"nothing is known that overwrites what line {new.line} stores")
    context, env = extra.asked()
    writer, at = prove_meets(step, step.new, context, (new, env), (new.buffer, new.indices), source)
    if not any(p.new is writer and p.condition is None for p in extra.parts):
        raise Rejected(f"line {writer.line} may not overwrite it")
    step.refuse(context, not_before(new, env, writer, at))
    prove_unread(extra, source)
    extra.prove_evaluated(new.value)

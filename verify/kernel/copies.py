"""Values that take another way through memory: caches, inlined temporaries, memories of two turns.

A load of the new or of the old program may be given with its *origin*: an instance of a store of the same program that
is executed, writes the cell that is loaded, and comes before, where no other store writes the cell in between. The load
has the value that this instance computed, so the stored expression, at that instance, takes its place. Two expressions
are compared after that, load by load: each pair is a *read*, of an old cell c at the time of one old instance and of
f(c) at the time of one new instance, which need not be those of the statements that are compared.

`refinement` says that a read of a part finds the paired value because conflicting accesses keep their order. What it
needs of the reads here is proved of each: a part that stores to f(c) is before the one in the new program iff its old
instance is before the other in the old program. As the stores to a cell keep their order among themselves, the
last before the read is the same in both programs. The induction is over the time of the new program.

An old cell may have several *homes*: a temporary of the new program holds cells of a parameter beside the parameter
itself, and each part stores to one of them. A read of one home is right where no part that stores to another home
stores to the old cell before. The temporary has no value at entry, so each read of it needs a store before. At the end
the value is in the parameter where another instance copies it: it loads the home after all stores to that cell, as if
at the end of the old program, and no read is of the cell of the parameter. Each old cell that is stored to beside the
parameter is copied, or is padding that is not observable.

Old stores of temporaries that no new store computes are *dropped*: no read is of their memories, but for loads that
have an origin. An instance that computes no old one may also store what is overwritten before it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from layoutproof.verify.kernel import programs as core
from layoutproof.verify.kernel import refinement
from layoutproof.verify.kernel.encoding import ALWAYS, Context, Instance, both
from layoutproof.verify.kernel.extras import NoOp, extras, located, prove_meets, prove_outside, prove_written
from layoutproof.verify.kernel.laws import law
from layoutproof.verify.kernel.polynomials import Poly
from layoutproof.verify.kernel.programs import Expr, Program, Statement, is_affine_condition, loads_of
from layoutproof.verify.kernel.refinement import Part, before, not_before, of_part
from layoutproof.verify.kernel.rejected import Rejected
from layoutproof.verify.kernel.step import Source, Step

_DEEPEST = 24
END = core.evaluated_at((), ())  # after all that a program executes


@dataclass(frozen=True, slots=True)
class Place:
    """An expression that an instance of a store of one program evaluates."""

    e: Expr
    at: Instance


@dataclass(slots=True)
class Reads:
    """Compares the values of a part and pairs their loads."""

    step: Step
    parts: Sequence[Part]
    direct: tuple[Instance, Instance] | None = None  # the instance of a part and the old one that it computes

    def dropped(self) -> set[str]:
        """The memories of old stores that are dropped."""
        computed = {part.old.number for part in self.parts}
        return {self.step.old.data(s.buffer) for s in self.step.old.stores if s.number not in computed}

    def same(self, context: Context, old: Place, new: Place, depth: int) -> None:
        """Two expressions have one value, each load of them the value of its origin or of the paired one."""
        old, new = replace(old, e=law(old.e)), replace(new, e=law(new.e))
        a, b = old.e, new.e
        if depth > _DEEPEST or a[1] != b[1]:
            raise Rejected("the values have other types, or origins are nested too deeply")
        for at, place in self.known(context, self.step.old, old):
            for here, given in self.known(at, self.step.new, new):
                if place is not old or given is not new:
                    self.same(here, place, given, depth + 1)
                elif a[0] == "load" == b[0]:
                    self.read(here, old, new)
                elif loads_of(a, b):
                    self.operands(here, old, new, depth)
                else:
                    refinement.prove_same(self.step, here, (a, old.at.env), (b, new.at.env))

    def operands(self, context: Context, old: Place, new: Place, depth: int) -> None:
        """Two expressions have one value because their operands have."""

        def prove(x: Expr, y: Expr) -> None:
            self.same(context, replace(old, e=x), replace(new, e=y), depth)

        refinement.same_operands(self.step, old.e, new.e, prove)

    def known(self, context: Context, program: Program, place: Place) -> Iterator[tuple[Context, Place]]:
        """The side that is taken of the choice that an expression is, or the origin of the load, by cases."""
        e, statement = place.e, place.at.statement
        if e[0] == "if" and is_affine_condition(e[2]):
            for truth, taken in ((True, e[3]), (False, e[4])):
                at = context.copy()
                at.require(e[2], place.at.env, truth)
                if not at.is_impossible():
                    yield at, replace(place, e=taken)
            return
        origins = self.step.origins(program, statement.number) or {}
        pieces = origins.get([*dict.fromkeys(loads_of(statement.value))].index(e), ()) if e[0] == "load" else ()
        if not pieces:
            yield context, place
            return
        rest = context.copy()
        for piece in pieces:
            at, inputs = rest.copy(), rest.inputs(piece.map, place.at.values)
            at.require(piece.map.where, inputs)
            if not at.is_impossible():
                yield at, self.origin(at, program, place, piece)
            rest.require(piece.map.where, inputs, truth=False)
        rest.refuse(ALWAYS)

    def origin(self, context: Context, program: Program, place: Place, source: Source) -> Place:
        """The value of a load is that of an earlier instance, and the cell is not written in between."""
        reader, load = place.at, place.e
        writer = prove_written(self.step, program, context, reader, load, source)
        value = writer.statement.value
        if core.has(value, "undef") or value[1] != load[1]:
            raise Rejected(f"what line {writer.statement.line} stores is undefined, or of another type")
        for store in program.stores:
            if program.data(store.buffer) == program.data(load[2]):
                between = context.copy()
                other = between.instance(store, "b")
                between.zeros += self.step.apart(between, program, other.cell, (load[2:], reader.env))
                between.refuse(both(before(writer, other), before(other, reader)))
        return Place(value, writer)

    def read(self, context: Context, old: Place, new: Place) -> None:
        """Two loads, or one and the end of the old program, find the same value."""
        step, a, b = self.step, old.e, new.e
        source, home = step.old.buffers[a[2]], step.new.buffers[b[2]]
        there, here = (a[2:], old.at.env), (b[2:], new.at.env)
        refinement.prove_same_cell(step, context, there, here)
        if step.is_fresh(home):
            raise Rejected(f"{b[2]} is allocated in a loop, and no origin of its load is given")
        if source.data in self.dropped() or loads_of(*a[3], *b[3]):
            raise Rejected(f"no origin of the load of {a[2]} is given, or its index depends on data")
        if step.is_beside(home.name):
            prove_written(step, step.new, context, new.at, b, step.source(new.at.statement.number, b))
        for part in self.parts:
            at = context.copy()
            store, old_store = of_part(at, part, "p")
            if step.new.data(part.new.buffer) == home.data:
                at.zeros += step.apart(at, step.new, store.cell, here)
                self._in_order(at, (old.at, new.at), old_store, store)
            elif step.old.data(part.old.buffer) == source.data:
                # To another home: not before the read.
                at.zeros += step.apart(at, step.old, old_store.cell, there)
                at.refuse(before(old_store, old.at))

    def _in_order(self, context: Context, read: tuple[Instance, Instance], old: Instance, new: Instance) -> None:
        """A part that stores to the cell comes before one read iff it comes before the other."""
        there, here = read
        first, old_first = before(new, here), before(old, there)
        if self.direct is not None and here.env is self.direct[0].env and there.env is self.direct[1].env:
            # Theta is one-to-one: if the instances are one in a program, they are one in both.
            last, old_last = before(here, new), before(there, old)
        else:
            last, old_last = not_before(new, here), not_before(old, there)
        context.refuse((*both(first, old_last), *both(last, old_first)))


def prove_part(step: Step, parts: Sequence[Part], part: Part) -> None:
    """Each instance of a part computes an executed old instance, and stores its value to its cell."""
    context, new, old = refinement.prove_place(step, part)
    reads = Reads(step, parts, (new, old))
    if is_moved := step.is_moved(part.new.number, part.old.number):
        reads.same(context, Place(part.old.value, old), Place(part.new.value, new), 0)
    else:
        refinement.prove_same(step, context, (part.old.value, old.env), (part.new.value, new.env))
    # Loads that are paired by their places in the text are of memories with one home, none of them dropped.
    for load in loads_of(*part.old.guards, *part.old.indices, *(() if is_moved else (part.old.value,))):
        buffer = step.old.buffers[load[2]]
        if buffer.data in reads.dropped() or step.homes(buffer) > 1:
            raise Rejected(f"no origin of the load of {buffer.name} is given")


# ---- stores that the end of the program or no read finds


def prove_unseen(extra: NoOp) -> None:
    """The cell is padding that a layout leaves undefined, or one of a temporary, and no instance of a part loads it."""
    prove_not_observable(extra.step, *extra.cell(), extra.statement.buffer)
    prove_unread(extra)
    extra.prove_evaluated(extra.statement.value)


def prove_not_observable(step: Step, context: Context, index: Sequence[Poly], name: str) -> None:
    """A cell is padding that a layout leaves undefined, or one of a temporary."""
    if step.new.is_temporary(name):
        return
    record = step.new.record(step.new.data(name))
    if len(record.steps) != 1 or record.steps[0].contract != ("undef", step.new.buffers[name].dtype):
        raise Rejected(f"{name} is observable")
    if step.new.data(name) in step.viewed:
        raise Rejected(f"the record of {name} does not say which elements of a view are padding")
    prove_outside(context, index, record.logical, record.steps[0].map)


def prove_unread(extra: NoOp, until: Source | None = None) -> None:
    """No read finds what is stored; where a store is given that comes later, none before that. A load whose origin is
    given is no read.
    """
    step, new, every = extra.step, extra.statement, extra.step.copies.origins
    origins = {s.index for (side, _), loads in every.items() if side == "new" for x in loads.values() for s in x}
    copies = [s for s in step.new.stores if s.value[0] == "load" and step.is_beside(s.value[2])]
    further = [*copies, *(s for s in step.new.stores if s.number in origins)]
    for reader, part in (*((part.new, part) for part in extra.parts), *((s, None) for s in further)):
        known = step.origins(step.new, reader.number) or {}
        loads = [x for k, x in enumerate(dict.fromkeys(loads_of(reader.value))) if not known.get(k)]
        for load in (*loads, *loads_of(*reader.guards, *reader.indices)):
            if step.new.data(load[2]) == step.new.data(new.buffer):
                context, mine = extra.asked()
                other = of_part(context, part, "r")[0] if part is not None else context.instance(reader, "r")
                context.zeros += step.apart(context, step.new, mine.cell, (load[2:], other.env))
                if until is None:
                    context.refuse(ALWAYS)
                else:
                    writer = located(step.new, context, mine, until)
                    context.refuse(both(before(mine, other), not_before(writer, other)))


def prove_dropped(step: Step, old: Statement) -> None:
    """An old store that is dropped is never executed, or stores to a temporary. That no read is of it is proved of the
    reads.
    """
    if not step.old.is_temporary(old.buffer):
        context = step.context()
        context.instance(old, "o")
        if not context.is_impossible():
            raise Rejected(f"old store {old.number} is not computed, and {old.buffer} is observable")


def prove_copied(extra: NoOp) -> None:
    """The cell of a parameter gets its value at the end from its other home, and no read is of it."""
    step, new = extra.step, extra.statement
    found = step.source_of(step.new.buffers[new.buffer])
    known = step.origins(step.new, new.number) or step.new.data(new.buffer) in step.viewed
    if known or new.value[0] != "load" or not step.is_beside(new.value[2]) or found is None or found[1] is not None:
        raise Rejected(f"line {new.line} is no copy")
    prove_unread(extra)
    context, mine = extra.asked()
    cell = ("load", new.value[1], found[0].name, new.indices)
    Reads(step, extra.parts).read(context, Place(cell, Instance(END, mine.env)), Place(new.value, mine))


def prove_covered(step: Step, parts: Sequence[Part], part: Part) -> None:
    """What a part stores beside a parameter a copy takes there, or the cell is not observable."""
    if part.new.number not in step.copies.covers:
        raise Rejected(f"nothing copies what line {part.new.line} stores")
    context = step.context()
    new, old = of_part(context, part, "i")
    at = located(step.new, context, new, step.copies.covers[part.new.number])
    copy, env = at
    is_viewed = step.new.data(copy.buffer) in step.viewed
    if copy.buffer != part.old.buffer or is_viewed or any(other.new is copy for other in parts):
        raise Rejected(f"line {copy.line} is no copy")
    for asked in extras(step, parts, copy):
        prove_copied(NoOp(step, copy, asked, parts))
    refinement.prove_executed(step, context, Instance(replace(copy, guards=()), env))
    cell = [context.number(index, old.env) for index in part.old.indices]
    for guard in copy.guards:
        without = context.copy()
        without.require(guard, env, truth=False)
        prove_not_observable(step, without, cell, copy.buffer)
        context.require(guard, env)
    context.prove_equal((context.number(index, env) for index in copy.indices), cell)


def prove_overwritten(extra: NoOp) -> None:
    """An instance of a part, which is given, stores to the cell later, and no read comes before that."""
    step, new = extra.step, extra.statement
    source = step.copies.covers.get(new.number)
    if source is None:
        raise Rejected(f"nothing is known that overwrites what line {new.line} stores")
    context, mine = extra.asked()
    writer = prove_meets(step, step.new, context, mine, new.access, source)
    if not any(p.new is writer.statement and p.theta.where == core.TRUE for p in extra.parts):
        raise Rejected(f"line {writer.statement.line} may not overwrite it")
    context.refuse(not_before(mine, writer))
    prove_unread(extra, source)
    extra.prove_evaluated(new.value)

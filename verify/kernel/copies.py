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

from layoutproof.verify.kernel.encoding import Context, Env, is_affine_condition, loads_of
from layoutproof.verify.kernel.extras import (
    prove_written,
)
from layoutproof.verify.kernel.integers import Case
from layoutproof.verify.kernel.programs import TRUE, Expr, Program, Statement, has
from layoutproof.verify.kernel.refinement import (
    Part,
    before,
    both,
    instance,
    not_before,
    of_part,
    prove_place,
    prove_same,
    prove_same_cell,
)
from layoutproof.verify.kernel.rejected import Rejected
from layoutproof.verify.kernel.step import Source, Step

_DEEPEST = 24
END = Statement("end", (), (), (1 << 62,), "", (), TRUE, TRUE, 0, -1)  # after all that a program executes


@dataclass(frozen=True, slots=True)
class Place:
    """An expression that an instance of a store of one program evaluates."""

    e: Expr
    statement: Statement
    env: Env


@dataclass(slots=True)
class Reads:
    """Compares the values of a part and pairs their loads."""

    step: Step
    parts: Sequence[Part]
    direct: tuple[Env, Env] | None = None  # the instance of a part and the old one that it computes

    def prove_part(self, part: Part) -> None:
        """Each instance of a part computes an executed old instance, and stores its value to its cell."""
        context, env, old_env = prove_place(self.step, part)
        if is_moved := self.step.is_moved(part.new.number, part.old.number):
            self.direct = env, old_env
            self.same(context, Place(part.old.value, part.old, old_env), Place(part.new.value, part.new, env), 0)
        else:
            prove_same(self.step, context, (part.old.value, old_env), (part.new.value, env))
        # Loads that are paired by their places in the text are of memories with one home, none of them dropped.
        texts = (*part.old.guards, *part.old.indices, *(() if is_moved else (part.old.value,)))
        for load in (x for text in texts for x in loads_of(text)):
            buffer = self.step.old.buffers[load[2]]
            if buffer.data in self._dropped() or self.step.homes(buffer) > 1:
                raise Rejected(f"no origin of the load of {buffer.name} is given")

    def _dropped(self) -> set[str]:
        computed = {part.old.number for part in self.parts}
        return {self.step.old.buffers[s.buffer].data for s in self.step.old.stores if s.number not in computed}

    def same(self, context: Context, old: Place, new: Place, depth: int) -> None:
        """Two expressions have one value, each load of them the value of its origin or of the paired one."""
        a, b = old.e, new.e
        if depth > _DEEPEST or a[1] != b[1]:
            raise Rejected("the values have other types, or origins are nested too deeply")
        for at, place in self.known(context, self.step.old, old):
            for here, given in self.known(at, self.step.new, new):
                if place is not old or given is not new:
                    self.same(here, place, given, depth + 1)
                elif a[0] == "load" == b[0]:
                    self.read(here, old, new)
                elif loads_of(a) or loads_of(b):
                    self._same_operands(here, old, new, depth)
                else:
                    prove_same(self.step, here, (a, old.env), (b, new.env))

    def _same_operands(self, context: Context, old: Place, new: Place, depth: int) -> None:
        a, b = old.e, new.e
        if a[0] != b[0] or a[0] == "load" or len(a) != len(b):
            raise Rejected(f"{b[0]} stands for {a[0]}")
        for x, y in zip(a[2:], b[2:], strict=True):
            if isinstance(x, tuple) and isinstance(y, tuple):
                self.same(context, replace(old, e=x), replace(new, e=y), depth)
            elif x != y or type(x) is not type(y):
                raise Rejected(f"{y} stands for {x}")

    def known(self, context: Context, program: Program, place: Place) -> Iterator[tuple[Context, Place]]:
        """The side that is taken of the choice that an expression is, or the origin of the load, by cases."""
        e, statement = place.e, place.statement
        if e[0] == "if" and is_affine_condition(e[2]):
            for truth, taken in ((True, e[3]), (False, e[4])):
                at = context.copy()
                at.require(e[2], place.env, truth)
                if not self.step.is_impossible(at):
                    yield at, replace(place, e=taken)
            return
        origins = self.step.copies.origins.get(("old" if program is self.step.old else "new", statement.number), {})
        pieces = origins.get([*dict.fromkeys(loads_of(statement.value))].index(e), ()) if e[0] == "load" else ()
        if not pieces:
            yield context, place
            return
        rest = context.copy()
        for piece in pieces:
            at, condition = rest.copy(), piece.map.where or TRUE
            inputs = piece.map.inputs([place.env[loop.var] for loop in statement.loops], at.symbols)
            at.require(condition, inputs)
            if not self.step.is_impossible(at):
                yield at, self.origin(at, program, place, piece)
            rest.require(condition, inputs, truth=False)
        self.step.refuse(rest, (Case(),))

    def origin(self, context: Context, program: Program, place: Place, source: Source) -> Place:
        """The value of a load is that of an earlier instance, and the cell is not written in between."""
        reader, load = place.statement, place.e
        writer, at = prove_written(self.step, program, context, (reader, place.env), load, source)
        if has(writer.value, "undef") or writer.value[1] != load[1]:
            raise Rejected(f"what line {writer.line} stores is undefined, or of another type")
        for store in program.stores:
            if program.buffers[store.buffer].data == program.buffers[load[2]].data:
                between = context.copy()
                other = instance(between, store, "b")
                accesses = ((store.buffer, store.indices), other), (load[2:], place.env)
                between.zeros += self.step.apart(between, *accesses, is_old=program is self.step.old)
                order = both(before(writer, at, store, other), before(store, other, reader, place.env))
                self.step.refuse(between, order)
        return Place(writer.value, writer, at)

    def read(self, context: Context, old: Place, new: Place) -> None:
        """Two loads, or one and the end of the old program, find the same value."""
        step, a, b, here = self.step, old.e, new.e, new.statement
        source, home = step.old.buffers[a[2]], step.new.buffers[b[2]]
        prove_same_cell(step, context, (source, a[3], old.env), (home, b[3], new.env))
        if step.is_fresh(home):
            raise Rejected(f"{b[2]} is allocated in a loop, and no origin of its load is given")
        if source.data in self._dropped() or any(loads_of(index) for index in (*a[3], *b[3])):
            raise Rejected(f"no origin of the load of {a[2]} is given, or its index depends on data")
        if step.is_beside(home.name):
            prove_written(step, step.new, context, (here, new.env), b, step.source(here.number, b))
        for part in self.parts:
            at = context.copy()
            env, old_env = of_part(at, part, "p")
            if step.new.buffers[part.new.buffer].data == home.data:
                at.zeros += step.apart(at, ((part.new.buffer, part.new.indices), env), (b[2:], new.env))
                self._in_order(at, (old, new), part, env, old_env)
            elif step.old.buffers[part.old.buffer].data == source.data:
                # To another home: not before the read.
                accesses = ((part.old.buffer, part.old.indices), old_env), (a[2:], old.env)
                at.zeros += step.apart(at, *accesses, is_old=True)
                step.refuse(at, before(part.old, old_env, old.statement, old.env))

    def _in_order(self, context: Context, read: tuple[Place, Place], part: Part, env: Env, old_env: Env) -> None:
        """A part that stores to the cell comes before one read iff it comes before the other."""
        there, old_at, here, at = read[0].statement, read[0].env, read[1].statement, read[1].env
        first, old_first = before(part.new, env, here, at), before(part.old, old_env, there, old_at)
        if self.direct is not None and at is self.direct[0] and old_at is self.direct[1]:
            # Theta is one-to-one: if the instances are one in a program, they are one in both.
            last, old_last = before(here, at, part.new, env), before(there, old_at, part.old, old_env)
        else:
            last, old_last = not_before(part.new, env, here, at), not_before(part.old, old_env, there, old_at)
        self.step.refuse(context, (*both(first, old_last), *both(last, old_first)))

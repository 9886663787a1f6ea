"""Instances of the new program that compute no old one. They may write where no old cell is, or what is in the cell
already, or to a cell that is never read and not observable.

All of them are taken at their place in the new program, by induction over its time: those before have changed nothing
that counts. What is known of a load comes from an assumption about a parameter that is only read, or from the stores to
its memory.
That a cell does not hold -0.0 comes from what is stored there: a sum is -0.0 only where both its terms are, and a
difference only where its first term is, in rounding to nearest (IEEE 754, 6.3).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from layoutproof.verify.kernel import programs as core
from layoutproof.verify.kernel import refinement
from layoutproof.verify.kernel.encoding import ALWAYS, Context, Env, Instance, differ
from layoutproof.verify.kernel.integers import Case
from layoutproof.verify.kernel.polynomials import Poly
from layoutproof.verify.kernel.programs import Access, Buffer, Expr, Map, Program, Statement, loads_of
from layoutproof.verify.kernel.refinement import Part, first_of, not_before, of_part, parts_of, prove_executed
from layoutproof.verify.kernel.rejected import Rejected
from layoutproof.verify.kernel.step import Source, Step

Asked = Callable[[], tuple[Context, Instance]]
Rule = Callable[["NoOp"], None]
_ZERO, _MINUS_ZERO = (0.0).hex(), (-0.0).hex()


def extras(step: Step, all_parts: Sequence[Part], new: Statement, around: Statement | None = None) -> Iterator[Asked]:
    """Instances of a new store that no part speaks of, by cases, each in a question of its own: of one part those where
    a condition of it is the first that is false. If `around` is given, with the guards of that alone.
    """
    mine = [part for part in all_parts if part.new is new]
    if any(part.theta.where == core.TRUE for part in mine):
        return
    conditions = core.terms(mine[0].theta.where, "and") if len(mine) == 1 else []

    def one(first_false: int) -> tuple[Context, Instance]:
        context = step.context()
        at = context.instance(around or new, "i")
        for part in mine:
            inputs = context.inputs(part.theta, at.values)
            for number, condition in enumerate((conditions or [part.theta.where])[: first_false + 1]):
                context.require(condition, inputs, truth=number < first_false)
        return context, at

    for number in range(max(len(conditions), 1)):
        yield partial(one, number)


def prove_extras(step: Step, all_parts: Sequence[Part], new: Statement, rules: Sequence[Rule]) -> None:
    """Instances that compute no old one change nothing that counts, by one of the rules here or of those given."""
    prove_conditions(step, all_parts, new)
    for asked in extras(step, all_parts, new):
        if not asked()[0].is_impossible():
            for name in {new.buffer, *(load[2] for load in loads_of(*new.texts))}:
                if step.is_open(name):
                    raise Rejected(f"{name} has padding without a contract")
            if step.overlaps:
                raise Rejected("parameters may overlap, and instances compute no old one")
            if loads_of(*new.indices):
                raise Rejected(f"where line {new.line} stores depends on data")
            extra = NoOp(step, new, asked, all_parts)
            first_of(partial(prove, extra) for prove in (prove_new_cell, NoOp.prove, *rules))


# ---- conditions on data


def prove_conditions(step: Step, all_parts: Sequence[Part], new: Statement) -> None:
    """Where a condition on data is evaluated, which is before those after it are asked, it has no fault: whatever its
    loads find, or because the old program evaluates the same there.
    """
    for number, guard in enumerate(new.guards):
        if loads_of(guard):
            reached = partial(_reached, step, new, number)
            harmless = partial(NoOp(step, new, reached, all_parts).prove_evaluated, guard, is_condition=True)
            first_of((harmless, partial(_prove_evaluated_before, step, all_parts, new, number)))


def _reached(step: Step, new: Statement, number: int) -> tuple[Context, Instance]:
    """Where a guard is evaluated. The loops that may be inside of it must not be empty."""
    context, way = step.context(), new.way_to(number)
    env = context.bind(way.loops, "i")
    for guard in way.guards:
        context.require(guard, env)
    for k, loop in enumerate(new.loops[len(way.loops) :], len(way.loops)):
        start, extent = context.number(loop.start, env), context.number(loop.extent, env)
        context.refuse((Case((-extent,)),))
        env[loop.var] = Poly.var(f"i{k}")
        context.between(env[loop.var], start, extent)
    return context, Instance(new, env)


def _prove_evaluated_before(step: Step, all_parts: Sequence[Part], new: Statement, number: int) -> None:
    """Wherever a guard is evaluated, what is known of the instances of the store holds, so a part speaks of it, and the
    old program evaluates the same conditions on data in the same order.
    """
    context, at = _reached(step, new, number)
    for condition in (term for guard in new.guards[number:] for term in core.terms(guard, "and")):
        if core.is_affine_condition(condition):
            context.prove(condition, at.env)
        elif any(case != Case() for case in context.cases(condition, at.env, True)):
            raise Rejected(f"a condition around line {new.line} is on data and on indices")
    around = replace(new, guards=new.guards[:number])
    for asked in extras(step, all_parts, new, around):
        asked()[0].refuse(ALWAYS)
    for part in (part for part in all_parts if part.new is new):
        context = step.context()
        at, old = of_part(context, replace(part, new=around), "i")
        mine, theirs = (
            [guard for guard in guards if not core.is_affine_condition(guard)]
            for guards in (new.guards[: number + 1], part.old.guards)
        )
        if len(theirs) < len(mine):
            raise Rejected(f"a condition around line {new.line} is new")
        for a, b in zip(theirs, mine, strict=False):
            refinement.prove_same(step, context, (a, old.env), (b, at.env))


def prove_new_cell(extra: NoOp) -> None:
    """The cell is no f(c)."""
    step, buffer = extra.step, extra.step.new.buffers[extra.statement.buffer]
    source = step.source_of(buffer)
    if source is not None:
        if source[1] is None:
            raise Rejected("every cell of the memory is an old one")
        if step.is_fresh(buffer):
            raise Rejected("no map says which cells of the memory are old ones")
        prove_outside(*extra.cell(), source[0].shape, source[1])
    extra.prove_evaluated(extra.statement.value)


def prove_outside(context: Context, index: Sequence[Poly], shape: Sequence[Expr], f: Map) -> None:
    """No cell of a box has its image in a cell."""
    for output, value in zip(context.outputs(f, context.some_cell(shape, "c")), index, strict=True):
        context.zeros.append(output - value)
    context.refuse(ALWAYS)


@dataclass(slots=True)
class NoOp:
    """An instance that no part of theta speaks of, in a question of its own each time, of the store `statement`."""

    step: Step
    statement: Statement
    asked: Asked
    parts: Sequence[Part]

    def cell(self) -> tuple[Context, list[Poly]]:
        """A question, and the index of the cell in it."""
        context, at = self.asked()
        return context, [context.number(index, at.env) for index in self.statement.indices]

    def prove_evaluated(self, value: Expr, *, is_condition: bool = False) -> None:
        """Evaluating a value is no fault, whatever it is, but that no undefined value decides a condition or an index.
        That loads are in bounds, and arithmetic without data fits and has a result, is proved of all statements.
        """
        step, line = self.step, self.statement.line
        decide = [value] if is_condition else []
        for part in core.walk(value):
            decide += part[3] if part[0] == "load" else part[2:3] if part[0] in ("if", "select") else ()
            if part[0] == "load":
                for index in filter(loads_of, part[3]):
                    context, at = self.asked()
                    step.prove_fits(context, index, at.env)
                if step.is_open(part[2]):
                    raise Rejected(f"{part[2]} has padding without a contract")
                if not step.new.buffers[part[2]].is_parameter:
                    self.prove_written(part)
            elif core.may_trap(part):
                raise Rejected(f"what line {line} computes beyond the old program may trap")
        if any(step.is_undefined(load[2]) for load in loads_of(*decide)):
            raise Rejected(f"an undefined value may decide what line {line} does")

    def prove_written(self, load: Expr) -> tuple[Context, Instance, Statement]:
        """The cell of a load was written; the instance, and the store that is given."""
        context, at = self.asked()
        source = self.step.source(self.statement.number, load)
        return context, at, prove_written(self.step, self.step.new, context, at, load, source).statement

    def prove(self) -> None:
        """The value that is stored is the value in the cell. Raises Rejected."""
        if self.simplified(self.statement.value) is not None:
            raise Rejected(f"line {self.statement.line} may store another value than the one that is there")

    def simplified(self, e: Expr) -> frozenset[Expr] | None:
        """The constants of which an expression is one; None where it is the value in the cell. Raises Rejected where a
        load is not known, or it may trap.
        """
        operator, dtype = e[0], e[1]
        if operator == "const":
            return frozenset({e})
        if operator == "load" and not loads_of(*e[3]):
            return self.loaded(e)
        if operator in ("if", "select"):
            return self.chosen(e)
        if operator in ("+", "-", "*", "max", "min"):
            a, b = self.simplified(e[2]), self.simplified(e[3])
            if a is not None and b is not None:
                return frozenset(folded(operator, dtype, x, y) for x in a for y in b)
            if a is b:
                raise Rejected(f"the operands of {operator} in line {self.statement.line} are not known")
            for value in a or b or ():
                self.prove_neutral(operator, value, is_left=b is None)
            return None
        raise Rejected(f"nothing is known of {operator} in line {self.statement.line}")

    def chosen(self, e: Expr) -> frozenset[Expr] | None:
        """The side that is taken, where the condition speaks of indices alone and is known."""
        for truth, side in ((True, e[3]), (False, e[4])):
            try:
                context, at = self.asked()
                context.refuse(context.cases(e[2], at.env, not truth))
            except Rejected:
                continue
            if e[0] == "select":
                self.prove_evaluated(e[4] if truth else e[3])
            if core.is_affine_condition(e[2]):
                return self.simplified(side)
        raise Rejected(f"a condition in line {self.statement.line} is not known")

    def loaded(self, load: Expr) -> frozenset[Expr] | None:
        """The cell itself, or a constant."""
        if load[2:] == self.statement.access:
            if not self.step.new.buffers[load[2]].is_parameter:
                self.prove_written(load)
            return None
        if self.step.source(self.statement.number, load).kind == "assume":
            return self.assumed(load)
        return frozenset({self.stored(load)})

    def assumed(self, load: Expr) -> frozenset[Expr]:
        """The constant that an assumption says a parameter's element is, of one that is only read. Equal to a zero are
        both zeros.
        """
        step, source = self.step, self.step.source(self.statement.number, load)
        if not 0 <= source.index < len(step.new.statements):
            raise Rejected("an assumption is expected")
        statement = step.new.statements[source.index]
        if statement.kind != "assume" or step.new.data(load[2]) in step.new.written():
            raise Rejected(f"{load[2]} may change")
        context, here = self.asked()
        at = context.image(source.map, here.values, statement)
        prove_executed(step, context, at)
        every = core.terms(statement.condition, "or")
        said = [d for d in every if d[0] == "==" and d[2][0] == "load" and d[3][0] == "const"]
        if len(said) != 1 or said[0][2][2] != load[2]:
            raise Rejected(f"the assumption of line {statement.line} gives no value")
        for other in (d for d in every if d is not said[0]):
            if not core.is_affine_condition(other):
                raise Rejected(f"the assumption of line {statement.line} depends on other data")
            context.refuse(context.cases(other, at.env, True))
        for a, b in zip(said[0][2][3], load[3], strict=True):
            context.refuse(differ(context.number(a, at.env), context.number(b, here.env)))
        zeros = frozenset(("const", load[1], zero) for zero in (_ZERO, _MINUS_ZERO))
        return zeros if said[0][3] in zeros else frozenset({said[0][3]})

    def stored(self, load: Expr) -> Expr:
        """The constant that every store to a cell stores, one of them before the load."""
        context, here, writer = self.prove_written(load)
        step, value = self.step, writer.value
        if value[0] != "const":
            raise Rejected(f"what line {writer.line} stores is computed")
        for store in step.new.stores:
            if step.new.data(store.buffer) == step.new.data(load[2]) and store.value != value:
                apart = context.copy()
                other = apart.instance(store, f"s{store.number}.")
                same = step.apart(apart, step.new, (load[2:], here.env), other.cell)
                apart.refuse((Case((), tuple(same)),))
        return value

    def prove_neutral(self, operator: str, value: Expr, *, is_left: bool) -> None:
        """A constant beside the value in the cell does not change it."""
        dtype, text = value[1], value[2]
        if core.is_index(dtype):
            low, high = core.integer_bounds(dtype)
            neutral = {"+": 0, "*": 1, "max": low, "min": high, **({} if is_left else {"-": 0})}
            if text == neutral.get(operator):
                return
        elif core.is_float(dtype):
            right = {"-": _ZERO} if not is_left else {"max": "-inf", "min": "inf"}
            # max(a, b) is a > b ? a : b: the second operand wherever the comparison is not true.
            if text == {"+": _MINUS_ZERO, "*": (1.0).hex(), **right}.get(operator):
                return
            if (operator, text) == ("+", _ZERO) or (operator, text, is_left) == ("-", _MINUS_ZERO, False):
                self.prove_no_minus_zero()
                return
        raise Rejected(f"{text} is not neutral in line {self.statement.line}")

    # ---- signs of zero

    def prove_no_minus_zero(self) -> None:
        """The cell was written, and nothing that is written to its memory is -0.0."""
        new = self.step.new
        self.prove_written(("load", self.statement.value[1], *self.statement.access))
        for store in new.stores:
            if new.data(store.buffer) == new.data(self.statement.buffer):
                first_of((partial(self._not_minus_zero, store, store.value), partial(self._not_there, store)))

    def _not_there(self, store: Statement) -> None:
        """A store does not write the cell."""
        context, at = self.asked()
        mine, theirs = (self.statement.access, at.env), context.instance(store, "w").cell
        context.refuse((Case((), tuple(self.step.apart(context, self.step.new, mine, theirs))),))

    def _not_minus_zero(self, store: Statement, e: Expr) -> None:
        operator = e[0]
        if operator == "const" and e[2] != _MINUS_ZERO:
            return
        if operator in ("+", "-"):
            first_of(partial(self._not_minus_zero, store, term) for term in (e[2:] if operator == "+" else e[2:3]))
        elif operator in ("max", "min", "if", "select"):
            for side in e[-2:]:
                self._not_minus_zero(store, side)
        elif operator == "load" and e[2:] == store.access:
            # What the cell held before: by induction it is not -0.0 once it was written.
            context = self.step.context()
            at = context.instance(store, "i")
            prove_written(self.step, self.step.new, context, at, e, self.step.source(store.number, e))
        else:
            raise Rejected(f"line {store.line} may store -0.0")


def located(program: Program, context: Context, reader: Instance, source: Source) -> Instance:
    """The instance of a store that is given with an instance of another."""
    if source.kind != "store" or not 0 <= source.index < len(program.stores):
        raise Rejected("a store is expected")
    return context.image(source.map, reader.values, program.stores[source.index])


def prove_meets(step: Step, program: Program, context: Context, reader: Instance, cell: Access, by: Source) -> Instance:
    """An instance of a store, which is given, is executed and writes a cell that another instance has to do with."""
    writer = located(program, context, reader, by)
    if program.data(writer.statement.buffer) != program.data(cell[0]):
        raise Rejected(f"line {writer.statement.line} writes another memory")
    prove_executed(step, context, writer)
    for apart in step.apart(context, program, writer.cell, (cell, reader.env)):
        context.refuse(differ(apart, Poly()))
    return writer


def prove_written(step: Step, program: Program, context: Context, reader: Instance, load: Expr, by: Source) -> Instance:
    """An instance of a store, which is given, writes the cell of a load before it."""
    writer = prove_meets(step, program, context, reader, load[2:], by)
    context.refuse(not_before(writer, reader))
    return writer


def folded(operator: str, dtype: str, a: Expr, b: Expr) -> Expr:
    """An operation on constants. In types of at most 32 bits a float64 result, rounded, is the correctly rounded one
    (53 bits are more than twice 24 and 2).
    """
    if core.is_index(dtype):
        value = core.computed(operator, a[2], b[2])
        if not core.fits(value, dtype):
            raise Rejected("a constant wraps")
        return ("const", dtype, value)
    if dtype not in ("float32", "float64") or "nan" in (a[2], b[2]):
        raise Rejected(f"constants of type {dtype} are not computed with")
    x, y = float.fromhex(a[2]), float.fromhex(b[2])
    if operator in ("max", "min"):
        return a if (x > y if operator == "max" else x < y) else b
    result = core.computed(operator, x, y)
    if dtype == "float32":
        try:
            result = struct.unpack("f", struct.pack("f", result))[0]
        except OverflowError as problem:
            raise Rejected("a constant overflows") from problem
    return ("const", dtype, result.hex())


# ---- padding that a step gives to a parameter


def prove_filled(step: Step, before: Buffer, after: Buffer, f: Map, contract: Expr) -> None:
    """Every cell of `after` that is no f(c) of `before` holds `contract` when the new program ends.

    The evidence names a store, at which of its instances a cell is written, and the inverse of f. A cell of the new box
    either is written by that instance, with that constant, or is f of the cell that the inverse says, and no padding.
    """
    fill, back = step.given.fills.get(after.data), step.given.backs.get(after.data)
    if fill is None or back is None or not 0 <= fill.index < len(step.new.stores):
        raise Rejected(f"nothing says what fills the padding of {after.name}")
    writer = step.new.stores[fill.index]
    if writer.buffer != after.name or contract[0] != "const":
        raise Rejected(f"line {writer.line} does not fill the padding of {after.name}")
    if not all(map(core.is_affine_condition, writer.guards)):
        raise Rejected(f"whether line {writer.line} fills the padding depends on data")
    if len(back.outputs) != len(before.shape) or len(f.outputs) != len(after.shape):
        raise Rejected(f"the inverse has not as many outputs as {before.name} has axes")

    context = step.context()
    cell = context.some_cell(after, "q")
    at = context.image(fill.map, cell, writer)
    without = context.copy()
    prove_executed(step, without, Instance(replace(writer, guards=()), at.env))
    without.prove_equal((without.number(index, at.env) for index in writer.indices), cell)
    others = list(_other_values(context, writer.value, at.env, contract))
    for guard in writer.guards:
        others.append(context.copy())
        others[-1].require(guard, at.env, truth=False)
    for other in others:
        source = list(other.outputs(back, cell))
        other.prove_inside(source, before.shape)
        other.prove_equal(other.outputs(f, source), cell)
    _prove_filled_alike(step, after, contract)


def _prove_filled_alike(step: Step, after: Buffer, contract: Expr) -> None:
    """What computes an old store writes cells f(c). Other instances store the same constant, or there are none."""
    for store in step.new.stores:
        if step.new.data(store.buffer) == after.data:
            for asked in extras(step, parts_of(step), store):
                context, at = asked()
                for other in _other_values(context, store.value, at.env, contract):
                    other.refuse(ALWAYS)


def _other_values(context: Context, value: Expr, env: Env, constant: Expr) -> Iterator[Context]:
    """The cases in which a value may be another one than a constant."""
    if value[0] in ("if", "select") and core.is_affine_condition(value[2]):
        for truth, side in ((True, value[3]), (False, value[4])):
            case = context.copy()
            case.require(value[2], env, truth)
            yield from _other_values(case, side, env, constant)
    elif value != constant:
        yield context

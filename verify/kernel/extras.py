"""Instances of the new program that compute no old one. They may write where no old cell is, or what is in the cell
already, or to a cell that is never read and not observable.

All of them are taken at their place in the new program, by induction over its time: those before have changed nothing
that counts. What is known of a load comes from an assumption about a parameter that is only read, or from the stores to
its memory.
That a cell does not hold -0.0 comes from what is stored there: a sum is -0.0 only where both its terms are, in
rounding to nearest (IEEE 754, 6.3).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from layoutproof.verify.kernel.encoding import Context, Env, differ, is_affine_condition, is_integer, loads_of
from layoutproof.verify.kernel.integers import Case
from layoutproof.verify.kernel.polynomials import Poly
from layoutproof.verify.kernel.programs import (
    Expr,
    Program,
    Statement,
    disjuncts,
    integer_bounds,
    is_float,
    parts,
    walk,
)
from layoutproof.verify.kernel.refinement import (
    Instance,
    Part,
    image,
    instance,
    not_before,
    prove_executed,
)
from layoutproof.verify.kernel.rejected import Rejected
from layoutproof.verify.kernel.step import Map, Source, Step

SELF: Expr = ("self",)
Asked = Callable[[], tuple[Context, Env]]
Rule = Callable[["NoOp"], None]
_MINUS_ZERO = (-0.0).hex()
_ZERO = (0.0).hex()


def extras(step: Step, all_parts: Sequence[Part], new: Statement) -> Iterator[Asked]:
    """Instances of a new store that no part speaks of, by cases, each in a question of its own: of one part those where
    a condition of it is the first that is false.
    """
    mine = [part for part in all_parts if part.new is new]
    if any(part.condition is None for part in mine):
        return
    conditions = _conjuncts(mine[0].condition) if len(mine) == 1 and mine[0].condition is not None else []

    def one(first_false: int) -> tuple[Context, Env]:
        context = step.context()
        env = instance(context, new, "i")
        for part in mine:
            inputs = part.theta.inputs([env[loop.var] for loop in new.loops], context.symbols)
            if conditions:
                for condition in conditions[:first_false]:
                    context.require(condition, inputs)
                context.require(conditions[first_false], inputs, truth=False)
            elif part.condition is not None:
                context.require(part.condition, inputs, truth=False)
        return context, env

    for number in range(max(len(conditions), 1)):
        yield partial(one, number)


def prove_extras(step: Step, all_parts: Sequence[Part], new: Statement, rules: Sequence[Rule]) -> None:
    """Instances that compute no old one change nothing that counts, by one of the rules here or of those given."""
    for asked in extras(step, all_parts, new):
        if step.is_impossible(asked()[0]):
            continue
        forbid_open_padding(step, new)
        if any(loads_of(index) for index in new.indices):
            raise Rejected(f"where line {new.line} stores depends on data")
        for guard in new.guards:
            NoOp(step, new, asked, all_parts).prove_evaluated(guard)
        reasons = []
        for prove in (prove_new_cell, NoOp.prove, *rules):
            try:
                prove(NoOp(step, new, asked, all_parts))
                break
            except Rejected as problem:
                reasons.append(str(problem))
        else:
            raise Rejected("; ".join(reasons))


def forbid_open_padding(step: Step, statement: Statement) -> None:
    """Nothing that a statement touches has padding without a contract, which may not be touched."""
    texts = (*statement.guards, *statement.indices, statement.value)
    for name in {statement.buffer, *(load[2] for text in texts for load in loads_of(text))}:
        if any(entry.get("contract") is None for entry in record(step, name)):
            raise Rejected(f"{name} has padding without a contract")


def record(step: Step, name: str) -> Sequence[Mapping[str, Any]]:
    """The layouts of a memory, one after another."""
    entries: Sequence[Mapping[str, Any]] = step.new.layouts.get(step.new.buffers[name].data, {"steps": []})["steps"]
    return entries


def prove_new_cell(extra: NoOp) -> None:
    """The cell is no f(c)."""
    step, new = extra.step, extra.statement
    source = step.source_of(step.new.buffers[new.buffer])
    if source is not None:
        if source[1] is None:
            raise Rejected("every cell of the memory is an old one")
        if step.is_fresh(step.new.buffers[new.buffer]):
            raise Rejected("no map says which cells of the memory are old ones")
        context, index = extra.cell()
        prove_outside(step, context, index, source[0].shape, source[1])
    extra.prove_evaluated(new.value)


def prove_outside(step: Step, context: Context, index: Sequence[Poly], shape: Sequence[Expr], f: Map) -> None:
    """No cell of a box has its image in a cell."""
    cell = [Poly.var(f"c{axis}") for axis in range(len(shape))]
    for value, extent in zip(cell, shape, strict=True):
        context.between(value, Poly.const(0), context.number(extent, context.symbols))
    inputs = f.inputs(cell, context.symbols)
    for output, value in zip(f.outputs, index, strict=True):
        context.zeros.append(context.number(output, inputs) - value)
    step.refuse(context, (Case(),))


@dataclass(slots=True)
class NoOp:
    """An instance that no part of theta speaks of, in a question of its own each time, of the store `statement`."""

    step: Step
    statement: Statement
    asked: Asked
    parts: Sequence[Part]

    def cell(self) -> tuple[Context, list[Poly]]:
        """A question, and the index of the cell in it."""
        context, env = self.asked()
        return context, [context.number(index, env) for index in self.statement.indices]

    def prove_evaluated(self, value: Expr) -> None:
        """Evaluating a value is no fault, whatever it is. That loads are in bounds, and arithmetic without data has a
        result, is proved of all statements.
        """
        for part in walk(value):
            traps = part[0] in ("//", "%", "truncdiv", "truncmod", "<<", ">>", "cast") or (
                part[0] == "call" and not all(is_float(x[1]) for x in (part, *parts(part)))
            )
            if traps and loads_of(part):
                raise Rejected(f"what line {self.statement.line} computes beyond the old program may trap")
            if part[0] == "load":
                self._prove_indices_fit(part)
            if part[0] == "load" and not self.step.new.buffers[part[2]].is_parameter:
                context, env = self.asked()
                source = self.step.source(self.statement.number, part)
                prove_written(self.step, self.step.new, context, (self.statement, env), part, source)

    def _prove_indices_fit(self, load: Expr) -> None:
        for index in load[3]:
            context, env = self.asked()
            self.step.prove_fits(context, index, env)

    def prove(self) -> None:
        """The value that is stored is the value in the cell. Raises Rejected."""
        if self.simplified(self.statement.value) != SELF:
            raise Rejected(f"line {self.statement.line} may store another value than the one that is there")

    def simplified(self, e: Expr) -> Expr:
        """The expression, or SELF where it is the value in the cell, or a constant. Raises Rejected where a load is not
        known, or it may trap.
        """
        operator, dtype = e[0], e[1]
        if operator == "const":
            return e
        if operator == "load":
            if any(map(loads_of, e[3])):
                raise Rejected(f"an index in line {self.statement.line} depends on data")
            return self.loaded(e)
        if operator in ("if", "select"):
            return self.chosen(e)
        if operator in ("+", "-", "*", "max", "min"):
            a, b = self.simplified(e[2]), self.simplified(e[3])
            if a[0] == "const" == b[0]:
                return folded(operator, dtype, a, b)
            return self.with_identity(operator, dtype, a, b)
        raise Rejected(f"nothing is known of {operator} in line {self.statement.line}")

    def chosen(self, e: Expr) -> Expr:
        """The side that is taken, where the condition speaks of indices alone and is known."""
        for truth, side in ((True, e[3]), (False, e[4])):
            try:
                context, env = self.asked()
                self.step.refuse(context, context.cases(e[2], env, not truth))
            except Rejected:
                continue
            if e[0] == "select":
                self.prove_evaluated(e[4] if truth else e[3])
            if is_affine_condition(e[2]):
                return self.simplified(side)
        raise Rejected(f"a condition in line {self.statement.line} is not known")

    def loaded(self, load: Expr) -> Expr:
        """The cell itself, or a constant."""
        is_self = (load[2], load[3]) == (self.statement.buffer, self.statement.indices)
        if is_self and self.step.new.buffers[load[2]].is_parameter:
            return SELF
        source = self.step.source(self.statement.number, load)
        context, env = self.asked()
        if is_self:
            prove_written(self.step, self.step.new, context, (self.statement, env), load, source)
            return SELF
        if source.kind == "assume":
            return assumed(self.step, context, env, self.statement, load, source)
        return stored(self.step, context, env, self.statement, load, source)

    def with_identity(self, operator: str, dtype: str, a: Expr, b: Expr) -> Expr:
        """SELF, where the other operand is neutral beside it."""
        value = b if a == SELF else a
        if SELF not in (a, b) or value[0] != "const":
            raise Rejected(f"the operands of {operator} in line {self.statement.line} are not known")
        if is_integer(dtype):
            neutral = {"+": 0, "*": 1, "max": _least(dtype), "min": _greatest(dtype), "-": 0}[operator]
            if value[2] == neutral and not (operator == "-" and b == SELF):
                return SELF
        elif is_float(dtype):
            text = value[2]
            if (operator == "+" and text == _MINUS_ZERO) or (operator == "*" and text == (1.0).hex()):
                return SELF
            if operator == "-" and a == SELF and text == _ZERO:
                return SELF
            # max(a, b) is a > b ? a : b: the second operand wherever the comparison is not true.
            if b == SELF and (operator, text) in (("max", "-inf"), ("min", "inf")):
                return SELF
            if operator == "+" and text == _ZERO:
                self.prove_no_minus_zero()
                return SELF
        raise Rejected(f"{value[2]} is not neutral in line {self.statement.line}")

    # ---- signs of zero

    def prove_no_minus_zero(self) -> None:
        """The cell was written, and nothing that is written to its memory is -0.0."""
        data = self.step.new.buffers[self.statement.buffer].data
        cell: Expr = ("load", self.statement.value[1], self.statement.buffer, self.statement.indices)
        context, env = self.asked()
        source = self.step.source(self.statement.number, cell)
        prove_written(self.step, self.step.new, context, (self.statement, env), cell, source)
        for store in self.step.new.stores:
            if self.step.new.buffers[store.buffer].data == data:
                try:
                    self._not_minus_zero(store, store.value)
                except Rejected:
                    self._not_there(store)

    def _not_there(self, store: Statement) -> None:
        """A store does not write the cell."""
        context, env = self.asked()
        other = instance(context, store, "w")
        mine, theirs = ((s.buffer, s.indices) for s in (self.statement, store))
        same = self.step.apart(context, (mine, env), (theirs, other))
        self.step.refuse(context, (Case((), tuple(same)),))

    def _not_minus_zero(self, store: Statement, e: Expr) -> None:
        operator = e[0]
        if operator == "const" and e[2] != _MINUS_ZERO:
            return
        if operator == "+":
            try:
                self._not_minus_zero(store, e[2])
            except Rejected:
                self._not_minus_zero(store, e[3])
            return
        if operator in ("max", "min", "if", "select"):
            for side in e[-2:]:
                self._not_minus_zero(store, side)
            return
        if operator == "load" and (e[2], e[3]) == (store.buffer, store.indices):
            # What the cell held before: by induction it is not -0.0 once it was written.
            context = self.step.context()
            env = instance(context, store, "i")
            prove_written(self.step, self.step.new, context, (store, env), e, self.step.source(store.number, e))
            return
        raise Rejected(f"line {store.line} may store -0.0")


def assumed(step: Step, context: Context, env: Env, reader: Statement, load: Expr, source: Source) -> Expr:
    """The constant that an assumption says a parameter's element is, of one that is only read."""
    if not 0 <= source.index < len(step.new.statements):
        raise Rejected("an assumption is expected")
    statement = step.new.statements[source.index]
    data = step.new.buffers[load[2]].data
    if statement.kind != "assume" or any(step.new.buffers[s.buffer].data == data for s in step.new.stores):
        raise Rejected(f"{load[2]} may change")
    at = image(context, source.map, source.map.inputs(_loops(reader, env), context.symbols), statement)
    prove_executed(step, context, (statement, at), ())
    said_of = disjuncts(statement.condition)
    said = [d for d in said_of if d[0] == "==" and d[2][0] == "load" and d[3][0] == "const"]
    if len(said) != 1 or said[0][2][2] != load[2]:
        raise Rejected(f"the assumption of line {statement.line} gives no value")
    for other in said_of:
        if other is not said[0]:
            if not is_affine_condition(other):
                raise Rejected(f"the assumption of line {statement.line} depends on other data")
            step.refuse(context, context.cases(other, at, True))
    for a, b in zip(said[0][2][3], load[3], strict=True):
        step.refuse(context, differ(context.number(a, at), context.number(b, env)))
    constant: Expr = said[0][3]
    return constant


def stored(step: Step, context: Context, env: Env, statement: Statement, load: Expr, source: Source) -> Expr:
    """The constant that every store to a cell stores, one of them before the load."""
    writer, _ = prove_written(step, step.new, context, (statement, env), load, source)
    if writer.value[0] != "const":
        raise Rejected(f"what line {writer.line} stores is computed")
    data = step.new.buffers[load[2]].data
    for store in step.new.stores:
        buffer = step.new.buffers[store.buffer]
        if buffer.data == data and store.value != writer.value:
            other = instance(context, store, f"s{store.number}.")
            same = step.apart(context, ((load[2], load[3]), env), ((store.buffer, store.indices), other))
            step.refuse(context, (Case((), tuple(same)),))
    constant: Expr = writer.value
    return constant


def located(program: Program, context: Context, reader: Instance, source: Source) -> Instance:
    """The instance of a store that is given with an instance of another."""
    if source.kind != "store" or not 0 <= source.index < len(program.stores):
        raise Rejected("a store is expected")
    writer = program.stores[source.index]
    return writer, image(context, source.map, source.map.inputs(_loops(*reader), context.symbols), writer)


def prove_meets(
    step: Step, program: Program, context: Context, reader: Instance, cell: tuple[Any, ...], source: Source
) -> Instance:
    """An instance of a store, which is given, is executed and writes a cell that another instance has to do with."""
    writer, at = located(program, context, reader, source)
    if program.buffers[writer.buffer].data != program.buffers[cell[0]].data:
        raise Rejected(f"line {writer.line} writes another memory")
    prove_executed(step, context, (writer, at), ())
    accesses = ((writer.buffer, writer.indices), at), (cell, reader[1])
    for apart in step.apart(context, *accesses, is_old=program is step.old):
        step.refuse(context, differ(apart, Poly()))
    return writer, at


def prove_written(
    step: Step, program: Program, context: Context, reader: Instance, load: Expr, source: Source
) -> Instance:
    """An instance of a store, which is given, writes the cell of a load before it."""
    writer, at = prove_meets(step, program, context, reader, load[2:], source)
    step.refuse(context, not_before(writer, at, *reader))
    return writer, at


def _loops(statement: Statement, env: Env) -> list[Poly]:
    return [env[loop.var] for loop in statement.loops]


def _conjuncts(e: Expr) -> list[Expr]:
    return [*_conjuncts(e[2]), *_conjuncts(e[3])] if e[0] == "and" else [e]


def folded(operator: str, dtype: str, a: Expr, b: Expr) -> Expr:
    """An operation on constants. In types of at most 32 bits a float64 result, rounded, is the correctly rounded one
    (53 bits are more than twice 24 and 2).
    """
    if is_integer(dtype):
        result = {"+": a[2] + b[2], "-": a[2] - b[2], "*": a[2] * b[2], "max": max(a[2], b[2]), "min": min(a[2], b[2])}
        value = result[operator]
        if not _least(dtype) <= value <= _greatest(dtype):
            raise Rejected("a constant wraps")
        return ("const", dtype, value)
    if dtype not in ("float32", "float64") or "nan" in (a[2], b[2]):
        raise Rejected(f"constants of type {dtype} are not computed with")
    x, y = float.fromhex(a[2]), float.fromhex(b[2])
    if operator in ("max", "min"):
        return a if (x > y if operator == "max" else x < y) else b
    value = x + y if operator == "+" else x - y if operator == "-" else x * y
    if dtype == "float32":
        try:
            value = struct.unpack("f", struct.pack("f", value))[0]
        except OverflowError as problem:
            raise Rejected("a constant overflows") from problem
    if value != value:
        return ("const", dtype, "nan")
    return ("const", dtype, value.hex())


def _least(dtype: str) -> int:
    return integer_bounds(dtype)[0]


def _greatest(dtype: str) -> int:
    return integer_bounds(dtype)[1]

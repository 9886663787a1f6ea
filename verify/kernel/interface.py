"""What callers see: parameters, their cells and padding, and what is assumed of them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, islice, product
from typing import Any

from layoutproof.verify.kernel.encoding import Context, differ, loads_of
from layoutproof.verify.kernel.integers import Case
from layoutproof.verify.kernel.padding import prove_filled
from layoutproof.verify.kernel.polynomials import Poly
from layoutproof.verify.kernel.programs import (
    Buffer,
    Expr,
    Program,
    Statement,
    disjuncts,
    fits,
    is_integer,
    lanes_of,
    parts,
    walk,
)
from layoutproof.verify.kernel.reader import read_extent, read_map, read_value, scope_of
from layoutproof.verify.kernel.refinement import instance, prove_executed, prove_same
from layoutproof.verify.kernel.rejected import Rejected
from layoutproof.verify.kernel.step import Map, Step

_MOST_NUMBERS, _MOST_TRIES = 24, 5_000


def _cell(context: Context, buffer: Buffer, tag: str) -> list[Poly]:
    """Some cell of a buffer."""
    cell = [Poly.var(f"{tag}{axis}") for axis in range(len(buffer.shape))]
    for value, extent in zip(cell, buffer.shape, strict=True):
        context.between(value, Poly.const(0), context.number(extent, context.symbols))
    return cell


def prove_cells(step: Step, new_data: str) -> None:
    """f is one-to-one on a memory, and its image lies inside the new buffer."""
    cells = {**step.copies.memories, **step.rewrite.cells}[new_data]
    if cells is None:
        return
    old_data = cells[0]
    new, old = step.owner(step.new, new_data), step.owner(step.old, old_data)
    if new is None or old is None:
        raise Rejected(f"the witness names a memory that does not exist, of {old_data} and {new_data}")
    if [entry[0] for entry in step.rewrite.cells.values()].count(old_data) > 1:
        raise Rejected(f"two memories hold the cells of {old_data}")
    f = Map(*cells[1:])
    context = step.context()
    c, d = _cell(context, old, "c"), _cell(context, old, "d")
    for output in f.outputs:
        context.zeros.append(
            context.number(output, f.inputs(c, context.symbols)) - context.number(output, f.inputs(d, context.symbols))
        )
    for a, b in zip(c, d, strict=True):
        step.refuse(context, differ(a, b))
    if new_data not in step.rewrite.cells:
        return  # All accesses are proved to be inside, and no cell of another memory is there.
    if len(f.outputs) != len(new.shape):
        raise Rejected(f"{new.name} has {len(new.shape)} axes, the map {len(f.outputs)} outputs")
    for output, extent in zip(f.outputs, new.shape, strict=True):
        context = step.context()
        value = context.number(output, f.inputs(_cell(context, old, "c"), context.symbols))
        past = value - context.number(extent, context.symbols)
        step.refuse(context, (Case((-value - 1,)), Case((past,))))


def prove_interface(step: Step) -> None:
    """Parameters keep their order, types and cells, but for layouts that the step declares to change and records."""
    old, new = step.old, step.new
    if old.params != new.params or _may_overlap(old) or _may_overlap(new) or (new.noalias and not old.noalias):
        raise Rejected("the parameters differ, or may overlap")
    if not set(new.symbols) <= set(old.symbols):
        raise Rejected("the new program has symbols of its own")
    if any(condition not in step.assumed for condition in new.assumed):
        raise Rejected("the new program assumes more of its symbols")
    rest = [{k: v for k, v in p.attributes.items() if k != "layoutproof.layout"} for p in (old, new)]
    if rest[0] != rest[1]:
        raise Rejected("attributes of the function differ")
    written, stored = ({p.buffers[s.buffer].data for s in p.stores} for p in (old, new))
    for before in (b for b in old.buffers.values() if b.is_parameter):
        _prove_kept(step, before, before.data in written)
    if any(b.is_parameter and b.data in stored - written for b in new.buffers.values()):
        raise Rejected("a parameter that was only read is written")
    for name in sorted(set(old.layouts) | set(new.layouts)):
        owner = step.owner(new, name)
        if owner is not None and not owner.is_parameter:
            _prove_temporary_recorded(step, owner)


def _may_overlap(program: Program) -> bool:
    """Whether a write to a parameter may change another one. A single one shares its memory with its views alone; and
    of what is only read it does not matter whether it overlaps.
    """
    owned = [b.data for b in program.buffers.values() if b.is_parameter]
    written = {program.buffers[s.buffer].data for s in program.stores}
    return not program.noalias and len(owned) > 1 and bool(written & set(owned))


def _prove_kept(step: Step, before: Buffer, is_written: bool) -> None:
    """A parameter is the same one; where its cells move, the step declares it and the record says so."""
    after = step.new.buffers.get(before.name)
    if after is None or not after.is_parameter or (before.data, before.dtype) != (after.data, after.dtype):
        raise Rejected(f"the parameter {before.name} is another one")
    source = step.source_of(after)
    if source is None or source[0].data != after.data:
        raise Rejected(f"the cells of {before.name} are elsewhere")
    if (before.strides, before.offset, before.scope) != (after.strides, after.offset, after.scope) or before.strides:
        raise Rejected(f"the parameter {before.name} has strides")
    if source[1] is not None:
        if before.name not in step.rewrite.interface:
            raise Rejected(f"the layout of {before.name} changes, and no change is declared")
        _prove_recorded(step, before, after, source[1])
        contract = step.new.layouts[after.data]["steps"][-1].get("contract")
        if is_written and contract not in (None, "undef"):
            prove_filled(step, before, after, source[1], read_value(str(contract)))
    elif before.shape != after.shape or step.old.layouts.get(before.data) != step.new.layouts.get(before.data):
        raise Rejected(f"{before.name} has another shape or record")


def _prove_temporary_recorded(step: Step, after: Buffer) -> None:
    """The record of a temporary stays, or goes on by the step's map."""
    source = step.source_of(after)
    if source is not None and source[1] is not None:
        old = step.old.layouts.get(source[0].data)
        if step.new.layouts.get(after.data) not in (old, None) or old is not None:
            _prove_recorded(step, source[0], after, source[1])
    elif step.old.layouts.get(after.data) != step.new.layouts.get(after.data):
        raise Rejected(f"the record of {after.name} is another one")


def _prove_recorded(step: Step, before: Buffer, after: Buffer, f: Map) -> None:
    """The record of a memory continues the old one by one step, which says what f says."""
    old, new = step.old.layouts.get(before.data, {"steps": []}), step.new.layouts.get(after.data, {"steps": []})
    symbols, context = scope_of(step.new.symbols), step.context()
    logical = [read_extent(str(extent), symbols) for extent in new.get("logical_shape", ())]
    if old["steps"] and new.get("logical_shape") != old.get("logical_shape"):
        raise Rejected(f"the record of {before.name} has another logical shape")
    if not old["steps"]:
        if len(logical) != len(before.shape):
            raise Rejected(f"the record of {before.name} has another number of axes")
        _prove_same_extents(step, logical, before.shape)
    if new["steps"][:-1] != old["steps"] or not new["steps"]:
        raise Rejected(f"the record of {before.name} does not continue the old one")
    last: dict[str, Any] = new["steps"][-1]
    names, outputs, where = read_map(str(last.get("index_map")), symbols, {})
    shape = [read_extent(str(extent), symbols) for extent in last.get("shape", ())]
    if names is None or where is not None or (len(outputs), len(shape)) != (len(f.outputs), len(after.shape)):
        raise Rejected(f"the record of {before.name} has no such map")
    recorded = Map(names, outputs)
    cell = _cell(context, before, "c")
    inputs = recorded.inputs(cell, context.symbols), f.inputs(cell, context.symbols)
    for a, b in zip(outputs, f.outputs, strict=True):
        step.refuse(context, differ(context.number(a, inputs[0]), context.number(b, inputs[1])))
    _prove_same_extents(step, shape, after.shape)


def _prove_same_extents(step: Step, shape: Sequence[Expr], other: Sequence[Expr]) -> None:
    context = step.context()
    for a, b in zip(shape, other, strict=True):
        step.refuse(context, differ(context.number(a, context.symbols), context.number(b, context.symbols)))


def prove_assumption(step: Step, new: Statement) -> None:
    """What the new program assumes the old one assumes, at the same instance; or it speaks only of padding that this
    step gives to a parameter: then it is a condition on calls, and listed.
    """
    if not loads_of(new.condition) and new.condition in step.assumed:
        return
    for old in step.old.statements:
        if old.kind == "assume" and len(old.loops) == len(new.loops):
            try:
                _prove_same_assumption(step, old, new)
                return
            except Rejected:
                continue
    _prove_about_padding(step, new)


def _prove_same_assumption(step: Step, old: Statement, new: Statement) -> None:
    """Loops are paired in order. What is assumed is of parameters that are only read: when does not matter."""
    context = step.context()
    env = instance(context, new, "i")
    at = dict(context.symbols)
    for mine, theirs in zip(old.loops, new.loops, strict=True):
        at[mine.var] = env[theirs.var]
    prove_executed(step, context, (old, at), [(guard, env) for guard in new.guards])
    prove_same(step, context, (old.condition, at), (new.condition, env))
    for program, statement in ((step.old, old), (step.new, new)):
        for condition in (*statement.guards, statement.condition):
            _prove_only_read(program, condition)


def _prove_only_read(program: Program, condition: Expr) -> None:
    written = {program.buffers[s.buffer].data for s in program.statements if s.kind == "store"}
    for load in loads_of(condition):
        buffer = program.buffers[load[2]]
        if buffer.data in written or not program.buffers[buffer.data.removesuffix("_data")].is_parameter:
            raise Rejected(f"what is assumed of {buffer.name} depends on when")


def _prove_about_padding(step: Step, new: Statement) -> None:
    """Wherever the condition can be false, it loads one cell, and that is padding of a parameter's new layout."""
    loads = loads_of(new.condition)
    _prove_only_read(step.new, new.condition)
    said = [d for d in disjuncts(new.condition) if d[0] == "==" and d[2][0] == "load" and not loads_of(d[3])]
    if len(loads) != 1 or len(said) != 1 or loads_of(said[0][2])[0] is not loads[0] or any(map(loads_of, new.guards)):
        raise Rejected("an assumption is new")
    buffer = step.new.buffers[loads[0][2]]
    source = step.source_of(buffer)
    old, f = source if source is not None else (buffer, None)
    if f is None or buffer.name not in step.rewrite.interface:
        raise Rejected("an assumption is new, and not about padding of this step")
    contract = step.new.layouts[buffer.data]["steps"][-1].get("contract")
    if said[0][3] != (("undef", buffer.dtype) if contract == "undef" else read_value(str(contract))):
        raise Rejected(f"what is assumed of the padding of {buffer.name} is not its contract")
    context = step.context()
    env = instance(context, new, "i")
    cell = _cell(context, old, "c")
    inputs = f.inputs(cell, context.symbols)
    for output, index in zip(f.outputs, loads[0][3], strict=True):
        context.zeros.append(context.number(output, inputs) - context.number(index, env))
    step.refuse(context, context.cases(new.condition, env, False))


def prove_plain(program: Program) -> None:
    """Only forms that the rules here cover: elements in row-major order, each of one lane."""
    memories = {program.buffers[name].data for name in program.touched()}
    for buffer in program.buffers.values():
        is_own = buffer.data == f"{buffer.name}_data" and buffer.data in memories
        if is_own and (buffer.strides or buffer.offset[:1] + buffer.offset[2:] != ("const", 0)):
            raise Rejected(f"{buffer.name} has strides or an offset")
    for statement in program.statements:
        for text in (*statement.guards, *statement.indices, statement.value, statement.condition):
            if any(lanes_of(part[1]) > 1 for part in walk(text)):
                raise Rejected(f"line {statement.line} has vectors")


def prove_possible(step: Step) -> None:
    """The preconditions on symbols, sizes that fit among them, hold for some values: what is proved is not proved of
    nothing. Values of the texts and small ones are tried.
    """
    conditions = [e for text in step.assumed for e in walk(text)]
    numbers = {0, 1, 2, 3, 4, 8, 16, 64, *(e[2] for e in conditions if e[0] == "const" and is_integer(e[1]))}
    symbols = [(name, dtype) for name, dtype in step.old.symbols if is_integer(dtype)]
    chosen = sorted(numbers)[:_MOST_NUMBERS]
    diagonal = ([value] * len(symbols) for value in chosen)
    for values in islice(chain(diagonal, product(chosen, repeat=len(symbols))), _MOST_TRIES):
        at = {name: value for (name, _), value in zip(symbols, values, strict=True)}
        typed = all(fits(at[name], dtype) for name, dtype in symbols)
        fit = all(_fits(e, at) for sizes in step.sizes for e in sizes)
        if typed and fit and all(evaluated(e, at) is True for e in step.assumed):
            return
    raise Rejected("no values of the symbols were found that satisfy the preconditions")


def _fits(e: Expr, at: Mapping[str, int]) -> bool:
    value = evaluated(e, at)
    return value is not None and fits(value, e[1])


_FUNCTIONS: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "min": min,
    "max": max,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "and": operator.and_,
    "or": operator.or_,
}


def evaluated(e: Expr, at: Mapping[str, int]) -> int | bool | None:
    """The value of an expression of symbols; None where it has none, or speaks of anything else."""
    if e[0] == "const" and (is_integer(e[1]) or e[1] == "bool"):
        constant: int | bool = e[2]
        return constant
    if e[0] == "var":
        return at.get(e[2])
    given = [evaluated(part, at) for part in parts(e)]
    operands = [value for value in given if value is not None]
    if len(operands) != len(given) or (e[0] in ("//", "%") and operands[1] == 0):
        return None
    if e[0] in ("//", "%"):
        return operands[0] // operands[1] if e[0] == "//" else operands[0] % operands[1]
    if e[0] == "not":
        return not operands[0]
    if e[0] == "cast":
        return operands[0] if is_integer(e[1]) and is_integer(e[2][1]) and fits(operands[0], e[1]) else None
    return _FUNCTIONS[e[0]](*operands) if e[0] in _FUNCTIONS else None

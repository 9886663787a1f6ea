"""What callers see: parameters, their cells and padding, and what is assumed of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain, islice, product

from layoutproof.verify.kernel import programs as core
from layoutproof.verify.kernel.encoding import Context, Instance, out_of_type
from layoutproof.verify.kernel.extras import prove_conditions, prove_filled
from layoutproof.verify.kernel.lanes import is_lane
from layoutproof.verify.kernel.polynomials import Poly
from layoutproof.verify.kernel.programs import Buffer, Expr, Map, Program, Statement, is_index, loads_of
from layoutproof.verify.kernel.refinement import first_of, prove_executed, prove_same
from layoutproof.verify.kernel.rejected import Rejected
from layoutproof.verify.kernel.step import APART, Copies, Step

_MOST_NUMBERS, _MOST_TRIES = 24, 5_000


def prove_cells(step: Step, new_data: str) -> None:
    """f is one-to-one on a memory, and its image lies inside the new buffer."""
    cells = {**step.copies.memories, **step.rewrite.cells}[new_data]
    if cells is None:
        return
    old_data, f = cells
    new, old = step.new.owner(new_data), step.old.owner(old_data)
    if new is None or old is None:
        raise Rejected(f"the witness names a memory that does not exist, of {old_data} and {new_data}")
    if [entry[0] for entry in step.rewrite.cells.values()].count(old_data) > 1:
        raise Rejected(f"two memories hold the cells of {old_data}")
    context = step.context()
    c, d = context.some_cell(old, "c"), context.some_cell(old, "d")
    context.zeros += [a - b for a, b in zip(context.outputs(f, c), context.outputs(f, d), strict=True)]
    context.prove_equal(c, d)
    if new_data not in step.rewrite.cells:
        return  # All accesses are proved to be inside, and no cell of another memory is there.
    if len(f.outputs) != len(new.shape):
        raise Rejected(f"{new.name} has {len(new.shape)} axes, the map {len(f.outputs)} outputs")
    for output, extent in zip(f.outputs, new.shape, strict=True):
        context = step.context()
        context.prove_inside(context.outputs(Map(f.names, (output,)), context.some_cell(old, "c")), (extent,))


def prove_interface(step: Step) -> None:
    """Parameters keep their order, types and cells, but for layouts that the step declares to change and records."""
    old, new = step.old, step.new
    if old.params != new.params:
        raise Rejected("the parameters differ")
    if not set(new.symbols) <= set(old.symbols):
        raise Rejected("the new program has symbols of its own")
    if any(condition not in step.assumed for condition in new.assumed):
        raise Rejected("the new program assumes more of its symbols")
    _prove_attributes(step, old, new)
    _prove_aligned(old, new)
    for before in (b for b in old.buffers.values() if b.is_parameter):
        _prove_kept(step, before)
    for after in (b for b in new.buffers.values() if b.is_parameter):
        if after.name not in old.buffers or after.data in new.written() - old.written():
            raise Rejected(f"the parameter {after.name} was a number, or was only read and is written")
    for name in sorted(set(old.layouts) | set(new.layouts)):
        owner = new.owner(name)
        if owner is not None and not owner.is_parameter:
            _prove_temporary_recorded(step, owner)


def _prove_attributes(step: Step, old: Program, new: Program) -> None:
    """Attributes stay; a step may add as a condition on calls that no parameters overlap."""
    is_stated = not old.noalias and new.attributes.get(APART) in (True, 1)
    if new.noalias and not old.noalias and not is_stated:
        raise Rejected("the new program assumes that no parameters overlap")
    if step.overlaps and (step.rewrite.cells or step.copies != Copies()):
        raise Rejected("parameters may overlap, and cells or values take another way")
    stated = {**old.attributes, **({APART: new.attributes[APART]} if is_stated else {})}
    if {key: repr(value) for key, value in stated.items()} != {k: repr(v) for k, v in new.attributes.items()}:
        raise Rejected("attributes of the function differ")


def _prove_aligned(old: Program, new: Program) -> None:
    """Views of what callers give promise no more of its alignment than some did before."""
    for view in (b for b in new.buffers.values() if not new.is_temporary(b.name)):
        if view.promises[0] > max((b.promises[0] for b in old.buffers.values() if b.data == view.data), default=0):
            raise Rejected(f"callers have to align what {view.name} is a view of further")


def _prove_kept(step: Step, before: Buffer) -> None:
    """A parameter is the same one; where its cells move, the step declares it and the record says so."""
    after = step.new.buffers.get(before.name)
    if after is None or not after.is_parameter or (before.data, before.kind) != (after.data, after.kind):
        raise Rejected(f"the parameter {before.name} is another one")
    source = step.source_of(after)
    if source is None or source[0].data != after.data or before.promises != after.promises:
        raise Rejected(f"the cells of {before.name} are elsewhere, or callers promise something else of them")
    if (before.strides, before.offset, before.scope) != (after.strides, after.offset, after.scope) or before.strides:
        raise Rejected(f"the parameter {before.name} has strides")
    if source[1] is not None:
        if before.name not in step.rewrite.interface:
            raise Rejected(f"the layout of {before.name} changes, and no change is declared")
        _prove_recorded(step, before, after, source[1])
        contract = step.new.record(after.data).steps[-1].contract
        if before.data in step.old.written() and contract is not None and contract[0] != "undef":
            prove_filled(step, before, after, source[1], contract)
    elif (before.shape, before.separators) != (after.shape, after.separators):
        raise Rejected(f"{before.name} has another shape")
    elif step.old.layouts.get(before.data) != step.new.layouts.get(before.data):
        raise Rejected(f"{before.name} has another record")


def _prove_temporary_recorded(step: Step, after: Buffer) -> None:
    """The record of a temporary stays, or goes on by the step's map."""
    source, new = step.source_of(after), step.new.layouts.get(after.data)
    if source is not None and source[1] is not None:
        old = step.old.layouts.get(source[0].data)
        if new not in (old, None) or old is not None:
            _prove_recorded(step, source[0], after, source[1])
    elif step.old.layouts.get(after.data) != new:
        raise Rejected(f"the record of {after.name} is another one")


def _prove_recorded(step: Step, before: Buffer, after: Buffer, f: Map) -> None:
    """The record of a memory continues the old one by one step, which says what f says."""
    old, new, context = step.old.record(before.data), step.new.record(after.data), step.context()
    if not old.steps:
        _prove_same_extents(step, new.logical, before.shape)
    if (old.steps and new.logical != old.logical) or new.steps[:-1] != old.steps or not new.steps:
        raise Rejected(f"the record of {before.name} does not continue the old one")
    cell = context.some_cell(before, "c")
    context.prove_equal(context.outputs(new.steps[-1].map, cell), context.outputs(f, cell))
    _prove_same_extents(step, new.steps[-1].shape, after.shape)


def _prove_same_extents(step: Step, shape: Sequence[Expr], other: Sequence[Expr]) -> None:
    context = step.context()
    context.prove_equal(*((context.number(e, context.symbols) for e in extents) for extents in (shape, other)))


def prove_assumption(step: Step, new: Statement) -> None:
    """What the new program assumes the old one assumes, at the same instance; or it speaks only of padding that this
    step gives to a parameter: then it is a condition on calls, and listed.
    """
    prove_conditions(step, (), new)
    if loads_of(new.condition) or new.condition not in step.assumed:
        alike = [s for s in step.old.statements if s.kind == "assume" and len(s.loops) == len(new.loops)]
        ways = [partial(_prove_same_assumption, step, old, new) for old in alike]
        first_of((*ways, partial(_prove_about_padding, step, new)))


def _prove_same_assumption(step: Step, old: Statement, new: Statement) -> None:
    """Loops are paired in order. What is assumed is of parameters that are only read: when does not matter."""
    context = step.context()
    env = context.instance(new, "i").env
    at = {**context.symbols, **{a.var: env[b.var] for a, b in zip(old.loops, new.loops, strict=True)}}
    prove_executed(step, context, Instance(old, at), [(guard, env) for guard in new.guards])
    prove_same(step, context, (old.condition, at), (new.condition, env))
    for program, statement in ((step.old, old), (step.new, new)):
        _prove_only_read(step, program, *statement.guards, statement.condition)


def _prove_only_read(step: Step, program: Program, *conditions: Expr) -> None:
    for load in loads_of(*conditions):
        if step.may_change(program, load[2]) or program.is_temporary(load[2]):
            raise Rejected(f"what is assumed of {load[2]} depends on when")


def _prove_about_padding(step: Step, new: Statement) -> None:
    """Wherever the condition can be false, it loads one cell, and that is padding of a parameter's new layout."""
    loads = loads_of(new.condition)
    _prove_only_read(step, step.new, new.condition)
    every = core.terms(new.condition, "or")
    said = [d for d in every if d[0] == "==" and d[2][0] == "load" and not loads_of(d[3])]
    if len(loads) != 1 or len(said) != 1 or said[0][2] is not loads[0] or loads_of(*new.guards):
        raise Rejected("an assumption is new")
    buffer = step.new.buffers[loads[0][2]]
    old, f = step.source_of(buffer) or (buffer, None)
    if f is None or buffer.name not in step.rewrite.interface:
        raise Rejected("an assumption is new, and not about padding of this step")
    contract = step.new.record(buffer.data).steps[-1].contract
    # The symbols of a contract are the function's, also where a loop has the name of one.
    loops = [core.variable(loop) for loop in new.loops]
    said_of_loops = contract is None or any(e in loops for e in core.walk(contract))
    if said_of_loops or said[0][3] != core.at_cell(contract, loads[0][3]):
        raise Rejected(f"what is assumed of the padding of {buffer.name} is not its contract")
    context = step.context()
    env = context.instance(new, "i").env
    outputs = context.outputs(f, context.some_cell(old, "c"))
    context.zeros += [a - context.number(b, env) for a, b in zip(outputs, loads[0][3], strict=True)]
    context.prove(new.condition, env)


def prove_plain(program: Program) -> None:
    """Only forms that the rules here cover: elements in row-major order, each of one lane; bounds of loops without
    data; conditions that are evaluated once, though they stand at each lane. (At several statements they stand only if
    those write nothing that they read; the reader says so.)
    """
    memories = {program.data(name) for name in program.touched()}
    for buffer in program.buffers.values():
        is_own = buffer.data == f"{buffer.name}_data" and buffer.data in memories
        if is_own and (buffer.strides or buffer.offset[:1] + buffer.offset[2:] != ("const", 0)):
            raise Rejected(f"{buffer.name} has strides or an offset")
    for statement in program.statements:
        if any(core.lanes_of(part[1]) > 1 for text in statement.texts for part in core.walk(text)):
            raise Rejected(f"line {statement.line} has vectors")
        if loads_of(*(e for loop in statement.loops for e in (loop.start, loop.extent))):
            raise Rejected(f"a loop around line {statement.line} has a bound that depends on data")
        read = {program.data(load[2]) for load in loads_of(*statement.guards)}
        if any(map(is_lane, statement.loops)) and program.data(statement.buffer) in read:
            raise Rejected(f"line {statement.line} writes what a condition around it reads")


def prove_possible(step: Step) -> None:
    """The preconditions on symbols, sizes that fit among them, hold for some values: what is proved is not proved of
    nothing. Values of the texts and small ones are tried.
    """
    constants = [e[2] for text in step.assumed for e in core.walk(text) if e[0] == "const" and is_index(e[1])]
    chosen = sorted({0, 1, 2, 3, 4, 8, 16, 64, *constants})[:_MOST_NUMBERS]
    symbols = [(name, dtype) for name, dtype in step.old.symbols if is_index(dtype)]
    diagonal = ([value] * len(symbols) for value in chosen)
    for values in islice(chain(diagonal, product(chosen, repeat=len(symbols))), _MOST_TRIES):
        at = {name: Poly.const(value) for (name, _), value in zip(symbols, values, strict=True)}
        context = Context(())  # in which only what is plainly false is refuted
        try:
            for value, dtype in [(at[name], dtype) for name, dtype in symbols]:
                context.refuse(out_of_type(value, dtype))
            for e in (e for sizes in step.sizes for e in sizes):
                context.refuse(out_of_type(context.number(e, at), e[1]))
            for e in step.assumed:
                context.prove(e, at)
            return
        except Rejected:
            continue
    raise Rejected("no values of the symbols were found that satisfy the preconditions")

"""What callers see: the final state of parameters, padding whose contract is a value, and new assumptions about what
memory holds, which follow from old ones or are part of the changed interface. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.layout_record import Cell, Contract, LayoutRecord, LayoutStep, layout_records
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import substitute
from layoutproof.verify.algebra.radix import Polynomial
from layoutproof.verify.faults.reads import record_shape
from layoutproof.verify.flow.known_values import Fact, Knowledge, Known, is_closed, is_undefined
from layoutproof.verify.flow.models import NEW, OLD, ProgramModel, RewriteModel
from layoutproof.verify.flow.sources import Agreement
from layoutproof.verify.isl.encode import Encoder
from layoutproof.verify.isl.instance_sets import (
    Points,
    Region,
    Relation,
    Sources,
    covers,
    from_tuple,
    function_between,
    no_points,
    only,
    part_of,
    tuples_of,
    unnamed,
)
from layoutproof.verify.isl.operations import coalesced
from layoutproof.verify.program.statement import AssumedFact, NotModelled, Statements
from layoutproof.verify.values.fast_math import IEEE
from layoutproof.verify.values.prover import ValueProver
from layoutproof.verify.values.question import Identical, Question, ValueAnswer, together
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status


@dataclass(frozen=True, slots=True)
class FinalState:
    """The answer to whether the observable cells of a parameter end as they should; `where` are those that do not, if
    any: cells of the old program's memory, or, with `is_new`, of the new one's.
    """

    name: str
    claim: Claim
    answer: ValueAnswer
    where: Region | None = None
    is_new: bool = False


def compare_final_states(
    rewrite_model: RewriteModel,
    agreement: Agreement,
    new_facts: Knowledge,
    old_facts: Knowledge,
    values: ValueProver,
    postcondition_facts: Knowledge,
) -> Iterator[FinalState]:
    """One answer per written parameter, and one for its padding postcondition, from exact (not loose) facts."""
    for buffer in _written_parameters(rewrite_model):
        yield _observable(rewrite_model, agreement, new_facts, old_facts, values, buffer.data)
        yield from _postconditions(rewrite_model, postcondition_facts, values, buffer.data)


def observable_ends(program_model: ProgramModel) -> Iterator[tuple[Var, Sources]]:
    """For each written parameter, its memory in one program and the final cells that are observable."""
    rewrite_model = program_model.rewrite_model
    for buffer in _written_parameters(rewrite_model):
        old_data, new_data, step = rewrite_model.ends_of(rewrite_model.entry(buffer.data.name))
        box = rewrite_model.cells_region(rewrite_model.before, old_data)
        region = box.outside(_unobservable(rewrite_model.old, buffer.data, box))
        seen = only(region.named(f"{OLD}out_{buffer.data.name}"))
        yield (old_data, seen) if program_model.is_old else (new_data, seen.apply(step))


def ends_that_matter(program_model: ProgramModel) -> Sources:
    """The initial cells of written parameters that became observable ones, or are not undefined padding."""
    rewrite_model = program_model.rewrite_model
    seen = no_points(rewrite_model.encoder(()).space.universe())
    for data, final_states in observable_ends(program_model):
        box = rewrite_model.cells_region(program_model.flow, data)
        rest = box.outside(_unobservable(program_model.statements, data, box))
        became = box.within(part_of(final_states, f"{program_model.tag}out_{data.name}", box.points))
        name = f"{program_model.tag}in_{data.name}"
        seen = seen.union(only(rest.named(name))).union(only(became.named(name)))
    return seen


def _written_parameters(rewrite_model: RewriteModel) -> Iterator[Buffer]:
    # By whatever pointer.
    written = {s.data.name for statements in (rewrite_model.old, rewrite_model.new) for s in statements.statements}
    yield from (buffer for buffer in rewrite_model.rewrite.old.buffers if buffer.data.name in written)


def _buffer_name(function: PrimFunc, data: Var) -> str:
    return next((b.name for b in function.buffers if b.data.name == data.name), data.name)


def _observable(
    rewrite_model: RewriteModel,
    agreement: Agreement,
    new_facts: Knowledge,
    old_facts: Knowledge,
    values: ValueProver,
    data: Var,
) -> FinalState:
    output = _buffer_name(rewrite_model.rewrite.old, data)
    claim = Claim(ClaimKind.SAME_END, f"output buffer `{output}` is preserved", about=("output", output))
    old_data, new_data, step = rewrite_model.ends_of(rewrite_model.entry(data.name))
    name = f"{OLD}out_{data.name}"
    box = rewrite_model.cells_region(rewrite_model.before, old_data)
    region = box.outside(_unobservable(rewrite_model.old, old_data, box))
    points = agreement.of_ends(old_data, new_data, step, region, name)
    rest = region.outside(points)
    if rest.is_empty:
        return FinalState(data.name, claim, ValueAnswer(Status.PROVED))
    answers: list[ValueAnswer] = []
    regions: list[Region] = []
    unknown = ValueAnswer(Status.UNKNOWN, reason="what was stored last there is not what was")
    flows = step.apply_range(agreement.after.final(new_data)), rewrite_model.before.final(old_data)
    for known, other in _both(flows, (new_facts, old_facts), name, rest):
        if known.value is None or other is None or other.value is None:
            return FinalState(data.name, claim, unknown, known.region)
        answer = values.answer(Question(known.value, other.value))
        if answer.status is not Status.PROVED:
            return FinalState(data.name, claim, answer, known.region)
        answers.append(answer)
        regions.append(known.region)
    return FinalState(data.name, claim, together(answers) if covers(regions, rest) else unknown)


def _both(
    flows: tuple[Relation, Relation], facts: tuple[Knowledge, Knowledge], name: str, rest: Region
) -> Iterator[tuple[Known, Known | None]]:
    for known in facts[0].of_flow(_inside(flows[0], rest, name), name, rest):
        if known.value is None:
            yield known, None
            continue
        for other in facts[1].of_flow(_inside(flows[1], known.region, name), name, known.region):
            yield Known(other.region, known.value), other


def _inside(flow: Relation, region: Region, name: str) -> Relation:
    return flow.intersect_domain(only(region.named(name)))


def _unobservable(statements: Statements, data: Var, box: Region) -> Points:
    """Padding that is undefined or forbidden, among all cells of a memory."""
    nothing = box.points.subtract(box.points)
    record = layout_records(statements.program.function).get(data.name)
    if record is None or not _has_its_box(statements, data, record):
        return nothing
    for number, step in enumerate(record.steps):
        if step.padding in (Cell.PAD_UNDEF, Cell.PAD_FORBIDDEN):
            nothing = nothing.union(padding_of(record, number, box.encoder))
    return coalesced(nothing)


def _has_its_box(statements: Statements, data: Var, record: LayoutRecord) -> bool:
    """Whether the coordinates of a memory's cells are those of its record's last box, whose padding is told by them:
    the buffer may be declared with other extents, which count to as many cells.
    """
    box = record_shape(record, statements.program.symbols)
    return list(map(Polynomial.of, statements.cells[data])) == list(map(Polynomial.of, box))


def padding_of(record: LayoutRecord, number: int, encoder: Encoder) -> Points:
    """The cells of a record's last box, over which `encoder` is, that became padding in step `number`."""
    record.check_names(encoder.space.params)
    boxes = [_box(shape, encoder) for shape in (record.logical_shape, *(step.shape for step in record.steps))]
    maps = [step.index_map for step in record.steps]
    points: Points = boxes[number + 1][1]
    for position in range(number, len(maps)):
        inner, cells = boxes[position]
        outputs = maps[position].map_indices([Var(name) for name in inner.space.dims])
        step = function_between(inner, "from", outputs, "to")
        if position == number:
            points = coalesced(points.subtract(unnamed(cells.set_tuple_name("from").apply(step))))
        else:
            points = coalesced(unnamed(points.set_tuple_name("from").apply(step)).intersect(boxes[position + 1][1]))
    return points


def _box(shape: Sequence[Expr], encoder: Encoder) -> tuple[Encoder, Points]:
    names = [f"x{axis}" for axis in range(len(shape))]
    space = encoder.space.with_dims(names)
    inner = Encoder(space, space.universe())
    points = space.universe()
    for name, extent in zip(names, shape, strict=True):
        variable = inner.function(Var(name))
        points = points.intersect(variable.ge_set(inner.constant(0))).intersect(variable.lt_set(inner.function(extent)))
    return Encoder(space, points), points


def _postconditions(
    rewrite_model: RewriteModel, facts: Knowledge, values: ValueProver, data: Var
) -> Iterator[FinalState]:
    """Padding that this rewrite introduced, with a value for its contract, holds it at the end."""
    old_data, new_data, _ = rewrite_model.ends_of(rewrite_model.entry(data.name))
    record = layout_records(rewrite_model.rewrite.new).get(new_data.name)
    before = layout_records(rewrite_model.rewrite.old).get(old_data.name)
    known_steps = len(before.steps) if before is not None else 0
    if record is None or len(record.steps) == known_steps:
        return
    name = f"{NEW}out_{new_data.name}"
    box = rewrite_model.cells_region(rewrite_model.after, new_data)
    for number in range(known_steps, len(record.steps)):
        if record.steps[number].padding is not Cell.PAD_VALUE:
            continue
        name_of_buffer = _buffer_name(rewrite_model.rewrite.new, new_data)
        what = f"padding of `{name_of_buffer}` satisfies its contract `{record.steps[number].contract}`"
        names = (data.name, new_data.name)
        about = (name_of_buffer, str(record.steps[number].contract))
        claim = Claim(ClaimKind.PADDING_POSTCONDITION, what, buffers=names, about=about)
        if not _has_its_box(rewrite_model.new, new_data, record):
            raise NotModelled(f"the cells of {new_data.name} are not those of its layout record", None)
        region = box.within(padding_of(record, number, box.encoder))
        if region.is_empty:
            continue
        wanted = contract_value(rewrite_model.rewrite.new, new_data, record.steps[number].contract)
        if wanted is None:
            unknown = ValueAnswer(
                Status.UNKNOWN, reason="a pad value that is no constant is checked by simulation only"
            )
            yield FinalState(data.name, claim, unknown, region, is_new=True)
        else:
            unknown = ValueAnswer(Status.UNKNOWN, reason="what was stored last there is not known")
            state = FinalState(data.name, claim, unknown, region, is_new=True)
            stored = facts.of_flow(_inside(facts.flow.final(new_data), region, name), name, region)
            yield _holds(state, region, stored, values, wanted)


def _holds(state: FinalState, region: Region, stored: Sequence[Known], values: ValueProver, wanted: Expr) -> FinalState:
    """The state, which is unknown, with the answer to whether all cells of a region hold the wanted value."""
    answers: list[ValueAnswer] = []
    for known in stored:
        if known.value is None:
            return replace(state, where=known.region)
        # A contract is a promise to callers, who may rely on the sign of a zero: no fast-math assumption is taken.
        answer = values.answer(Question(known.value, wanted), IEEE)
        if answer.status is not Status.PROVED:
            return replace(state, answer=answer, where=known.region)
        answers.append(answer)
    complete = covers((known.region for known in stored), region)
    return replace(state, answer=together(answers), where=None) if complete else state


def contract_value(function: PrimFunc, data: Var, contract: Contract | None) -> Expr | None:
    """The pad value that the contract of a parameter's padding states, where it is a constant."""
    if contract is None or all(b.data != data for b in function.buffers):
        return None
    return contract.value if is_closed(contract.value) else None


def assumption_claim(assumption: AssumedFact) -> Claim:
    """That the new program may make an assumption."""
    text = expr_text(_readable(assumption), Style.PLAIN)
    accesses = [read.access for read in assumption.reads]
    buffers = tuple(name for access in accesses for name in (access.buffer.name, access.data.name))
    what = f"the assumption {text} may be made"
    return Claim(ClaimKind.ASSUMPTION, what, buffers=buffers, about=("contents", text))


def answer_assumption(
    rewrite_model: RewriteModel, number: int, new_facts: Knowledge, old_facts: Knowledge, moved: Sources
) -> ValueAnswer:
    """Whether the new program may make one of its assumptions, and why. `moved` are its instances that do not store
    what their counterparts did: updates of reductions that are regrouped.
    """
    assumption = rewrite_model.new.assumptions[number]
    open_ = ValueAnswer(Status.UNKNOWN, reason="it does not follow from what the old program assumes")
    if not assumption.reads:
        why = "it holds wherever the old program's assumptions do"
        return ValueAnswer(Status.PROVED, reason=why) if _holds_anyway(rewrite_model, assumption) else open_
    if _was_made(rewrite_model, number, assumption, moved):
        return ValueAnswer(Status.PROVED, reason="it was made before")
    if number not in new_facts.whole:
        return open_
    facts = [fact for fact in new_facts.facts if fact.number == number]
    undefined = [fact for fact in new_facts.undefined if fact.number == number]
    if all(_follows(rewrite_model, fact, old_facts.facts, moved) for fact in facts) and all(
        _follows(rewrite_model, fact, old_facts.undefined, moved) for fact in undefined
    ):
        return ValueAnswer(Status.PROVED, reason="it follows from what was assumed before")
    if all(_is_padding(rewrite_model, fact) for fact in (*facts, *undefined)):
        return ValueAnswer(Status.PROVED, reason="it speaks of padding of a parameter that is laid out anew")
    return open_


def stored_floats(rewrite_model: RewriteModel) -> Sources:
    """All instances that store a float: under a fast-math assumption it may differ from what it was in the sign of a
    zero.
    """
    stored = rewrite_model.nothing.domain()
    for statement in rewrite_model.new.statements:
        if statement.value.dtype.is_float:
            stored = stored.union(only(rewrite_model.after.domain(statement)))
    return stored


def _readable(assumption: AssumedFact) -> Expr:
    return substitute(assumption.condition, {r.var: Var(r.access.text, r.var.dtype) for r in assumption.reads})


def _holds_anyway(rewrite_model: RewriteModel, assumption: AssumedFact) -> bool:
    """Whether an assumption about loops holds for all symbols that satisfy the old program's."""
    broken = _broken(rewrite_model, assumption)
    for other in rewrite_model.old.assumptions:
        if not other.reads:
            broken = broken.subtract(_broken(rewrite_model, other))
    return bool(broken.is_empty())


def _broken(rewrite_model: RewriteModel, assumption: AssumedFact) -> Points:
    """The values of the symbols for which an assumption about loops fails somewhere."""
    instances = rewrite_model.workspace.instances(assumption.domain)
    return instances.points.intersect(instances.encoder.set_of(assumption.condition, False)).params()


def _was_made(rewrite_model: RewriteModel, number: int, assumption: AssumedFact, moved: Sources) -> bool:
    """Whether the old program has the same assumption, of the same sources, in the same instances."""
    return any(
        _is_the_same(rewrite_model, (number, assumption), (k, other), moved)
        for k, other in enumerate(rewrite_model.old.assumptions)
    )


def _is_the_same(
    rewrite_model: RewriteModel, mine: tuple[int, AssumedFact], theirs: tuple[int, AssumedFact], moved: Sources
) -> bool:
    (number, new), (old_number, old) = mine, theirs
    if (
        len(new.reads) != len(old.reads)
        or len(new.dims) != len(old.dims)
        or any(r.anywhere for r in (*new.reads, *old.reads))
    ):
        return False
    names = {o.var: n.var for n, o in zip(new.reads, old.reads, strict=True) if n.var.dtype == o.var.dtype}
    names |= {o.var: n.var for n, o in zip(new.dims, old.dims, strict=True) if n.var.dtype == o.var.dtype}
    if substitute(old.condition, names) != new.condition:
        return False
    for ours, other in zip(new.reads, old.reads, strict=True):
        found = rewrite_model.after.assumed_sources(number, ours).subtract_range(moved).apply_range(rewrite_model.theta)
        wanted = rewrite_model.before.assumed_sources(old_number, other)
        if not from_tuple(found, f"{NEW}a{number}", "at").is_equal(from_tuple(wanted, f"{OLD}a{old_number}", "at")):
            return False
    return True


def _follows(rewrite_model: RewriteModel, fact: Fact, old_facts: Sequence[Fact], moved: Sources) -> bool:
    carried = fact.sources.apply(rewrite_model.theta)
    lost = fact.sources.subtract(rewrite_model.theta.domain())
    if not lost.is_empty() or not fact.sources.intersect(moved).is_empty():
        return False
    for other in old_facts:
        if other.property == fact.property:
            carried = coalesced(carried.subtract(other.sources))
    return bool(carried.is_empty())


def _is_padding(rewrite_model: RewriteModel, fact: Fact) -> bool:
    """Whether a fact speaks of initial cells only that no old cell became, in parameters whose layout the rewrite
    declares to change, and states of them what the layout record says.
    """
    for origin, _ in tuples_of(fact.sources):
        data = origin.removeprefix(f"{NEW}in_")
        buffer = next(
            (b for b in rewrite_model.rewrite.new.buffers if b.data.name == data and origin == f"{NEW}in_{data}"), None
        )
        if buffer is None or buffer.name not in rewrite_model.rewrite.witness.changes_interface:
            return False
        if not _is_in_contract(rewrite_model, buffer.data, fact):
            return False
    return bool(fact.sources.intersect(rewrite_model.theta.domain()).is_empty())


def _is_in_contract(rewrite_model: RewriteModel, data: Var, fact: Fact) -> bool:
    """Whether a fact about initial cells of a memory which no old cell became states what the contracts of the layout
    steps do that the rewrite adds: each step's of the padding that came with it.
    """
    record, before = (
        layout_records(rewrite_model.rewrite.new).get(data.name),
        layout_records(rewrite_model.rewrite.old).get(data.name),
    )
    known = len(before.steps) if before is not None else 0
    if record is None or len(record.steps) <= known:
        return False
    others = [
        k for k in range(known, len(record.steps)) if not _is_contract(rewrite_model, data, record.steps[k], fact)
    ]
    if not others:
        return True
    box = rewrite_model.cells_region(rewrite_model.after, data)
    if len(others) == len(record.steps) - known or not _has_its_box(rewrite_model.new, data, record):
        return False
    told = box.within(part_of(fact.sources, f"{NEW}in_{data.name}", box.points))
    return all(told.within(padding_of(record, k, box.encoder)).is_empty for k in others)


def _is_contract(rewrite_model: RewriteModel, data: Var, step: LayoutStep, fact: Fact) -> bool:
    """Whether a fact states what the contract of a layout step does."""
    match step.padding:
        case Cell.PAD_UNDEF:
            return isinstance(fact.property, Identical) and is_undefined(fact.property.value)
        case Cell.PAD_VALUE:
            value = contract_value(rewrite_model.rewrite.new, data, step.contract)
            return value is not None and fact.property == Identical(value)
        case _:
            return False

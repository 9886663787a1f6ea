"""All obligations of one program, at any stage of lowering: condition 3 ("no fault") of the checker, with views that
stay inside their memory and what a run tells of its inputs by not faulting. What is proved holds for every input and
every extent that the assumptions allow. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import TRUE, Expr, IntImm, Not, Select, Var, const, equal, is_zero
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import ForKind, Stmt
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import free_variables, nodes_of, substitute, walk
from layoutproof.verify.algebra.radix import Polynomial
from layoutproof.verify.faults.arithmetic import prove_index_fits, prove_no_trap
from layoutproof.verify.faults.bounds import element_number, find_outside, is_row_major, prove_in_bounds
from layoutproof.verify.faults.facts import (
    STRUCTURE,
    Facts,
    Stopwatch,
    left_open,
    proved,
    refuted,
    unknown,
    values_text,
    visible,
)
from layoutproof.verify.faults.races import prove_race_free
from layoutproof.verify.faults.reads import prove_no_forbidden_write, prove_readable
from layoutproof.verify.program.abstraction import survey_of
from layoutproof.verify.program.instances import (
    Access,
    AccessKind,
    Binding,
    Dim,
    Guard,
    IterationDomain,
    Program,
    Unknown,
    keeps_range,
)
from layoutproof.verify.program.questions import Cover, Search, above, at_least, below, same
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Proved, Status, Verdict


def prove_views(facts: Facts) -> tuple[Verdict, ...]:
    """One verdict a view that is not the buffer with which its memory came into being, in the order of the text."""
    verdicts: dict[tuple[Buffer, Var], Verdict] = {}
    for access in facts.program.accesses:
        owner = facts.program.allocation(access.data)
        key = (access.buffer, access.data)
        if owner is not None and key not in verdicts and _box(owner) != _box(access.buffer):
            verdicts[key] = _prove_view(facts, access.buffer, access.data, owner)
    return tuple(verdicts.values())


def not_excluded(verdicts: Sequence[Verdict], old: Facts) -> tuple[Verdict, ...]:
    """The verdicts on a new program, none refuted by symbols that the old one excludes: nothing is claimed there."""
    found: list[Verdict] = []
    for each in verdicts:
        values = (each.counterexample or {}).get("values", {})
        broken = next((c for c in old.program.assumed if old.holds(c, values) is False), None)
        if each.status is Status.REFUTED and broken is not None:
            reason = f"{each.reason}, where the old program assumes {expr_text(broken, Style.PLAIN)}"
            each = replace(each, status=Status.UNKNOWN, counterexample=None, reason=reason)
        found.append(each)
    return tuple(found)


def _box(buffer: Buffer) -> tuple[object, ...]:
    return (buffer.shape, buffer.strides, buffer.elem_offset, buffer.dtype.bytes)


def _size(buffer: Buffer) -> Polynomial:
    """How many bytes from the start of the memory the buffer reaches, where no extent is 0."""
    count = Polynomial.of(buffer.elem_offset)
    if buffer.strides:
        for extent, stride in zip(buffer.shape, buffer.strides, strict=True):
            count = count.plus(Polynomial.of(extent).plus(Polynomial({(): 1}), -1).times(Polynomial.of(stride)))
        count = count.plus(Polynomial({(): 1}))
    else:
        product = Polynomial({(): 1})
        for extent in buffer.shape:
            product = product.times(Polynomial.of(extent))
        count = count.plus(product)
    return count.times(Polynomial({(): buffer.dtype.bytes}))


def _prove_view(facts: Facts, view: Buffer, data: Var, owner: Buffer) -> Verdict:
    watch = facts.watch()
    what = f"the view {view.name} stays inside the memory of {owner.name}"
    claim = Claim(ClaimKind.WITHIN_MEMORY, what, about=(view.name, owner.name))
    # What lies before a parameter's elements, or between them, belongs to others.
    is_compact = is_row_major(owner) and is_zero(owner.elem_offset)
    has_gaps = data not in facts.program.temporaries and not is_compact
    engine = _engine_of_ends(facts, view, owner) if not has_gaps else None
    if engine is not None:
        return proved(claim, engine, watch)
    end = _size(owner).to_expr()
    undecided: Verdict | None = None
    for access in facts.program.touching(data):
        if access.buffer != view:
            continue
        if has_gaps and _is_element(facts, access, owner):
            continue
        if has_gaps:
            reason = f"{access.text} ({access.place}) may be none of the elements of {owner.name}"
            undecided = unknown(claim, STRUCTURE, reason, watch)
        verdict = _prove_access(facts, access, end, claim, watch)
        if isinstance(verdict, Proved):
            continue
        if verdict.counterexample is not None:
            return verdict
        undecided = undecided if undecided is not None else verdict
    return undecided if undecided is not None else proved(claim, "isl", watch)


def _is_element(facts: Facts, access: Access, owner: Buffer) -> bool:
    """Whether an access by a view certainly touches nothing but elements of a memory with strides or an offset."""
    domain, number = access.domain, Polynomial.of(element_number(access.buffer, access.indices))
    lanes, rest = divmod(access.buffer.dtype.bytes, owner.dtype.bytes)
    if rest or access.buffer.dtype.element.bytes != owner.dtype.bytes:
        return access.buffer.dtype == owner.dtype and _is_at_digits(facts, domain, number, owner)
    if lanes > 1:
        part = Dim(Var("part'"), const(0), const(lanes), ForKind.SERIAL)
        domain = replace(domain, dims=(*domain.dims, part))
        number = number.times(Polynomial({(): lanes})).plus(Polynomial.of(part.var))
    return _is_at_digits(facts, domain, number, owner)


def _is_at_digits(facts: Facts, domain: IterationDomain, number: Polynomial, owner: Buffer) -> bool:
    """Whether the element with a number is always at some index of its memory: first the index that the strides of the
    number itself suggest.
    """
    rest = number.plus(Polynomial.of(owner.elem_offset), -1)
    axes = list(zip(_strides(owner), owner.shape, strict=True))
    # Symbols, then the larger numbers.
    axes.sort(key=lambda axis: inf if axis[0].constant is None else axis[0].constant, reverse=True)
    inside = True
    for stride, extent in axes:
        digit, rest = rest.divided(stride)
        inside = inside and find_outside(facts, domain, digit.to_expr(), extent).is_empty
    if inside and not rest.terms:
        return True
    index = tuple(Var(f"element{axis}'", extent.dtype) for axis, extent in enumerate(owner.shape))
    dims = (Dim(v, const(0, v.dtype), e, ForKind.SERIAL) for v, e in zip(index, owner.shape, strict=True))
    there = Polynomial.of(element_number(owner, index)).to_expr()
    cover = Cover(replace(domain, dims=(*domain.dims, *dims)), (same(number.to_expr(), there),))
    return facts.model.uncovered(domain, [cover]).is_empty


def _strides(buffer: Buffer) -> list[Polynomial]:
    """How many elements one step along each axis is."""
    found = list(map(Polynomial.of, buffer.strides))
    weight = Polynomial({(): 1})
    for extent in reversed(buffer.shape) if not found else ():
        found.insert(0, weight)
        weight = weight.times(Polynomial.of(extent))
    return found


def _engine_of_ends(facts: Facts, view: Buffer, owner: Buffer) -> str | None:
    """What shows that a view begins no earlier than its memory, counts up, and ends no later; None where that is
    open.
    """
    spare, engine = _size(owner).plus(_size(view), -1), STRUCTURE
    for part in (Polynomial.of(view.elem_offset), *map(Polynomial.of, view.strides), spare):
        number = part.constant
        if number is None and facts.search(IterationDomain(), below(part.to_expr(), 0)).is_empty:
            engine = "isl"
        elif number is None or number < 0:
            return None
    return engine


def _prove_access(facts: Facts, access: Access, end: Expr, claim: Claim, watch: Stopwatch) -> Proved | Verdict:
    """That the access stays inside the memory, or the verdict where it may not."""
    first = (
        Polynomial.of(element_number(access.buffer, access.indices))
        .times(Polynomial({(): access.buffer.dtype.bytes}))
        .to_expr()
    )
    last = Polynomial.of(first).plus(Polynomial({(): access.buffer.dtype.bytes})).to_expr()
    for condition in (below(first, 0), above(last, end)):
        found = facts.search(access.domain, condition)
        if found.is_empty:
            continue
        if found.point is None or not _replays(facts, access, condition, found.point):
            return left_open(claim, found, watch)
        values = visible(access.domain, found.point, facts.program)
        text = f"{access.text} ({access.place}) lies outside the memory at {values_text(values)}"
        if access.data_dependent:
            return unknown(claim, found.engine, f"{text}, depending on data", watch)
        index = [int(evaluate(i, found.point)) for i in access.indices]
        counterexample = {"buffer": access.buffer.name, "place": str(access.place), "indices": index, "values": values}
        return refuted(claim, found.engine, counterexample, text, watch)
    return Proved()


def _replays(facts: Facts, access: Access, condition: Expr, point: Mapping[str, int]) -> bool:
    try:
        return facts.happens(access.domain, point) and bool(evaluate(condition, point))
    except (Trap, KeyError, TypeError):
        return False


@dataclass(frozen=True, slots=True)
class Content:
    """Wherever an instance of `domain` is, the element at `indices` of the parameter `buffer`, called `value`,
    satisfies `condition`: it is so from before the run until after it. Nothing in the iteration domain depends on data.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    domain: IterationDomain
    value: Var
    condition: Expr


def contents_of(rewrite: Rewrite, old: Facts) -> tuple[Content, ...]:
    """What fault-free runs of the old program tell of parameters that keep their layout and are never written."""
    moved = {cells.old_data for cells in rewrite.witness.cells}
    kept = {_place(after) for after in rewrite.new.buffers}
    same = [before for before in rewrite.old.buffers if _place(before) in kept and before.data.name not in moved]
    return tuple(_contents(old, set(unwritten(old, same))))


def _place(buffer: Buffer) -> tuple[object, ...]:
    return buffer.data, buffer.dtype, buffer.shape, buffer.strides, buffer.elem_offset


def unwritten(facts: Facts, parameters: Sequence[Buffer]) -> Iterator[Buffer]:
    """Those that nothing writes, by any name."""
    survey = survey_of(facts.program.function)
    if not survey.all_change:
        yield from (buffer for buffer in parameters if buffer.data not in survey.changing)


def _contents(facts: Facts, steady: set[Buffer]) -> Iterator[Content]:
    chosen = set(_chosen(facts.program.function.body))
    for access in facts.program.accesses:
        if access.kind is AccessKind.ASSUME or id(access.node) in chosen:
            continue
        for index, extent in zip(access.indices, access.buffer.shape, strict=True):
            unknown = _decides(index, access.domain)
            load = _load(unknown, access.domain, facts, steady) if unknown is not None else None
            if unknown is None or load is None:
                continue
            dims = {dim.var for dim in access.domain.dims}
            if dims & set(free_variables(extent)):
                continue
            domain = replace(access.domain, unknowns=())
            if not _certainly_happens(access.domain):
                continue
            for condition in (at_least(index, 0), below(index, extent)):
                yield Content(load.buffer, load.indices, domain, unknown.var, condition)


def _chosen(body: Stmt) -> Iterator[int]:
    """What stands on a side of a choice that evaluates both: compilers load there or not, as they like."""
    for node in nodes_of(body, Select):
        yield from (id(inner) for side in (node.then, node.otherwise) for inner in walk(side))


def _decides(index: Expr, domain: IterationDomain) -> Unknown | None:
    """The one value from data that decides an index: no loop does, and nothing on the way wraps."""
    variables, dims = set(free_variables(index)), {dim.var for dim in domain.dims}
    found = [unknown for unknown in domain.unknowns if unknown.var in variables]
    plain = all(keeps_range(node) for node in walk(index) if isinstance(node, Expr) and node.dtype.is_integer)
    return found[0] if len(found) == 1 and plain and not variables & dims else None


def _load(unknown: Unknown, domain: IterationDomain, facts: Facts, steady: set[Buffer]) -> BufferLoad | None:
    """The element of an unwritten parameter that an unknown is, at an index that does not depend on data."""
    match unknown.source:
        case BufferLoad(buffer=buffer, indices=indices) as load if _is_of(buffer, steady):
            plain = {*(dim.var for dim in domain.dims), *facts.program.symbols}
            return load if all(v in plain for index in indices for v in free_variables(index)) else None
        case _:
            return None


def _is_of(buffer: Buffer, steady: set[Buffer]) -> bool:
    """Whether a buffer is one of some, or has its elements row by row in another shape."""
    return buffer in steady or any(
        buffer.data == each.data and buffer.dtype == each.dtype and _is_row_major(buffer) and _is_row_major(each)
        for each in steady
    )


def _is_row_major(buffer: Buffer) -> bool:
    return not buffer.strides and buffer.elem_offset == IntImm(0) and buffer.dtype.lanes == 1


def _certainly_happens(domain: IterationDomain) -> bool:
    """Whether the instances of an iteration domain do not depend on data."""
    return not domain.depends_on_data()


def told(facts: Facts, contents: Sequence[Content]) -> Facts:
    """The facts of the new program, with contents stated in every iteration domain that uses them."""
    if not contents:
        return facts
    program = facts.program
    steady = set(unwritten(facts, program.function.buffers))
    domains: dict[tuple[object, ...], IterationDomain] = {}

    def said(domain: IterationDomain) -> IterationDomain:
        key = (domain.dims, domain.guards, domain.unknowns)
        if key not in domains:
            domains[key] = replace(domain, guards=(*domain.guards, *_guards(facts, domain, steady, contents)))
        return replace(domain, guards=domains[key].guards)

    accesses = tuple(replace(each, domain=said(each.domain)) for each in program.accesses)
    arithmetic = tuple(replace(each, domain=said(each.domain)) for each in program.arithmetic)
    return facts.of_program(replace(program, accesses=accesses, arithmetic=arithmetic))


def _guards(facts: Facts, domain: IterationDomain, steady: set[Buffer], contents: Sequence[Content]) -> Iterator[Guard]:
    names = {dim.var.name for dim in domain.dims}
    for source in domain.unknowns:
        load = _load(source, domain, facts, steady)
        for content in contents if load is not None else ():
            # Symbols have one meaning in both programs, unless a loop has the name.
            if load is not None and content.buffer.data == load.buffer.data and names.isdisjoint(_symbols(content)):
                if _is_told(facts, domain, load, content):
                    yield Guard(substitute(content.condition, {content.value: source.var}))


def _symbols(content: Content) -> set[str]:
    """What a content speaks of besides its instances."""
    dims = content.domain.dims
    said = [content.condition, *content.indices, *(guard.condition for guard in content.domain.guards)]
    said += [bound for dim in dims for bound in (dim.start, dim.extent)]
    return (
        {v.name for expr in said for v in free_variables(expr)} - {dim.var.name for dim in dims} - {content.value.name}
    )


def _is_told(facts: Facts, domain: IterationDomain, load: BufferLoad, content: Content) -> bool:
    """Whether each element that is loaded in an iteration domain is one that `content` describes."""
    taken = {dim.var.name for dim in domain.dims} | {each.var.name for each in domain.unknowns}
    names: dict[Var, Expr] = {}
    dims: list[Dim] = []
    for number, dim in enumerate(content.domain.dims):
        var = Var(_apart(f"{dim.var.name}'{number}", taken), dim.var.dtype)
        dims.append(Dim(var, substitute(dim.start, names), substitute(dim.extent, names), dim.kind, dim.lane))
        names[dim.var] = var
    there = tuple(substitute(guard.as_expr, names) for guard in content.domain.guards)
    if load.buffer.shape == content.buffer.shape:
        pairs = list(zip(load.indices, content.indices, strict=True))
    else:
        pairs = [
            (element_number(load.buffer, load.indices), element_number(content.buffer, content.indices)),
        ]
    same = tuple(equal(mine, substitute(theirs, names)) for mine, theirs in pairs)
    cover = Cover(replace(domain, dims=(*domain.dims, *dims)), (*there, *same))
    return facts.model.uncovered(domain, [cover]).is_empty


def _apart(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "'"
    return name


def check_facts(
    facts: Facts, *, calls: bool = True, contents: Sequence[Content] = (), before: Program | None = None
) -> tuple[Verdict, ...]:
    """The obligations of a program that was read already.

    With `calls` false, opaque calls are left to a comparison with another program. `contents` is what is known of
    inputs; `before` is the program that this one has to refine.
    """
    return (*_prove_no_fault(facts, contents, before), *prove_race_free(facts), *(_obstacles(facts) if calls else ()))


def _prove_no_fault(facts: Facts, contents: Sequence[Content], before: Program | None) -> Iterator[Verdict]:
    more = told(facts, contents)
    yield from prove_in_bounds(more)
    yield from prove_views(facts)
    yield from prove_bindings(facts)
    yield from prove_readable(more)
    yield from prove_no_forbidden_write(more)
    yield from prove_index_fits(more, before)
    yield from prove_no_trap(facts, before)


def prove_bindings(facts: Facts) -> tuple[Verdict, ...]:
    """One verdict a block variable that is not plainly inside its domain: it is, wherever its block runs."""
    verdicts = []
    for binding in facts.program.bindings:
        watch = facts.watch()
        name, place = binding.iter_var.var.name, binding.spot.place_of(binding.node)
        claim = Claim(ClaimKind.WITHIN_DOMAIN, f"block variable {name} stays in its domain", place, about=(name,))
        if binding.within != TRUE:
            found = facts.search(binding.domain, Not(binding.within))
            verdicts.append(
                proved(claim, found.engine, watch) if found.is_empty else _outside(facts, binding, found, claim, watch)
            )
    return tuple(verdicts)


def _outside(facts: Facts, binding: Binding, found: Search, claim: Claim, watch: Stopwatch) -> Verdict:
    point = found.point
    if point is None or not facts.happens(binding.domain, point) or facts.holds(binding.within, point) is not False:
        return left_open(claim, found, watch)
    values = visible(binding.domain, point, facts.program)
    text = f"{binding.iter_var.var.name} leaves its domain at {values_text(values)}"
    if binding.domain.depends_on_data(binding.within):
        return unknown(claim, found.engine, f"{text}, depending on data", watch)
    return refuted(claim, found.engine, {"variable": binding.iter_var.var.name, "values": values}, text, watch)


def _obstacles(facts: Facts) -> tuple[Verdict, ...]:
    """One verdict for each opaque part of the program, which is not known to be without fault."""
    watch = facts.watch()
    return tuple(
        unknown(
            Claim(ClaimKind.OTHER, "no fault", obstacle.spot.place_of(obstacle.node), about=("no-fault",)),
            STRUCTURE,
            f"{obstacle.what} is not looked into",
            watch,
        )
        for obstacle in facts.program.obstacles
    )

"""Well-formedness: what a program must satisfy at each stage, beyond what nodes check when they are built.

The rules are a table; each has its own code and stages. A program that passes has a meaning: every name is bound once
on its path, every buffer has memory, and no control flow or address depends on an undefined value.

Sources: TVM's RFCs `clarifying-buffer-declaration-and-access` (declaration, aliases) and `vectorized-tir-buffers`
(lanes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from layoutproof.ir.buffer import Buffer, check_separators
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, Span
from layoutproof.ir.dtype import Kind
from layoutproof.ir.expr import IntImm
from layoutproof.ir.intrinsics import Assume, Undef
from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import AXIS_SEPARATORS, LAYOUT, LAYOUT_TRANSFORMATIONS, PrimFunc
from layoutproof.ir.scopes import Role, Visit, visits
from layoutproof.ir.stmt import Attributes, Block, Evaluate, For, IterKind
from layoutproof.ir.visit import free_variables, nodes_of, stores_in, walk


class Stage(StrEnum):
    """How far a program has been lowered."""

    SCRIPT = "script"  # blocks over loops, as people write it
    LOWERED = "lowered"  # loops only
    FLATTENED = "flattened"  # loops, each buffer with as many axes as it has axis groups


@dataclass(frozen=True, slots=True)
class Program:
    """What the rules look at: the function, and everything in its body with the scope it stands in."""

    func: PrimFunc
    visits: tuple[Visit, ...]


Found = Iterator[tuple[str, Span | None]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: `check` yields a message and a place for each violation."""

    code: str
    name: str
    check: Callable[[Program], Found]
    stages: frozenset[Stage] = frozenset(Stage)


def names_are_bound_once(p: Program) -> Found:
    """No loop, let or block binds a name that is bound around it."""
    for visit in p.visits:
        for variable in visit.rebound:
            yield f"`{variable.name}` is bound again inside its own scope", visit.span


def variables_are_in_scope(p: Program) -> Found:
    """Every variable is bound around its use, with the type it is used at."""
    for visit in p.visits:
        if visit.expr is None:
            continue
        for variable in free_variables(visit.expr):
            bound = visit.scope.variables.get(variable.name)
            if bound is None:
                yield f"`{variable.name}` is bound nowhere around its use", variable.span or visit.span
            elif bound.dtype != variable.dtype:
                yield (
                    f"`{variable.name}` is a {bound.dtype}, used here as a {variable.dtype}",
                    variable.span or visit.span,
                )


def buffers_are_in_scope(p: Program) -> Found:
    """Every buffer that is accessed is a parameter's, allocated, or declared around the access."""
    for visit in p.visits:
        if visit.buffer is not None and visit.role is Role.ACCESS and visit.buffer not in visit.scope.buffers:
            same = [b for b in visit.scope.buffers if b.name == visit.buffer.name]
            what = (
                "is another buffer of this name here"
                if same
                else "is neither a parameter nor allocated nor declared here"
            )
            yield f"`{visit.buffer.name}` {what}", visit.span


def declarations_have_data(p: Program) -> Found:
    """A declared view names a data variable that exists."""
    for visit in p.visits:
        if (
            visit.buffer is not None
            and visit.role is Role.DECLARATION
            and visit.buffer.data.name not in visit.scope.data
        ):
            yield (
                f"`{visit.buffer.name}` is a view of `{visit.buffer.data.name}`, which is not allocated here",
                visit.span,
            )


def memory_is_made_once(p: Program) -> Found:
    """No allocation reuses a data variable, and no allocation or declaration the name of a buffer in scope."""
    for visit in p.visits:
        buffer = visit.buffer
        if buffer is None or visit.role not in (Role.ALLOCATION, Role.DECLARATION):
            continue
        if visit.role is Role.ALLOCATION and buffer.data.name in visit.scope.data:
            yield f"the data of `{buffer.name}` is allocated already", visit.span
        elif buffer.name in visit.scope.named:
            yield f"a buffer called `{buffer.name}` is in scope already", visit.span


def elements_can_be_stored(p: Program) -> Found:
    """Buffers hold numbers and truth values, and no extent is negative."""
    for buffer in dict.fromkeys([*p.func.buffers, *(v.buffer for v in p.visits if v.buffer is not None)]):
        if buffer.dtype.kind is Kind.HANDLE:
            yield f"`{buffer.name}` holds pointers", buffer.span
        for axis, extent in enumerate(buffer.shape):
            if isinstance(extent, IntImm) and extent.value < 0:
                yield f"axis {axis} of `{buffer.name}` has the extent {extent.value}", extent.span or buffer.span


def loops_do_not_run_backwards(p: Program) -> Found:
    """No loop has a negative constant extent."""
    for visit in p.visits:
        if isinstance(visit.stmt, For) and isinstance(visit.stmt.extent, IntImm) and visit.stmt.extent.value < 0:
            yield f"loop `{visit.stmt.var.name}` has the extent {visit.stmt.extent.value}", visit.span


def undefined_values_stay_values(p: Program) -> Found:
    """No undefined value stands in an index, a condition, a bound, a shape or a binding."""
    for visit in p.visits:
        if visit.expr is None or visit.role not in (Role.INDEX, Role.CONDITION, Role.BOUND, Role.SHAPE):
            continue
        for node in nodes_of(visit.expr, Undef):
            yield f"an undefined value in {visit.role.value}", node.span or visit.span


def assumptions_are_statements(p: Program) -> Found:
    """An assumption stands alone in an Evaluate."""
    for visit in p.visits:
        if visit.expr is None or visit.role is Role.SHAPE:
            continue
        alone = isinstance(visit.stmt, Evaluate) and visit.expr is visit.stmt.value
        for node in nodes_of(visit.expr, Assume):
            if not (alone and node is visit.expr):
                yield "an assumption inside an expression", node.span or visit.span


def init_leaves_reductions_alone(p: Program) -> Found:
    """A block's init does not use its reduction variables, and what it initialises is updated at places that do not
    either.
    """
    for visit in p.visits:
        block = visit.stmt
        if not isinstance(block, Block) or block.init is None or visit.expr is not None or visit.buffer is not None:
            continue
        reduced = {v.var for v in block.iter_vars if v.kind is IterKind.REDUCE}
        for node in walk(block.init):
            if node in reduced:
                yield f"the init of block `{block.name}` uses its reduction variable", block.init.span or visit.span
                break
        initialised = {store.buffer for store in stores_in(block.init)}
        for store in stores_in(block.body):
            if store.buffer in initialised and any(set(free_variables(i)) & reduced for i in store.indices):
                yield (
                    f"block `{block.name}` updates `{store.buffer.name}` at a place that moves with its reduction",
                    store.span or visit.span,
                )


def block_variables_differ(p: Program) -> Found:
    """A block has no two iteration variables of one name."""
    for visit in p.visits:
        if isinstance(visit.stmt, Block) and visit.expr is None and visit.buffer is None:
            names = [v.var.name for v in visit.stmt.iter_vars]
            for name in dict.fromkeys(n for n in names if names.count(n) > 1):
                yield f"block `{visit.stmt.name}` has two iteration variables called `{name}`", visit.span


def blocks_are_gone(p: Program) -> Found:
    """After lowering there are no blocks."""
    for visit in p.visits:
        if isinstance(visit.stmt, Block) and visit.expr is None and visit.buffer is None:
            yield f"block `{visit.stmt.name}` in a lowered program", visit.span


def accesses_are_flat(p: Program) -> Found:
    """After flattening, every buffer that is accessed has one axis for each axis group, and no strides."""
    seen: set[Buffer] = set()
    for visit in p.visits:
        buffer = visit.buffer
        if buffer is None or visit.role is not Role.ACCESS or buffer in seen:
            continue
        seen.add(buffer)
        if buffer.rank != max(len(buffer.axis_separators) + 1, 1) and buffer.rank != 0:
            yield (
                f"`{buffer.name}` has {buffer.rank} axes in {len(buffer.axis_separators) + 1} groups: it is not "
                "flattened",
                visit.span,
            )
        if buffer.strides:
            yield f"`{buffer.name}` has strides: it is not flattened", visit.span


def transformations_are_applied(p: Program) -> Found:
    """After flattening no layout transformation is left to apply."""
    if LAYOUT_TRANSFORMATIONS in p.func.attrs:
        yield f"the attribute {LAYOUT_TRANSFORMATIONS} is left in a flattened program", p.func.span


def allocated_in(p: Program) -> dict[str, Buffer]:
    """By data variable: the buffer that a parameter has, or that is allocated somewhere."""
    found = {b.data.name: b for b in p.func.buffers}
    for visit in p.visits:
        if visit.buffer is not None and visit.role is Role.ALLOCATION:
            found.setdefault(visit.buffer.data.name, visit.buffer)
    return found


def transformations_are_maps(p: Program) -> Found:
    """`buffer_layout_transformations` names data variables that exist, and holds index maps for them."""
    value = p.func.attrs.get(LAYOUT_TRANSFORMATIONS)
    if value is None:
        return
    if not isinstance(value, Attributes):
        yield f"{LAYOUT_TRANSFORMATIONS} maps data variables to lists of index maps", p.func.span
        return
    known = allocated_in(p)
    for name, maps in value.items():
        if name not in known:
            yield f"{LAYOUT_TRANSFORMATIONS} names `{name}`, which is no data variable here", p.func.span
            continue
        for text in maps if isinstance(maps, tuple) else (maps,):
            if not isinstance(text, str):
                yield f"{LAYOUT_TRANSFORMATIONS} of `{name}`: an index map is the text of a lambda", p.func.span
                continue
            symbols = {v.name for extent in known[name].shape for v in free_variables(extent)}
            try:
                parse_index_map(text, symbols=symbols)
            except LayoutproofError as problem:
                yield f"{LAYOUT_TRANSFORMATIONS} of `{name}`: {problem.diagnostics[0].message}", p.func.span


def separators_fit(p: Program) -> Found:
    """`buffer_axis_separators` names data variables that exist, and axes that their buffers have."""
    value = p.func.attrs.get(AXIS_SEPARATORS)
    if value is None:
        return
    if not isinstance(value, Attributes):
        yield f"{AXIS_SEPARATORS} maps data variables to lists of axes", p.func.span
        return
    known = allocated_in(p)
    for name, axes in value.items():
        buffer = known.get(name)
        if buffer is None:
            yield f"{AXIS_SEPARATORS} names `{name}`, which is no data variable here", p.func.span
            continue
        if not isinstance(axes, tuple):
            yield f"{AXIS_SEPARATORS} of `{name}` is a list of integers", p.func.span
            continue
        numbers = tuple(a.value if isinstance(a, IntImm) else a for a in axes)
        integers = tuple(a for a in numbers if isinstance(a, int) and not isinstance(a, bool))
        if len(integers) != len(numbers):
            yield f"{AXIS_SEPARATORS} of `{name}` is a list of integers", p.func.span
            continue
        try:
            check_separators(integers, _final_rank(p, name, buffer))
        except ValueError as problem:
            yield f"{AXIS_SEPARATORS} of `{name}`: {problem}", p.func.span


def _final_rank(p: Program, name: str, buffer: Buffer) -> int:
    """The rank after the transformations that are still to be applied."""
    value = p.func.attrs.get(LAYOUT_TRANSFORMATIONS)
    maps = value.get(name) if isinstance(value, Attributes) else None
    last = maps[-1] if isinstance(maps, tuple) and maps else maps
    if not isinstance(last, str):
        return buffer.rank
    symbols = {v.name for extent in buffer.shape for v in free_variables(extent)}
    try:
        return parse_index_map(last, symbols=symbols).rank
    except LayoutproofError:  # the rule on transformations tells it
        return buffer.rank


def records_fit(p: Program) -> Found:
    """`layoutproof.layout` holds records of data variables that exist."""
    try:
        records = layout_records(p.func)
    except LayoutproofError as problem:
        yield problem.diagnostics[0].message, p.func.span
        return
    known = allocated_in(p)
    for name in records:
        if name not in known:
            yield f"{LAYOUT} names `{name}`, which is no data variable here", p.func.span


def parameters_fit(p: Program) -> Found:
    """Buffers belong to pointers, each to one, and no two share a name or their data."""
    for param, buffer in p.func.buffer_map:
        if param.dtype.kind is not Kind.HANDLE:
            yield (
                f"parameter `{param.name}` of buffer `{buffer.name}` is a {param.dtype}, not a pointer",
                param.span or p.func.span,
            )
    for what, names in (
        ("two buffers called", [b.name for _, b in p.func.buffer_map]),
        ("two parameters with the data", [b.data.name for _, b in p.func.buffer_map]),
        ("two buffers for the parameter", [v.name for v, _ in p.func.buffer_map]),
    ):
        for name in dict.fromkeys(n for n in names if names.count(n) > 1):
            yield f"{what} `{name}`", p.func.span


def vectors_stay_in_values(p: Program) -> Found:
    """Lanes stand in stored values, lets, and the last index of an access: nowhere else."""
    for visit in p.visits:
        if visit.expr is None or visit.expr.dtype.lanes == 1:
            continue
        where = visit.expr.span if visit.expr.span is not None else visit.span
        if visit.role in (Role.CONDITION, Role.BOUND, Role.SHAPE):
            yield f"{visit.expr.dtype.lanes} lanes in {visit.role.value}", where
        elif isinstance(visit.stmt, Evaluate):
            yield f"{visit.expr.dtype.lanes} lanes in an effect, which is one for all of them", where
        elif isinstance(visit.stmt, Block):
            yield f"{visit.expr.dtype.lanes} lanes in a region of block `{visit.stmt.name}`, which is a box", where


_BELOW = frozenset((Stage.LOWERED, Stage.FLATTENED))
_FLAT = frozenset((Stage.FLATTENED,))

RULES: tuple[Rule, ...] = (
    Rule("LP150", "names are bound once on a path", names_are_bound_once),
    Rule("LP151", "variables are in scope", variables_are_in_scope),
    Rule("LP152", "buffers are in scope", buffers_are_in_scope),
    Rule("LP153", "views have data", declarations_have_data),
    Rule("LP154", "memory is made once", memory_is_made_once),
    Rule("LP155", "elements can be stored", elements_can_be_stored),
    Rule("LP156", "loops do not run backwards", loops_do_not_run_backwards),
    Rule("LP157", "undefined values stay values", undefined_values_stay_values),
    Rule("LP158", "assumptions are statements", assumptions_are_statements),
    Rule("LP159", "init leaves reductions alone", init_leaves_reductions_alone),
    Rule("LP160", "a block's variables differ", block_variables_differ),
    Rule("LP161", "no blocks after lowering", blocks_are_gone, _BELOW),
    Rule("LP162", "accesses are flat after flattening", accesses_are_flat, _FLAT),
    Rule("LP163", "no transformation after flattening", transformations_are_applied, _FLAT),
    Rule("LP164", "layout transformations are index maps", transformations_are_maps),
    Rule("LP165", "axis separators fit", separators_fit),
    Rule("LP166", "layout records fit", records_fit),
    Rule("LP167", "parameters fit", parameters_fit),
    Rule("LP168", "lanes stay in values and last indices", vectors_stay_in_values),
)

MEANINGS: Mapping[str, str] = {
    rule.code: f"{rule.name[0].upper()}{rule.name[1:]}. {' '.join((rule.check.__doc__ or '').split())}"
    for rule in RULES
}


def check_wellformed(func: PrimFunc, stage: Stage = Stage.SCRIPT) -> tuple[Diagnostic, ...]:
    """Every violation of the stage's rules, in the order of the rules; empty for a well-formed function."""
    program = Program(func, tuple(visits(func)))
    found: dict[Diagnostic, None] = {}
    for rule in RULES:
        if stage in rule.stages:
            for message, span in rule.check(program):
                found.setdefault(Diagnostic(rule.code, f"{func.name}: {message}", span))
    return tuple(found)


def require_wellformed(func: PrimFunc, stage: Stage = Stage.SCRIPT) -> PrimFunc:
    """The function itself. Raises LayoutproofError with every violation where there is one."""
    found = check_wellformed(func, stage)
    if found:
        raise LayoutproofError(found)
    return func

"""Whether a program runs at all: what is proved of one whose assumptions cannot hold, that always faults, or that
stores nothing observable is vacuous. That it runs is shown by a run of the interpreter or by values that satisfy all
assumptions; that it never does, by conditions that cannot all hold. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.dtype import HANDLE, DType
from layoutproof.ir.expr import TRUE, Binary, Compare, Expr, IntImm, Logical, Not, Var, const
from layoutproof.ir.intrinsics import Assume, OpaqueCall, Undef, is_identity
from layoutproof.ir.node import Node
from layoutproof.ir.operators import DIVISIONS, BinaryOp, LogicalOp
from layoutproof.ir.primfunc import Kept, PrimFunc
from layoutproof.ir.stmt import Allocate, AttrStmt, Block, DeclBuffer, Evaluate, For, ForKind, Let, Seq, Stmt
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import free_variables, loads_in, map_children, substitute, walk
from layoutproof.verify.faults.arithmetic import call_assumptions, prove_index_fits, prove_no_trap
from layoutproof.verify.faults.bounds import always_outside
from layoutproof.verify.faults.constant_data import constants_do
from layoutproof.verify.faults.example_run import SearchState, certainly_stores, find_run, numbers_of, writes_of
from layoutproof.verify.faults.facts import Facts, Stopwatch, sizes_of
from layoutproof.verify.faults.no_faults import check_facts
from layoutproof.verify.faults.zero_indices import with_zero_indices
from layoutproof.verify.program.abstraction import survey_of
from layoutproof.verify.program.instances import AccessKind, Dim, IterationDomain
from layoutproof.verify.program.location import Spot
from layoutproof.verify.program.questions import Because, at_least, below
from layoutproof.verify.values.fast_math import IEEE
from layoutproof.verify.values.fast_math_search import search_fast_math
from layoutproof.verify.values.question import Given, Identical, Question
from layoutproof.verify.values.solving import QUICK
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict

_SHIFTS = (BinaryOp.SHL, BinaryOp.SHR)
Hint = dict[str, float | int]
Why = tuple[str, frozenset[Because]]
_CONTRADICTION = frozenset((Because.CONTRADICTION,))


@dataclass(frozen=True, slots=True)
class _Failure:
    """Instances all of which fail: loops, with their starts and extents, and what fails there."""

    domain: IterationDomain
    what: str
    because: frozenset[Because] = frozenset()


def why_impossible(facts: Facts, opaque: bool) -> tuple[Why | None, list[Hint]]:
    """Why no run stores anything observable without a fault, where that is proved; and values for arrays that may
    satisfy assumptions.

    With `opaque`, opaque calls may store something too.
    """
    if facts.search(IterationDomain()).is_empty:
        return (f"the assumptions on the symbols cannot all hold: {_text(_core(facts))}", _CONTRADICTION), []
    sizes = call_assumptions(facts.program.function, None)
    fitting = [
        part
        for e in sizes
        if e.dtype.bits <= 32
        for part in (at_least(e, e.dtype.min_int), below(e, e.dtype.max_int + 1))
    ]
    if fitting and facts.search(IterationDomain(), *fitting).is_empty:
        return (
            f"the assumptions on the symbols leave no sizes that fit their types: {_text(facts.program.assumed)}",
            _CONTRADICTION,
        ), []
    if opaque:
        return None, []
    writes = [access.domain for access in writes_of(facts)]
    writes = [domain for domain in writes if not facts.search(domain).is_empty]
    if not writes:
        return (
            "no store to a parameter is ever executed, so that nothing can be observed",
            frozenset((Because.NOTHING_SEEN,)),
        ), []
    failures, hints = _assumptions(facts)
    failures += _faults(facts)
    for failure in failures:
        if all(_comes_with(facts, domain, failure.domain) for domain in writes):
            return (failure.what, failure.because), hints
    found = (next((f for f in failures if _comes_with(facts, domain, f.domain)), None) for domain in writes)
    certain = [failure for failure in found if failure is not None]
    if len(certain) < len(writes):
        return None, hints
    because = frozenset[Because]().union(*(failure.because for failure in certain))
    return ("; ".join(dict.fromkeys(failure.what for failure in certain)), because), hints


def _core(facts: Facts) -> tuple[Expr, ...]:
    """Conditions on symbols that contradict each other, none of them idle."""
    kept = list(dict.fromkeys(facts.assumed))
    for condition in tuple(kept):
        rest = [c for c in kept if c is not condition]
        if Facts(replace(facts.program, assumed=()), more=tuple(rest)).search(IterationDomain()).is_empty:
            kept = rest
    return tuple(kept)


def _text(conditions: tuple[Expr, ...]) -> str:
    return ", ".join(expr_text(condition, Style.PLAIN) for condition in conditions)


def _comes_with(facts: Facts, domain: IterationDomain, failing: IterationDomain) -> bool:
    """Whether a run with an instance of `domain` has one of `failing`."""
    if (
        (domain.dims, domain.guards) == (failing.dims, failing.guards)
        and not domain.depends_on_data()
        and not failing.depends_on_data()
    ):
        return True
    if failing.guards or failing.depends_on_data():
        return False
    first: dict[Var, Expr] = {}
    for dim in failing.dims:
        start, extent = substitute(dim.start, first), substitute(dim.extent, first)
        # Loops of the two places may have one name; what is asked of both at once speaks of symbols only.
        if (
            any(v not in facts.program.symbols for v in free_variables(extent))
            or not facts.search(domain, below(extent, 1)).is_empty
        ):
            return False
        first[dim.var] = start
    return True


# Faults


def _faults(facts: Facts) -> list[_Failure]:
    """Operations without a result, and accesses outside of their buffers, at every instance."""
    found: list[_Failure] = []
    for arithmetic in facts.program.arithmetic:
        parts = arithmetic.parts() if arithmetic.is_index else ((arithmetic.expr, arithmetic.domain),)
        for expr, domain in parts:
            if _always_traps(expr):
                text = f"{expr_text(expr, Style.PLAIN)} never has a result ({arithmetic.place})"
                found.append(_Failure(domain, text))
    for access in facts.program.accesses:
        shape = access.buffer.shape
        if access.kind is AccessKind.ASSUME or access.buffer.data != access.data or len(shape) != len(access.indices):
            continue
        for index, extent in zip(access.indices, shape, strict=True):
            where = always_outside(access, index, extent)
            if where is not None or facts.search(access.domain, at_least(index, 0), below(index, extent)).is_empty:
                text = f"{access.text} is always outside of its buffer{where or ''} ({access.place})"
                found.append(_Failure(access.domain if where is None else IterationDomain(), text))
                break
    return found


def _always_traps(expr: Expr) -> bool:
    if not isinstance(expr, Binary) or not expr.dtype.is_integer or expr.dtype.lanes > 1:
        return False
    amount = expr.rhs
    if any(isinstance(node, BufferLoad | OpaqueCall | Undef) for node in walk(amount)):
        return False
    if expr.op in DIVISIONS:
        return isinstance(amount, IntImm) and amount.value == 0
    return expr.op in _SHIFTS and isinstance(amount, IntImm) and not 0 <= amount.value < expr.dtype.bits


# Assumptions about data


@dataclass(frozen=True, slots=True)
class _Stated:
    """An assumption at its loops, which are renamed by their depth."""

    loops: tuple[tuple[Expr, Expr], ...]
    condition: Expr
    text: str


def _assumptions(facts: Facts) -> tuple[list[_Failure], list[Hint]]:
    """The loops whose assumptions no data satisfies, and data that satisfies those of others."""
    function = facts.program.function
    survey = survey_of(function)
    groups: dict[tuple[tuple[Expr, Expr], ...], list[_Stated]] = {}
    for stated in _stated(function.body):
        changes = any(survey.all_change or x.buffer.data in survey.changing for x in loads_in(stated.condition))
        if not changes:
            groups.setdefault(stated.loops, []).append(stated)
    failures: list[_Failure] = []
    merged: Hint = {}
    for loops, group in groups.items():
        dims = tuple(
            Dim(_loop(k, start.dtype), start, extent, ForKind.SERIAL) for k, (start, extent) in enumerate(loops)
        )
        broken = next((stated for stated in group if _is_broken(facts, IterationDomain(dims), stated)), None)
        if broken is not None:
            failures.append(
                _Failure(
                    IterationDomain(dims),
                    f"the assumption {broken.text} does not hold at every iteration of its loops",
                    _CONTRADICTION,
                )
            )
            continue
        told = _data_of(facts, IterationDomain(dims), group)
        if isinstance(told, _Failure):
            failures.append(told)
        else:
            merged |= told
    return failures, [merged] if merged else []


def _loop(depth: int, dtype: DType) -> Var:
    return Var(f"loop{depth}'", dtype)


def _is_broken(facts: Facts, domain: IterationDomain, stated: _Stated) -> bool:
    """Whether an assumption about loops of constant extents alone fails at some iteration."""
    known = {dim.var for dim in domain.dims}
    said = [stated.condition, *(e for dim in domain.dims for e in (dim.start, dim.extent))]
    if any(
        isinstance(n, BufferLoad | Undef | OpaqueCall) or (isinstance(n, Var) and n not in known)
        for e in said
        for n in walk(e)
    ):
        return False
    found = facts.search(domain, Not(stated.condition))
    return (
        found.point is not None
        and facts.happens(domain, found.point)
        and facts.holds(stated.condition, found.point) is False
    )


def _stated(root: Stmt) -> Iterator[_Stated]:
    """The assumptions that are made at every iteration of the loops around them; none that is under a condition."""
    stack: list[tuple[Stmt, tuple[tuple[Expr, Expr], ...], dict[Var, Expr]]] = [(root, (), {})]
    while stack:
        stmt, loops, names = stack.pop()
        match stmt:
            case Evaluate(value=Assume(condition=condition)):
                for part in _joined(condition):
                    text = f"{expr_text(part, Style.PLAIN)} ({Spot(stmt).place_of(condition)})"
                    yield _Stated(loops, substitute(part, names), text)
            case Seq(body=body):
                stack += [(part, loops, names) for part in reversed(body)]
            case For(var=var, start=start, extent=extent, body=body):
                ranges = (*loops, (substitute(start, names), substitute(extent, names)))
                stack.append((body, ranges, {**names, var: _loop(len(loops), var.dtype)}))
            case Block(iter_vars=iter_vars, where=where, body=body) if where == TRUE:
                stack.append((body, loops, {**names, **{v.var: substitute(v.binding, names) for v in iter_vars}}))
            case Let(var=var, value=value, body=body) if not any(True for _ in loads_in(value)):
                stack.append((body, loops, {**names, var: substitute(value, names)}))
            case Allocate(body=body) | DeclBuffer(body=body) | AttrStmt(body=body):
                stack.append((body, loops, names))
            case _:
                pass


def _joined(condition: Expr) -> Iterator[Expr]:
    """What must all hold, as it stands: under `not` a comparison of floats is no value identity."""
    if isinstance(condition, Logical) and condition.op is LogicalOp.AND:
        yield from (*_joined(condition.lhs), *_joined(condition.rhs))
    else:
        yield condition


def _data_of(facts: Facts, domain: IterationDomain, group: Sequence[_Stated]) -> Hint | _Failure:
    """Values for loads, by buffer, that may satisfy all conditions of one place, or that none do."""
    loads: dict[BufferLoad, Var] = {}
    conditions: list[Expr] = []
    given: list[Given] = []
    for stated in group:
        if any(isinstance(node, Undef | OpaqueCall) for node in walk(stated.condition)):
            continue
        plain = _without_loads(stated.condition, loads)
        identity = is_identity(stated.condition) and isinstance(plain, Compare)
        if not identity:
            conditions.append(plain)
        # Value identity, so that a NaN is one; it holds of a variable, which one side is.
        elif isinstance(plain, Compare) and isinstance(plain.lhs, Var):
            given.append(Given(plain.lhs, Identical(plain.rhs)))
        elif isinstance(plain, Compare) and isinstance(plain.rhs, Var):
            given.append(Given(plain.rhs, Identical(plain.lhs)))
    if not loads:
        return {}
    conditions += [guard for guard in facts.assumed if not any(True for _ in loads_in(guard))]
    question = Question(const(False), const(True), tuple(given), tuple(conditions))
    never = search_fast_math(question, IEEE, QUICK)
    if never.is_proved:
        lines = ", ".join(stated.text for stated in group)
        return _Failure(domain, f"the assumptions about data cannot all hold: {lines}", _CONTRADICTION)
    model = never.model if never.model is not None else {}
    return {load.buffer.name: model[var.name] for load, var in loads.items() if var.name in model}


def _without_loads(condition: Expr, loads: dict[BufferLoad, Var]) -> Expr:
    """The condition with a variable for each load; equal loads are one."""

    def visit(node: Node) -> Node:
        if isinstance(node, BufferLoad):
            return loads.setdefault(node, Var(f"{node.buffer.name}'{len(loads)}", node.dtype))
        return map_children(node, visit)

    found = visit(condition)
    assert isinstance(found, Expr)
    return found


CLAIM = Claim(ClaimKind.RUNS, "the program runs")
_SMALL_RUN, _RUNS = 4_000, 24
_LARGE_RUN, _MORE_RUNS = 400_000, 120

_ANSWERS: Kept[Verdict] = Kept(64)
_FAULTLESS: Kept[list[bool]] = Kept(64)


def prove_runs(function: PrimFunc, where: Expr | None = None) -> Verdict:
    """Whether some input satisfies all assumptions and has something observable stored; `vacuous` if no input does."""
    return _ANSWERS.get(function, (where,), lambda: _prove_runs(function, where))


def is_idle(function: PrimFunc, where: Expr | None = None) -> bool:
    """Whether the program is known never to store to a parameter, and has no opaque calls."""
    facts = Facts.of(function, where)
    return not _is_opaque(facts) and all(facts.search(access.domain).is_empty for access in writes_of(facts))


def note_faultless(function: PrimFunc, where: Expr | None, called_as: PrimFunc) -> bool:
    """Keep that every obligation of the program by itself is proved, so that it is not asked again. It was proved of
    calls of `called_as`: nothing is kept, which is said, where calls of the program tell less of its sizes.
    """
    untold = sizes_of(called_as) - sizes_of(function)
    is_told = not untold or untold.isdisjoint(symbol.name for symbol in survey_of(function).symbols)
    if is_told:
        _FAULTLESS.get(function, (where,), lambda: [True])[:] = [True]
    return is_told


def note_no_new_fault(facts: Facts, old: PrimFunc, where: Expr | None) -> None:
    """The same of a program that has no fault but those that `old` has at the same instances: if that one has none, or
    no arithmetic needs this excuse.
    """
    if not is_known_faultless(old, where):
        alone = () if facts.gathered.is_recording else (*prove_index_fits(facts), *prove_no_trap(facts))
        if not alone or any(v.status is not Status.PROVED for v in alone):
            return
    note_faultless(facts.program.function, where, old)


def is_known_faultless(function: PrimFunc, where: Expr | None) -> bool:
    """Whether that was kept."""
    return _FAULTLESS.get(function, (where,), lambda: [False])[0]


def possible_faults(function: PrimFunc, where: Expr | None) -> tuple[Verdict, ...]:
    """The obligations of the program by itself that are not proved, opaque calls left aside."""
    if is_known_faultless(function, where):
        return ()
    found = tuple(v for v in check_facts(Facts.of(function, where), calls=False) if v.status is not Status.PROVED)
    if not found:
        note_faultless(function, where, function)
    return found


def _prove_runs(function: PrimFunc, where: Expr | None) -> Verdict:
    watch = Stopwatch()
    facts = Facts.of(function, where)
    opaque = _is_opaque(facts)
    if not opaque and next(writes_of(facts), None) is None:
        return _vacuous(
            "no parameter is ever written, so that nothing can be observed", frozenset((Because.NOTHING_SEEN,)), watch
        )
    state = SearchState()
    known = is_known_faultless(function, where)
    if known and _shown_without_a_run(facts, state, opaque):
        return _runs(watch)
    if find_run(facts, _SMALL_RUN, _RUNS, state):
        return _runs(watch)
    apart = function.with_parameters_apart()  # inputs that do not overlap are among all
    if not known and not possible_faults(apart, where) and _shown_without_a_run(facts, state, opaque):
        return _runs(watch)
    why, hints = why_impossible(facts, opaque)
    if why is not None:
        return _vacuous(*why, watch)
    if not opaque and _runs_with_zeros(apart, where, state):
        return _runs(watch)
    if find_run(facts, _LARGE_RUN, _MORE_RUNS, state, hints):
        return _runs(watch)
    return Verdict(Status.UNKNOWN, CLAIM, "search", reason=_what_failed(state), seconds=watch.seconds())


def _runs(watch: Stopwatch) -> Verdict:
    return Verdict(Status.PROVED, CLAIM, "search", seconds=watch.seconds())


def _is_opaque(facts: Facts) -> bool:
    """Whether something may be stored that no store in the program says."""
    function = facts.program.function
    mapped = dict(function.buffer_map)
    return bool(facts.program.obstacles) or any(p.dtype == HANDLE and p not in mapped for p in function.params)


def _vacuous(reason: str, because: frozenset[Because], watch: Stopwatch) -> Verdict:
    return Verdict(Status.VACUOUS, CLAIM, "isl", reason=reason, seconds=watch.seconds(), because=because)


def _what_failed(state: SearchState) -> str:
    text = "no input could be shown that satisfies all assumptions and on which the program runs without a fault"
    if state.numbers is None:
        return f"{text}: no values of its symbols were found that satisfy the conditions on them"
    return text if state.fault is None else f"{text}; the last one that was tried: {state.fault}"


def _shown_without_a_run(facts: Facts, state: SearchState, opaque: bool) -> bool:
    """Whether some sizes satisfy the conditions, some store happens with them, and constant arrays satisfy every
    assumption about data: of a program that is proved to have no fault.
    """
    if not constants_do(facts):
        return False
    for numbers in numbers_of(facts):
        state.numbers = numbers if state.numbers is None else state.numbers
        if opaque or certainly_stores(facts, numbers):
            return True
    return False


def _runs_with_zeros(function: PrimFunc, where: Expr | None, state: SearchState) -> bool:
    """The same of a program of which nothing is known unless its arrays of indices hold zeros."""
    zeros = with_zero_indices(Facts.of(function, where))
    if zeros is None or possible_faults(zeros, where):
        return False
    return _shown_without_a_run(Facts.of(zeros, where), state, opaque=False)


def check_program(function: PrimFunc, *, where: Expr | None = None) -> tuple[Verdict, ...]:
    """Every obligation of `function`, each with its own verdict, in the order of the text within each kind.

    `where` is a condition on symbols that the caller vouches for. Raises LayoutproofError for a malformed layout
    record. A program whose assumptions cannot all hold, that always faults, or that stores nothing observable, has one
    further verdict that is `vacuous`.
    """
    verdicts = check_facts(Facts.of(function, where))
    runs = prove_runs(function, where)
    return (*verdicts, runs) if runs.status is Status.VACUOUS else verdicts

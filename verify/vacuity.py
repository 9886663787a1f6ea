"""Whether a program runs at all: what is proved of one whose assumptions cannot hold, that always faults, or that nothing can be
observed of, is proved of nothing.

That it runs has to be shown: by a run of the reference interpreter on an input that satisfies all assumptions (`inhabited`), or, where
a run is too large, by values that satisfy them and the proof that nothing faults. That it cannot is proved by solvers (`impossible`).
Where neither succeeds, the answer is unknown. Part of the trust base.
"""

from __future__ import annotations

from layoutproof.ir.assumed import assumed_undef
from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import Compare, CompareOp, Expr, FloatImm, IntImm, Logical, LogicalOp, Var, const
from layoutproof.ir.intrinsics import Assume, Limit
from layoutproof.ir.kept import Kept
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import free_variables, map_children, walk
from layoutproof.verify.claim import Claim, ClaimKind
from layoutproof.verify.facts import Facts, Stopwatch
from layoutproof.verify.impossible import why_impossible
from layoutproof.verify.inhabited import Looking, certainly_stores, find_run, numbers_of, writes_of
from layoutproof.verify.instances import conjuncts
from layoutproof.verify.program import check_facts
from layoutproof.verify.search import Because
from layoutproof.verify.values.budget import QUICK
from layoutproof.verify.values.licences import IEEE
from layoutproof.verify.values.prove import prove_same
from layoutproof.verify.verdict import Status, Verdict

CLAIM = Claim(ClaimKind.RUNS, "the program runs")
_SMALL_RUN, _RUNS = 4_000, 24
_LARGE_RUN, _MORE_RUNS = 400_000, 120

_ANSWERS: Kept[Verdict | None] = Kept(64)
_FAULTLESS: Kept[list[bool]] = Kept(64)


def prove_runs(function: PrimFunc, where: Expr | None = None) -> Verdict | None:
    """None where the program is shown to run on some input with all assumptions true, and to store something observable. Else the
    verdict that it never does (`vacuous`), or that it could not be shown to (`unknown`).
    """
    return _ANSWERS.get(function, (where,), lambda: _prove_runs(function, where))


def is_idle(function: PrimFunc, where: Expr | None = None) -> bool:
    """Whether the program is known never to store to a parameter, and has no calls that nobody looks into."""
    facts = Facts.of(function, where)
    return not _is_opaque(facts) and all(facts.search(access.scene).is_empty for access in writes_of(facts))


def note_faultless(function: PrimFunc, where: Expr | None) -> None:
    """Keep that every obligation of the program by itself is proved, so that it is not asked again."""
    _FAULTLESS.get(function, (where,), lambda: [True])[:] = [True]


def _prove_runs(function: PrimFunc, where: Expr | None) -> Verdict | None:
    watch = Stopwatch()
    facts = Facts.of(function, where)
    opaque = _is_opaque(facts)
    if not opaque and next(writes_of(facts), None) is None:
        return _vacuous("no parameter is ever written, so that nothing can be observed", frozenset((Because.NOTHING_SEEN,)), watch)
    looking = Looking()
    known = _FAULTLESS.get(function, (where,), lambda: [False])[0]
    if known and _shown_without_a_run(facts, looking, opaque):
        return None
    if find_run(facts, _SMALL_RUN, _RUNS, looking):
        return None
    if not known and _is_faultless(facts) and _shown_without_a_run(facts, looking, opaque):
        return None
    why, hints = why_impossible(facts, opaque)
    if why is not None:
        return _vacuous(*why, watch)
    if find_run(facts, _LARGE_RUN, _MORE_RUNS, looking, hints):
        return None
    return Verdict(Status.UNKNOWN, CLAIM, "search", reason=_what_failed(looking), seconds=watch.seconds())


def _is_opaque(facts: Facts) -> bool:
    """Whether something may be stored that no store in the program says."""
    function = facts.program.function
    mapped = dict(function.buffer_map)
    return bool(facts.program.obstacles) or any(p.dtype == HANDLE and p not in mapped for p in function.params)


def _vacuous(reason: str, because: frozenset[Because], watch: Stopwatch) -> Verdict:
    return Verdict(Status.VACUOUS, CLAIM, "isl", reason=reason, seconds=watch.seconds(), because=because)


def _what_failed(looking: Looking) -> str:
    text = "no input could be shown that satisfies all assumptions and on which the program runs without a fault"
    if looking.numbers is None:
        return f"{text}: no values of its symbols were found that satisfy the conditions on them"
    return text if looking.fault is None else f"{text}; the last one that was tried: {looking.fault}"


def _is_faultless(facts: Facts) -> bool:

    return all(verdict.status is Status.PROVED for verdict in check_facts(facts, calls=False))


def _shown_without_a_run(facts: Facts, looking: Looking, opaque: bool) -> bool:
    """Whether some sizes satisfy the conditions, some store happens with them, and constant arrays satisfy every assumption about data:
    of a program that is proved to have no fault.
    """
    if not _constants_do(facts):
        return False
    for numbers in numbers_of(facts):
        looking.numbers = numbers if looking.numbers is None else looking.numbers
        if opaque or certainly_stores(facts, numbers):
            return True
    return False


def _constants_do(facts: Facts) -> bool:
    """Whether every assumption but those that `facts` has holds where each array has one value all over: the one that an assumption says
    its elements have.
    """
    parameters = {buffer.data for buffer in facts.program.function.buffers}
    values: dict[Var, Expr] = {}
    conditions = (node.condition for node in walk(facts.program.function.body) if isinstance(node, Assume))
    return all(_is_known(facts, condition) or _holds_with(condition, values, parameters) for condition in conditions)


def _is_known(facts: Facts, condition: Expr) -> bool:
    return all(guard.as_expr in facts.program.assumed for guard in conjuncts(condition))


def _holds_with(condition: Expr, values: dict[Var, Expr], parameters: set[Var]) -> bool:
    if isinstance(condition, Logical):
        either = any if condition.op is LogicalOp.OR else all
        return either(_holds_with(side, values, parameters) for side in (condition.rhs, condition.lhs))
    undefined = assumed_undef(condition)
    if undefined is not None:
        return undefined.buffer.data in parameters
    if not isinstance(condition, Compare) or condition.op is not CompareOp.EQ:
        return _is_true_of(condition, values, parameters)
    load, value = (condition.lhs, condition.rhs) if isinstance(condition.lhs, BufferLoad) else (condition.rhs, condition.lhs)
    plain = isinstance(value, IntImm | Limit) or (isinstance(value, FloatImm) and value.value == value.value)
    if not plain or not isinstance(load, BufferLoad) or load.buffer.data not in parameters:
        return False
    return values.setdefault(load.buffer.data, value) == value


def _is_true_of(condition: Expr, values: dict[Var, Expr], parameters: set[Var]) -> bool:
    """Whether a condition holds where each load gives the value of its array, one where nothing was said."""

    def visit(node: Node) -> Node:
        if isinstance(node, BufferLoad) and node.buffer.data in parameters and node.dtype.lanes == 1 and not node.dtype.is_bool:
            return values.setdefault(node.buffer.data, const(1, node.dtype))
        return map_children(node, visit)

    plain = visit(condition)
    if not isinstance(plain, Expr) or free_variables(plain):
        return False
    return prove_same(plain, const(True), allowed=IEEE, budget=QUICK).is_proved


def check_program(function: PrimFunc, *, where: Expr | None = None) -> tuple[Verdict, ...]:
    """Every obligation of `function`, each with its own verdict, in the order of the text within each kind.

    `where` is a condition on symbols that the caller vouches for. Raises LayoutproofError for a malformed layout record. A program
    whose assumptions cannot all hold, that always faults, or that stores nothing observable, has one further verdict that is `vacuous`.
    """
    verdicts = check_facts(Facts.of(function, where))
    runs = prove_runs(function, where)
    return (*verdicts, runs) if runs is not None and runs.status is Status.VACUOUS else verdicts

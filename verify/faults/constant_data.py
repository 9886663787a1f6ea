"""Whether arrays of one value each satisfy what a program assumes of its data. Part of the trust base."""

from __future__ import annotations

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Compare, Expr, FloatImm, IntImm, Logical, Var, const
from layoutproof.ir.intrinsics import Assume, Limit, assumed_undef
from layoutproof.ir.node import Node
from layoutproof.ir.operators import CompareOp, LogicalOp
from layoutproof.ir.visit import free_variables, map_children, walk
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.program.instances import conjuncts
from layoutproof.verify.values.fast_math import IEEE
from layoutproof.verify.values.fast_math_search import search_fast_math
from layoutproof.verify.values.question import Question
from layoutproof.verify.values.solving import QUICK


def constants_do(facts: Facts) -> bool:
    """Whether constant arrays, with the values that assumptions state, satisfy all assumptions but `facts`'."""
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
    load, value = (
        (condition.lhs, condition.rhs) if isinstance(condition.lhs, BufferLoad) else (condition.rhs, condition.lhs)
    )
    plain = isinstance(value, IntImm | Limit) or (isinstance(value, FloatImm) and value.value == value.value)
    if not plain or not isinstance(load, BufferLoad) or load.buffer.data not in parameters:
        return False
    return values.setdefault(load.buffer.data, value) == value


def _is_true_of(condition: Expr, values: dict[Var, Expr], parameters: set[Var]) -> bool:
    """Whether a condition holds where each load gives the value of its array, one where nothing was said."""

    def visit(node: Node) -> Node:
        if (
            isinstance(node, BufferLoad)
            and node.buffer.data in parameters
            and node.dtype.lanes == 1
            and not node.dtype.is_bool
        ):
            return values.setdefault(node.buffer.data, const(1, node.dtype))
        return map_children(node, visit)

    plain = visit(condition)
    if not isinstance(plain, Expr) or free_variables(plain):
        return False
    return search_fast_math(Question(plain, const(True)), IEEE, QUICK).is_proved

"""The rewrite rules: each one is proved, and plausible rules that are not in the table are refuted."""

from __future__ import annotations

import pytest
from tests.shares import one_in

from layoutproof.ir.dtype import FLOAT32, INT32
from layoutproof.ir.expr import TRUE, Var, const
from layoutproof.ir.rewrite import Domain, Rule
from layoutproof.lowering.arith.rules import ALL_RULES, VALUE_RULES
from layoutproof.verify.certificate.lemmas import prove_rule
from layoutproof.verify.verdict.verdict import Status


@one_in(7)
@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.name)
def test_every_rule_is_a_lemma(rule: Rule) -> None:
    """The rule holds for all values of its variables that satisfy its condition."""
    verdict = prove_rule(rule)
    assert verdict.status is Status.PROVED, verdict


def test_rules_have_names_of_their_own() -> None:
    """A rule's name says which one it is, and its source where it stands."""
    assert len({rule.name for rule in ALL_RULES}) == len(ALL_RULES)
    assert all(rule.source.startswith("lowering/arith/rules.py:") for rule in ALL_RULES)
    assert all(rule.lhs.dtype == dtype for dtype, rules in VALUE_RULES.items() for rule in rules)


_x, _i, _c = Var("x", FLOAT32), Var("i", INT32), Var("c", INT32)

WRONG = [
    Rule("add-plus-zero", (_x,), _x + 0.0, _x, TRUE, Domain.VALUE),
    Rule("mul-zero", (_x,), _x * 0.0, const(0.0, FLOAT32), TRUE, Domain.VALUE),
    Rule("sub-self", (_x,), _x - _x, const(0.0, FLOAT32), TRUE, Domain.VALUE),
    Rule("quotient-times-divisor", (_i, _c), (_i // _c) * _c, _i, _c > 0),
    Rule("remainder-without-condition", (_i, _c), _i % _c, _i, _c > 0),
    Rule("halve-of-double", (_i,), (_i * 2) // 2, _i, TRUE, Domain.VALUE),
]


@pytest.mark.parametrize("rule", WRONG, ids=lambda rule: rule.name)
def test_tempting_rules_are_refuted(rule: Rule) -> None:
    """Rules that are true only of most values are refuted, with the value that breaks them."""
    verdict = prove_rule(rule)
    assert verdict.status is Status.REFUTED and verdict.counterexample

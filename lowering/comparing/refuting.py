"""Differences that were seen: under each contract that nobody stated, and faults that only the new program has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, product

from layoutproof.ir.layout_record import Contract
from layoutproof.ir.rewrite import InstanceMap
from layoutproof.lowering.comparing.contracts import Choice, assumed_contracts, options_of
from layoutproof.lowering.comparing.proposal import Moved
from layoutproof.lowering.comparing.trying import Asked, Trial, checked, last_values
from layoutproof.lowering.effects import data_written
from layoutproof.verify.verdict import codes as claims
from layoutproof.verify.verdict.verdict import Status, Verdict

_MOST_CHOICES = 6
# What a program does by itself, whatever its parameters mean to callers and whatever their padding holds.
_ALONE = frozenset({claims.OUTSIDE, claims.RACE})


def refuted(asked: Asked, moved: Sequence[Moved], instances: Sequence[InstanceMap]) -> list[Trial]:
    """A refutation for each choice of the contracts that are open; empty where one choice has none."""
    found: list[Trial] = []
    for contracts in _choices(asked, moved, instances):
        trial = _seen_to_differ(asked, checked(asked, moved, contracts, instances, search=True))
        if trial is None:
            return []
        found.append(trial)
    return found


def _choices(asked: Asked, moved: Sequence[Moved], instances: Sequence[InstanceMap]) -> Iterator[dict[str, Choice]]:
    written, last = data_written(asked.new.body), last_values(asked, moved, instances)
    lists: dict[str, tuple[Choice, ...]] = {}
    for place in moved:
        buffer = place.term.new
        if place.is_open and buffer.data in written:
            # A contract of what is written asks something of the new program; the one that it keeps, or none, is no reason to differ.
            value = last[place.name].value if place.name in last else None
            lists[place.name] = (value if value is not None else Contract.undef(buffer.dtype),)
        elif place.is_open:
            stated = tuple(dict.fromkeys(assumed_contracts(asked.new, buffer)))
            if len(stated) > 1:
                return  # It assumes different things of different padding, which no single contract says.
            # What says most of the padding first: where even that does not help, the others will not.
            lists[place.name] = stated if stated else tuple(reversed(options_of(asked.new, buffer, None)))
    for choice in islice(product(*lists.values()), _MOST_CHOICES):
        yield dict(zip(lists, choice, strict=True))


def _seen_to_differ(asked: Asked, trial: Trial) -> Trial | None:
    """The trial where it refutes that both programs do the same; None where it does not.

    That the new program faults does not, where the old one may fault itself: then a run has to show that only the new one does.
    """
    from layoutproof.verify.replay.refute import REPLAY, find_counterexample

    shown = next((v for v in trial.verdicts if v.status is Status.REFUTED), None)
    if shown is None or shown.engine == REPLAY or _is_faultless(asked):
        return trial if shown is not None else None
    found = find_counterexample(trial.rewrite, where=asked.where, licences=asked.allowed)
    if found is None:
        return None
    rest = (v for v in trial.verdicts if v.status is not Status.REFUTED)
    seen = Verdict(Status.REFUTED, shown.claim, REPLAY, reason=found.text(), counterexample=found.to_dict(), seconds=shown.seconds)
    return replace(trial, verdicts=(seen, *rest))


def fault_alone(asked: Asked, trial: Trial) -> Verdict | None:
    """A fault that the new program has whatever its layouts mean, and the old one has not: an access that leaves its buffer, or a race."""
    found = (v for v in trial.verdicts if v.status is Status.REFUTED and v.claim.kind.code in _ALONE)
    shown = next(found, None)
    return shown if shown is not None and _is_faultless(asked) else None


def of_nothing(asked: Asked) -> Verdict | None:
    """The verdict that nothing is asked: no input satisfies all assumptions, the old program always faults, or neither stores anything
    that callers see. None where that is not known.
    """
    from layoutproof.verify.faults.vacuity import is_idle, prove_runs

    found = prove_runs(asked.old, asked.where)
    if found is None or found.status is not Status.VACUOUS:
        return None
    # Where only the old one stores nothing, the new one may do what it should not.
    return found if not is_idle(asked.old, asked.where) or is_idle(asked.new, asked.where) else None


def _is_faultless(asked: Asked) -> bool:
    """Whether the old program is proved to have no fault."""
    return all(v.status is Status.PROVED for v in _verdicts_on_old(asked))


def _verdicts_on_old(asked: Asked) -> tuple[Verdict, ...]:
    from layoutproof.verify.faults.facts import Facts
    from layoutproof.verify.faults.no_faults import check_facts

    return check_facts(Facts.of(asked.old, asked.where), calls=False)

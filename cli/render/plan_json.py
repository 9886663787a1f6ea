"""A plan as `plan --format json` prints it; `docs/schemas/plan.schema.json` describes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from layoutproof.cli.plan.plan_layouts import Map
from layoutproof.cli.plan.plan_options import Left
from layoutproof.cli.plan.plan_result import GraphTrial, OutputComparison, PlanReport
from layoutproof.graph.graph_files import step_text
from layoutproof.graph.model.graph import signature_of
from layoutproof.graph.planning.array_layouts import holding
from layoutproof.graph.planning.planning_problem import Choice, cost_of
from layoutproof.graph.planning.variants import calls_of, operator_name
from layoutproof.graph.rewrite.fold import Fold
from layoutproof.graph.rewrite.hoist_rewrites import Hoisted
from layoutproof.ir.index_map import index_map_text


def plan_to_dict(report: PlanReport) -> dict[str, Any]:
    """A plan as JSON has it: the request, counts, remaining rewrites, and every verdict."""
    plan = report.plan
    return {
        "graph": report.source,
        "name": report.graph.name,
        "verdict": report.proof.value,
        "strictness": sorted({word for verdict in report.claims for word in verdict.strictness}),
        "calls": report.calls,
        "functions": len(report.graph.functions()),
        "constants": len(report.graph.constants),
        "asked": {call: {array: _asked(m) for array, m in maps.items()} for call, maps in report.asked.calls.items()},
        "not_given": dict(plan.refused),
        "hoisted": [hoisted_to_dict(each) for each in report.hoisting.made],
        "folds": [fold_to_dict(fold) for fold in report.folding.made],
        "folds_refused": [fold_to_dict(fold) for fold in report.folding.refused],
        "assumed": list(plan.assumed),
        "rewrites": {
            "before": _count_to_dict(report, plan.unplanned),
            "greedy": _count_to_dict(report, plan.greedy),
            "planned": _count_to_dict(report, plan.choice),
            "absorbed": None if report.absorbed is None else left_to_dict(report.left),
            "by": "greedy" if report.greedy else "exact",
            "optimal": plan.optimal,
            "least": plan.least,
        },
        "limits": [
            {"at_most": limit.text, "kept": all(limit is not each.limit for each in report.broken)}
            for limit in report.limits
        ],
        "remaining": [each.to_dict() for each in report.remaining],
        "kept": [{"value": each.value, "bytes": each.bytes} for each in report.kept],
        "padding": list(plan.contracts),
        "left_out": dict(plan.cut),
        "interface": _interface_to_dict(report),
        "operators": [
            {"operator": name, "layout": layout, "calls": number} for name, layout, number in report.operators
        ],
        "layouts": dict(_layouts(report)),
        "values": [verdict.to_dict() for verdict in report.verdicts],
        "refused": None if report.refused is None else [verdict.to_dict() for verdict in report.refused.verdicts],
        "run": None if report.trial is None else _trial_to_dict(report.trial),
        "written": [str(path) for path in report.written],
        "seconds": {name: round(seconds, 4) for name, seconds in report.seconds.items()},
    }


def _asked(given: Map) -> str:
    """A requested layout, with the contents of its padding."""
    index_map, pad = given if isinstance(given, tuple) else (given, None)
    return holding(index_map_text(index_map), pad)


def _count_to_dict(report: PlanReport, choice: Choice) -> dict[str, int]:
    found = left_to_dict(report.moved(choice))
    return found if report.costs is None else {**found, "cost": cost_of(report.plan.problem, choice)}


def left_to_dict(left: Left) -> dict[str, int]:
    """The remaining rewrites."""
    return {"count": left.count, "bytes": left.bytes}


def _layouts(report: PlanReport) -> Iterator[tuple[str, dict[str, Any]]]:
    """By calls (their first values): the operator and the layouts of its arrays, before folding into calls."""
    plan = report.plan
    inner = plan.problem.inner
    for call, asked, number in zip(calls_of(plan.graph), plan.problem.calls[inner], plan.choice[inner], strict=True):
        signature, own = signature_of(call.function), asked.own[number]
        arrays = zip((*signature.operands, *signature.results), (*own.operands, *own.results), strict=True)
        yield (
            call.results[0].name,
            {"operator": operator_name(call), "arrays": {buffer.name: layout for buffer, layout in arrays}},
        )


def _interface_to_dict(report: PlanReport) -> dict[str, Any]:
    """By inputs and outputs with a new layout: their layouts."""
    found = report.plan.interface
    outputs = found.outputs if found.outputs is not None else ()
    return {
        "inputs": {name: index_map_text(index_map) for name, index_map in found.inputs.items()},
        "outputs": [{"value": name, "layout": index_map_text(index_map)} for name, index_map in outputs],
        "padding": list(report.padding_of_ends),
    }


def hoisted_to_dict(hoisted: Hoisted) -> dict[str, Any]:
    """A function that was taken apart."""
    parts = [{"array": each.outer, "side": "before" if each.is_before else "after"} for each in hoisted.lifted]
    return {
        "function": hoisted.function.name,
        "lifted": parts,
        "obligations": [verdict.to_dict() for verdict in hoisted.verdicts],
    }


def fold_to_dict(fold: Fold) -> dict[str, Any]:
    """A fold that was made, or tried."""
    return {
        "value": fold.value,
        "before": [step_text(step) for step in fold.old],
        "after": [step_text(step) for step in fold.new],
        "assumed": fold.assumed,
        "obligations": [verdict.to_dict() for verdict in fold.verdicts],
    }


def output_to_dict(each: OutputComparison) -> dict[str, Any]:
    """A compared output."""
    return {"value": each.name, "cells": each.cells, "differing": each.differing}


def _trial_to_dict(trial: GraphTrial) -> dict[str, Any]:
    peer = trial.peer
    return {
        "equal": trial.equal,
        "outputs": [output_to_dict(each) for each in trial.outputs],
        "given_seconds": trial.given_seconds,
        "unplanned_seconds": trial.unplanned_seconds,
        "planned_seconds": trial.planned_seconds,
        "onnxruntime": None
        if peer is None
        else {
            "version": peer.version,
            "difference": peer.difference.hex(),
            "close": peer.close,
            "seconds": peer.seconds,
        },
    }

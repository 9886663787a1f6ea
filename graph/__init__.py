"""Graphs of operators, how layouts flow through them, and plans with the fewest layout rewrites. It proposes; `verify`
decides.

The public names live in the modules below and are loaded on first use.
"""

if __name__ != "layoutproof.graph":
    raise ImportError(
        f"this folder is the package layoutproof.graph, imported here as {__name__!r}; "
        "write 'import layoutproof.graph' (imported under two names, every class in it would exist twice)"
    )

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from layoutproof.graph.builder import GraphBuilder
    from layoutproof.graph.flow.layout_flow import NoFlow
    from layoutproof.graph.flow.layout_flow import flow as flow_layouts
    from layoutproof.graph.graph_files import load_graph, print_graph, save_graph
    from layoutproof.graph.graph_reader import parse_graph
    from layoutproof.graph.model.graph import Graph, Value, frozen
    from layoutproof.graph.model.graph_run import run_graph
    from layoutproof.graph.model.graph_witness import GraphRewrite, Interface
    from layoutproof.graph.planning.costs import MeasuredCosts, Move, load_costs, save_costs
    from layoutproof.graph.planning.formulation import FREE
    from layoutproof.graph.planning.planner import Plan, plan
    from layoutproof.graph.prove.graph_certificate import save_graph_certificate
    from layoutproof.graph.prove.graph_matching import Replacement, prove_planned
    from layoutproof.graph.prove.prove_graph import prove_graph_rewrite
    from layoutproof.graph.rewrite.absorb import absorbed as fold_into_planned_call
    from layoutproof.graph.rewrite.absorb import fold_into_call
    from layoutproof.graph.rewrite.fold import fold as fold_graph
    from layoutproof.graph.rewrite.hoist_rewrites import hoist_layout_rewrites, hoisted_graph
    from layoutproof.graph.rewrite.recognise import operators_of
    from layoutproof.graph.tuning.kernels import Kernels

__all__ = [
    "FREE",
    "Graph",
    "GraphBuilder",
    "GraphRewrite",
    "Interface",
    "Kernels",
    "MeasuredCosts",
    "Move",
    "NoFlow",
    "Plan",
    "Replacement",
    "Value",
    "flow_layouts",
    "fold_graph",
    "fold_into_call",
    "fold_into_planned_call",
    "frozen",
    "hoist_layout_rewrites",
    "hoisted_graph",
    "load_costs",
    "load_graph",
    "operators_of",
    "parse_graph",
    "plan",
    "print_graph",
    "prove_graph_rewrite",
    "prove_planned",
    "run_graph",
    "save_costs",
    "save_graph",
    "save_graph_certificate",
]

# Where a module and its function have one name, the function is called otherwise here: the module takes that name when
# it is loaded.
_HOME: dict[str, tuple[str, str]] = {
    "FREE": ("planning.formulation", "FREE"),
    "Graph": ("model.graph", "Graph"),
    "GraphBuilder": ("builder", "GraphBuilder"),
    "GraphRewrite": ("model.graph_witness", "GraphRewrite"),
    "Interface": ("model.graph_witness", "Interface"),
    "Kernels": ("tuning.kernels", "Kernels"),
    "MeasuredCosts": ("planning.costs", "MeasuredCosts"),
    "Move": ("planning.costs", "Move"),
    "NoFlow": ("flow.layout_flow", "NoFlow"),
    "Plan": ("planning.planner", "Plan"),
    "Replacement": ("prove.graph_matching", "Replacement"),
    "Value": ("model.graph", "Value"),
    "flow_layouts": ("flow.layout_flow", "flow"),
    "fold_graph": ("rewrite.fold", "fold"),
    "fold_into_call": ("rewrite.absorb", "fold_into_call"),
    "fold_into_planned_call": ("rewrite.absorb", "absorbed"),
    "frozen": ("model.graph", "frozen"),
    "hoist_layout_rewrites": ("rewrite.hoist_rewrites", "hoist_layout_rewrites"),
    "hoisted_graph": ("rewrite.hoist_rewrites", "hoisted_graph"),
    "load_costs": ("planning.costs", "load_costs"),
    "load_graph": ("graph_files", "load_graph"),
    "operators_of": ("rewrite.recognise", "operators_of"),
    "parse_graph": ("graph_reader", "parse_graph"),
    "plan": ("planning.planner", "plan"),
    "print_graph": ("graph_files", "print_graph"),
    "prove_graph_rewrite": ("prove.prove_graph", "prove_graph_rewrite"),
    "prove_planned": ("prove.graph_matching", "prove_planned"),
    "run_graph": ("model.graph_run", "run_graph"),
    "save_costs": ("planning.costs", "save_costs"),
    "save_graph": ("graph_files", "save_graph"),
    "save_graph_certificate": ("prove.graph_certificate", "save_graph_certificate"),
}


if not TYPE_CHECKING:  # a type checker that saw a module's __getattr__ would let every misspelt name pass

    def __getattr__(name: str) -> object:
        """The public object `name`, from its home module; kept, so that the second access is a plain lookup."""
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, attribute = _HOME[name]
        value: object = getattr(import_module(f"{__name__}.{module}"), attribute)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Graphs of operators, how layouts flow through them, and plans with the fewest layout rewrites. It proposes; `verify` decides.

The public names live in the modules below and are loaded on first use.
"""

if __name__ != "layoutproof.graph":
    raise ImportError(
        f"this folder is the package layoutproof.graph, imported here as {__name__!r}; write 'import layoutproof.graph' "
        "(imported under two names, every class in it would exist twice)"
    )

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from layoutproof.graph.absorb import fold_into_call
    from layoutproof.graph.absorbed import absorbed as fold_into_planned_call
    from layoutproof.graph.builder import GraphBuilder
    from layoutproof.graph.certificate import save_graph_certificate
    from layoutproof.graph.flow import NoFlow
    from layoutproof.graph.flow import flow as flow_layouts
    from layoutproof.graph.fold import fold as fold_graph
    from layoutproof.graph.hoist import hoist_layout_rewrites, hoisted_graph
    from layoutproof.graph.kernels import Kernels
    from layoutproof.graph.matching import prove_planned
    from layoutproof.graph.model import Graph, Value
    from layoutproof.graph.planning.cost_files import load_costs, save_costs
    from layoutproof.graph.planning.costs import Move
    from layoutproof.graph.planning.ends import FREE
    from layoutproof.graph.planning.measuring import MeasuredCosts
    from layoutproof.graph.planning.plan import Plan, plan
    from layoutproof.graph.planning.replaced import Replacement
    from layoutproof.graph.proving import prove_graph_rewrite
    from layoutproof.graph.recognise import operators_of
    from layoutproof.graph.run import run_graph
    from layoutproof.graph.signature import frozen
    from layoutproof.graph.text.files import load_graph, save_graph
    from layoutproof.graph.text.printer import print_graph
    from layoutproof.graph.text.reader import parse_graph
    from layoutproof.graph.witness import GraphRewrite, Interface

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

# Where a module and its function have one name, the function is called otherwise here: the module takes that name when it is loaded.
_HOME: dict[str, tuple[str, str]] = {
    "FREE": ("planning.ends", "FREE"),
    "Graph": ("model", "Graph"),
    "GraphBuilder": ("builder", "GraphBuilder"),
    "GraphRewrite": ("witness", "GraphRewrite"),
    "Interface": ("witness", "Interface"),
    "Kernels": ("kernels", "Kernels"),
    "MeasuredCosts": ("planning.measuring", "MeasuredCosts"),
    "Move": ("planning.costs", "Move"),
    "NoFlow": ("flow", "NoFlow"),
    "Plan": ("planning.plan", "Plan"),
    "Replacement": ("planning.replaced", "Replacement"),
    "Value": ("model", "Value"),
    "flow_layouts": ("flow", "flow"),
    "fold_graph": ("fold", "fold"),
    "fold_into_call": ("absorb", "fold_into_call"),
    "fold_into_planned_call": ("absorbed", "absorbed"),
    "frozen": ("signature", "frozen"),
    "hoist_layout_rewrites": ("hoist", "hoist_layout_rewrites"),
    "hoisted_graph": ("hoist", "hoisted_graph"),
    "load_costs": ("planning.cost_files", "load_costs"),
    "load_graph": ("text.files", "load_graph"),
    "operators_of": ("recognise", "operators_of"),
    "parse_graph": ("text.reader", "parse_graph"),
    "plan": ("planning.plan", "plan"),
    "print_graph": ("text.printer", "print_graph"),
    "prove_graph_rewrite": ("proving", "prove_graph_rewrite"),
    "prove_planned": ("matching", "prove_planned"),
    "run_graph": ("run", "run_graph"),
    "save_costs": ("planning.cost_files", "save_costs"),
    "save_graph": ("text.files", "save_graph"),
    "save_graph_certificate": ("certificate", "save_graph_certificate"),
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

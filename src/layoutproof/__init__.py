"""Proofs and counterexamples for tensor layout transforms.

The public names live in the packages below and are loaded on first use, so that `import layoutproof` is cheap and loads
no solver.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from layoutproof.cli.render.python_api import Drawing, draw, explain, plan
    from layoutproof.importers.compare_files import compare
    from layoutproof.ir.diagnostic import LayoutproofError
    from layoutproof.ir.index_map import AXIS_SEPARATOR, IndexMap
    from layoutproof.ir.intrinsics import undef
    from layoutproof.ir.primfunc import PrimFunc
    from layoutproof.ir.script.reader import load, loads
    from layoutproof.lowering.compare.comparison import Comparison
    from layoutproof.lowering.gates import gate
    from layoutproof.lowering.kernels.relayout import relayout
    from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
    from layoutproof.lowering.suggest.suggest import suggest
    from layoutproof.studies.study_table import study
    from layoutproof.verify.maps.check_map import check_map
    from layoutproof.verify.verdict.report import NotProved
    from layoutproof.verify.verdict.verdict import Status, Verdict

__version__ = "0.1.0"

__all__ = [
    "AXIS_SEPARATOR",
    "Comparison",
    "Drawing",
    "IllegalTransform",
    "IndexMap",
    "LayoutproofError",
    "NotProved",
    "PrimFunc",
    "Schedule",
    "Status",
    "Verdict",
    "__version__",
    "check_map",
    "compare",
    "draw",
    "explain",
    "gate",
    "load",
    "loads",
    "plan",
    "relayout",
    "study",
    "suggest",
    "undef",
]

_HOME: dict[str, str] = {
    "AXIS_SEPARATOR": "layoutproof.ir.index_map",
    "Comparison": "layoutproof.lowering.compare.comparison",
    "Drawing": "layoutproof.cli.render.python_api",
    "IllegalTransform": "layoutproof.lowering.schedule.schedule",
    "IndexMap": "layoutproof.ir.index_map",
    "LayoutproofError": "layoutproof.ir.diagnostic",
    "NotProved": "layoutproof.verify.verdict.report",
    "PrimFunc": "layoutproof.ir.primfunc",
    "Schedule": "layoutproof.lowering.schedule.schedule",
    "Status": "layoutproof.verify.verdict.verdict",
    "Verdict": "layoutproof.verify.verdict.verdict",
    "check_map": "layoutproof.verify.maps.check_map",
    "compare": "layoutproof.importers.compare_files",
    "draw": "layoutproof.cli.render.python_api",
    "explain": "layoutproof.cli.render.python_api",
    "gate": "layoutproof.lowering.gates",
    "load": "layoutproof.ir.script.reader",
    "loads": "layoutproof.ir.script.reader",
    "plan": "layoutproof.cli.render.python_api",
    "relayout": "layoutproof.lowering.kernels.relayout",
    "study": "layoutproof.studies.study_table",
    "suggest": "layoutproof.lowering.suggest.suggest",
    "undef": "layoutproof.ir.intrinsics",
}


if not TYPE_CHECKING:  # a type checker that saw a module's __getattr__ would let every misspelt name pass

    def __getattr__(name: str) -> object:
        """The public object `name`, from its home module; kept, so that the second access is a plain lookup."""
        home = _HOME.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value: object = getattr(import_module(home), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

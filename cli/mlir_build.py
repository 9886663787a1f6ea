"""What `build --target mlir` writes: the program as MLIR, read back and proved to do what the program does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from layoutproof.ir.diagnostic import error
from layoutproof.lowering.codegen import codes
from layoutproof.verify.verdict.verdict import Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from layoutproof.ir.primfunc import PrimFunc
    from layoutproof.lowering.runtime.call_arguments import Assumption
    from layoutproof.lowering.runtime.kernel import BuildReport
    from layoutproof.lowering.schedule.schedule import Schedule


def mlir_of(schedule: Schedule, check: bool) -> tuple[str, dict[str, Any], BuildReport | None]:
    """The text, its interface, and with `check` how it was checked. Raises LayoutproofError for what cannot be
    printed, and for a text that is not proved to do what the program does.
    """
    from layoutproof.ir.threads.axes import has_threads
    from layoutproof.lowering.codegen.mlir import emit_mlir

    if has_threads(schedule.func.body):
        emit_mlir(schedule.func)  # which says where they are
    lowered = schedule.lower_nested()
    text = emit_mlir(lowered)
    return text, _interface(lowered, schedule.assumptions), _checked(lowered, text) if check else None


def _checked(lowered: PrimFunc, text: str) -> BuildReport:
    from layoutproof.importers.mlir import read_functions
    from layoutproof.lowering.compare.compare_programs import compare
    from layoutproof.lowering.runtime.kernel import BuildReport

    found = compare(lowered, read_functions(text, "the printed MLIR")[lowered.name].program)
    if found.status not in (Status.PROVED, Status.VACUOUS):
        raise error(
            codes.SELF_CHECK,
            f"what was printed is not proved to do what {lowered.name} does: {found.verdicts[0].reason}",
            help="--no-check writes it all the same",
        )
    return BuildReport(
        target="mlir",
        command="",
        source_path=None,
        library_path=None,
        reused=False,
        index_bits=64,
        openmp=False,
        fast=False,
        self_check="passed: the text was read again, and is proved to do what the program does",
        notes=(),
    )


def _interface(func: PrimFunc, assumptions: Iterable[Assumption]) -> dict[str, Any]:
    from layoutproof.lowering.codegen.mlir import signature

    return {
        "entry": func.name,
        "parameters": signature(func),
        "assumptions": [{"text": each.text, "duty": "not checked"} for each in assumptions],
    }

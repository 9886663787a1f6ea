"""The report of `run` and `build`, as text and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from layoutproof.cli.kernel_trial import OutputTrial, PaddingTrial, Trial
from layoutproof.cli.output import escaped, is_verbose, styled
from layoutproof.cli.render.map_report import counterexample_text, verdict_text
from layoutproof.cli.run_result import BuildResult, Refusal, RunReport
from layoutproof.lowering.passes.steps import Step
from layoutproof.lowering.runtime.kernel import BuildReport
from layoutproof.verify.values.fast_math import FastMath, names_of
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import ClaimKind, Status, Verdict


def run_to_dict(report: RunReport) -> dict[str, Any]:
    """The run as JSON has it: `check`'s keys, the lowering passes, and the comparison under `run`, null after a refused
    step.

    A refused step is in its place among the steps, with the obligations that were not proved. Floats are hexadecimal
    texts.
    """
    steps, lowering = ([step.to_dict() for step in part] for part in (report.steps, report.lowering))
    if report.refused is not None:
        (lowering if report.refused.primitive in ("lower", "build") else steps).append(report.refused.to_dict())
    return {
        "program": report.program,
        "verdict": report.status.value,
        "steps": steps,
        "certificate": None,
        "lowering": lowering,
        "build": None if report.built is None else _build_to_dict(report.built),
        "fault": None if report.fault is None else {"kind": report.fault.kind.value, "message": str(report.fault)},
        "run": None if report.trial is None else {"after_steps": report.excused, **_trial_to_dict(report.trial)},
    }


def _build_to_dict(built: BuildReport) -> dict[str, Any]:
    return {
        "target": built.target,
        "device": built.device,
        "command": built.command,
        "source": built.source_path,
        "index_bits": built.index_bits,
        "self_check": built.self_check,
        "licences": list(built.fast_math),
        "obligations": [verdict.to_dict() for verdict in built.verdicts],
        "notes": list(built.notes),
    }


def _trial_to_dict(trial: Trial) -> dict[str, Any]:
    return {
        "equal": trial.equal,
        "instances": trial.instances,
        "cells": "slice" if trial.sliced else "all",
        "enclosed": trial.enclosed,
        "kernel_seconds": trial.kernel_seconds,
        "interpreter_seconds": trial.interpreter_seconds,
        "outputs": [
            {
                "buffer": output.buffer,
                "cells": output.cells,
                "compared": output.compared,
                "differing": output.differing,
                "worst_ulps": output.worst_ulps,
                "outside": output.outside,
                "arbitrary": output.arbitrary,
                "first": _first_to_list(output.first),
            }
            for output in trial.outputs
        ],
        "padding": [
            {
                "buffer": padding.buffer,
                "owed": padding.required,
                "untouchable": padding.untouchable,
                "wrong": padding.wrong,
                "first": _first_to_list(padding.first),
            }
            for padding in trial.padding
        ],
    }


def _first_to_list(first: tuple[tuple[int, ...], Any, Any] | None) -> list[Any] | None:
    return None if first is None else [list(first[0]), number_text(first[1]), number_text(first[2])]


def number_text(value: Any) -> str:
    """A number exactly: integers in decimal, floats in hexadecimal."""
    number = value.item() if hasattr(value, "item") else value
    return number.hex() if isinstance(number, float) else str(number)


def render_run(report: RunReport, markup: bool = False) -> str:
    """The steps with their verdicts, then lowering, build and comparison; one fact a line."""
    lines = [escaped(report.program, markup)]
    for step in report.steps:
        lines.extend(step_lines(step, markup))
    if report.lowering:
        lines.extend(lowering_lines(report.lowering, markup))
    if report.refused is not None:
        lines.extend(refusal_lines(report.refused, markup))
    if report.built is not None:
        lines.extend(build_lines(report.built, markup))
    if report.trial is not None:
        lines.extend(_excused_lines(report))
        lines.extend(trial_lines(report.trial, markup))
    if report.fault is not None:
        text = f"the reference interpreter stopped: {report.fault}"
        lines.append(f"  {_word(report.status, markup)} {escaped(text, markup)}")
    return "\n".join(lines) + "\n"


def _word(status: Status, markup: bool, word: str | None = None) -> str:
    return styled(f"{status.value if word is None else word:<8}", status, markup)


def step_lines(step: Step, markup: bool) -> Iterator[str]:
    """A step: its worst verdict, its number of obligations, and each that was not proved."""
    name = escaped(str(step), markup)
    yield f"  {_word(step.status, markup)} {name}: {_obligations(step.verdicts)}"
    yield from _not_proved(step.verdicts, markup)


def lowering_lines(passes: Sequence[Step], markup: bool) -> Iterator[str]:
    """Lowering: the number of passes and obligations, and, once each, what was not proved."""
    verdicts = [verdict for step in passes for verdict in step.verdicts]
    yield (
        f"  {_word(worst(v.status for v in verdicts), markup)} lowered in {len(passes)} passes: "
        f"{_obligations(verdicts)}"
    )
    yield from _not_proved({verdict.claim: verdict for verdict in verdicts}.values(), markup)


def _obligations(verdicts: Sequence[Verdict]) -> str:
    return f"{len(verdicts)} obligation{'' if len(verdicts) == 1 else 's'}"


def refusal_lines(refused: Refusal, markup: bool) -> Iterator[str]:
    """A refused step, and each obligation that was not proved."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in refused.arguments.items())
    name = f"{refused.primitive}({arguments})" if refused.primitive != "lower" else "lowering"
    status = worst(v.status for v in refused.verdicts)
    what = "not built" if refused.primitive == "build" else "not applied"
    yield f"  {_word(status, markup)} {escaped(name, markup)}: {what}"
    yield from _not_proved(refused.verdicts, markup)


def _not_proved(verdicts: Iterable[Verdict], markup: bool) -> Iterator[str]:
    for verdict in verdicts:
        if verdict.status is not Status.PROVED:
            claim = escaped(verdict.claim.text, markup)
            # A difference between runs takes several lines.
            first, *rest = verdict_text(verdict, markup).split("\n")
            yield f"      {claim}: {first}"
            yield from (f"      {line}" for line in rest)
            example = counterexample_text(verdict)
            if example is not None:
                yield f"        {escaped(example, markup)}"


# Claims of these kinds, one per access, are counted in a summary; all others are listed.
_KINDS = {
    ClaimKind.WITHIN_BUFFER: "accesses stay within their buffers",
    ClaimKind.DEFINED_READ: "no uninitialised reads",
}


def summary_lines(verdicts: Sequence[Verdict], markup: bool) -> Iterator[str]:
    """Proved obligations by kind, with their number and, if verbose, engines; each that was not proved in full."""
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.status is Status.PROVED:
            groups.setdefault(_KINDS.get(verdict.claim.kind, verdict.claim.text), []).append(verdict)
    for kind, group in groups.items():
        parts = [str(len(group))] if len(group) > 1 else []
        if is_verbose():
            engines = Counter(v.engine for v in group)
            parts += [", ".join(f"{name} {n}" if len(group) > 1 else name for name, n in engines.items())]
        text = f"{kind} ({': '.join(parts)})" if parts else kind
        yield f"      {escaped(text, markup)}"
    yield from _not_proved(verdicts, markup)


def build_lines(built: BuildReport, markup: bool) -> Iterator[str]:
    """How the kernel was built."""
    if built.verdicts:
        yield (
            f"  {_word(worst(v.status for v in built.verdicts), markup)} its textures can be images: "
            f"{_obligations(built.verdicts)}"
        )
    if built.target == "mlir":
        how = "as MLIR"
    elif built.device is not None:
        how = f"for {built.device}"
    else:
        how = f"with {Path(built.command.split(' ', 1)[0]).name}{' (from the cache)' if built.reused else ''}"
    for text in (
        f"built {how}, {built.index_bits}-bit indices; self-check {built.self_check}",
        *(f"note: {note}" for note in built.notes),
    ):
        yield f"  {escaped(text, markup)}"


def trial_lines(trial: Trial, markup: bool) -> Iterator[str]:
    """The comparison of the kernel with the interpreter."""
    scope = "the backward slice of chosen cells" if trial.sliced else "all cells"
    yield (
        f"  {trial.instances:,} instances; kernel {trial.kernel_seconds * 1e3:.1f} ms, "
        f"interpreter {trial.interpreter_seconds:.2f} s on {scope}"
    )
    for output in trial.outputs:
        yield _compared_line(output.outside == 0, _output_text(output, trial), markup)
    for padding in trial.padding:
        if padding.required or padding.untouchable:
            yield _compared_line(padding.wrong == 0, _padding_text(padding), markup)
    if not trial.outputs:
        yield "  nothing to compare: the function stores to none of its parameters"


def _excused_lines(report: RunReport) -> Iterator[str]:
    """A note that results of the original program may differ, and that the kernel is compared with a later one."""
    steps = report.steps[: report.excused]
    if steps:
        needed = frozenset(FastMath(word) for step in steps for verdict in step.verdicts for word in verdict.strictness)
        yield (
            f"  compared with the program after step {len(steps)}: up to there it does the same with "
            f"{' '.join(names_of(needed))}"
        )


def _compared_line(good: bool, text: str, markup: bool) -> str:
    status = Status.PROVED if good else Status.REFUTED
    return f"  {_word(status, markup, 'equal' if good else 'DIFFERS')} {escaped(text, markup)}"


def _output_text(output: OutputTrial, trial: Trial) -> str:
    text = f"{output.buffer}: {output.compared:,} of {output.cells:,} cells compared"
    if output.beside_padding is not None and output.beside_padding[1]:
        beside, every = output.beside_padding
        text += f" ({'all' if beside == every else f'{beside:,} of the'} {every:,} beside padding among them)"
    if output.arbitrary:
        text += f" ({output.arbitrary:,} of the values may be anything)"
    if output.first is None:
        return f"{text}, bit for bit"
    index, found, wanted = output.first
    allowed = "none may"
    if trial.enclosed:
        allowed = f"{output.outside:,} of them outside of" if output.outside else "all within"
        allowed += " the enclosure of the program"
    elif trial.open is not None:
        allowed = f"the program has no enclosure: {trial.open}"
    return (
        f"{text}, {output.differing:,} differ by up to {output.worst_ulps} ulp ({allowed}), "
        f"first at {list(index)}: kernel {number_text(found)}, interpreter {number_text(wanted)}"
    )


def _padding_text(padding: PaddingTrial) -> str:
    parts = [f"{padding.required:,} padding cells satisfy their contract"] if padding.required else []
    parts += [f"{padding.untouchable:,} padding cells unchanged"] if padding.untouchable else []
    if padding.first is None:
        return f"{padding.buffer}: {', '.join(parts)}"
    index, found, wanted = padding.first
    return (
        f"{padding.buffer}: {padding.wrong:,} of {padding.required + padding.untouchable:,} padding cells are "
        f"wrong, first {list(index)}: expected {number_text(wanted)}, got {number_text(found)}"
    )


def build_to_dict(result: BuildResult) -> dict[str, Any]:
    """`run`'s keys without the run, then the written files and the interface; null after a refused step."""
    proved = run_to_dict(result.report)
    del proved["fault"], proved["run"]
    files = [str(path) for path in result.files] if result.files is not None else []
    return {**proved, "target": result.target, "files": files, "interface": result.interface}


def render_build(result: BuildResult, *, markup: bool = False) -> str:
    """The steps with their verdicts, then the written files and the interface; one fact a line."""
    lines = (f"  {escaped(line, markup)}\n" for line in _written_lines(result))
    return render_run(result.report, markup=markup) + "".join(lines)


def _written_lines(result: BuildResult) -> Iterator[str]:
    interface = result.interface
    if result.files is None or interface is None:
        yield "nothing was written"
        return
    if result.report.built is None:
        yield "not compiled, and not compared with the reference interpreter (--no-check)"
    yield f"wrote {result.files[0]} and {result.files[1]}"
    if result.target == "c":
        arguments = ", ".join(
            f"{p['c_type']}{'' if p['c_type'].endswith('*') else ' '}{p['c_name']}" for p in interface["parameters"]
        )
        yield f"  int {interface['entry']}({arguments})"
        openmp = " -fopenmp" if interface["openmp"] else ""
        yield f"compile with: cc -O3 {' '.join(interface['flags'])}{openmp} -c {result.files[0]}; link with -lm{openmp}"
    elif result.target == "mlir":
        arguments = ", ".join(f"%{p['name']}: {p['type']}" for p in interface["parameters"])
        yield f"  func.func @{interface['entry']}({arguments})"
    else:
        names = ", ".join(launch["kernel"] for launch in interface["launches"])
        yield f"kernels in order: {names}"

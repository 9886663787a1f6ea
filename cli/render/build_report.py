"""What `build` did, as text and as plain data for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.markup import escape

from layoutproof.cli.render.run_report import render_run, run_to_dict
from layoutproof.cli.trial.report import BuildResult


def build_to_dict(result: BuildResult) -> dict[str, Any]:
    """`run`'s keys without the run, then what was written and what a caller has to know; null where a step was refused."""
    proved = run_to_dict(result.report)
    del proved["fault"], proved["run"]
    files = [str(path) for path in result.files] if result.files is not None else []
    return {**proved, "target": result.target, "files": files, "interface": result.interface}


def render_build(result: BuildResult, *, markup: bool = False) -> str:
    """The steps with their verdicts, then what was written and how it is called; one fact a line."""
    lines = (f"  {escape(line) if markup else line}\n" for line in _written_lines(result))
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
        arguments = ", ".join(f"{p['c_type']}{'' if p['c_type'].endswith('*') else ' '}{p['c_name']}" for p in interface["parameters"])
        yield f"  int {interface['entry']}({arguments})"
        openmp = " -fopenmp" if interface["openmp"] else ""
        yield f"compile with: cc -O3 {' '.join(interface['flags'])}{openmp} -c {result.files[0]}; link with -lm{openmp}"
    else:
        names = ", ".join(launch["kernel"] for launch in interface["launches"])
        yield f"kernels in order: {names}"

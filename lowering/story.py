"""A schedule as people read it: the program after each step, what a refusal says, and the proof at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from layoutproof.ir.primfunc import LAYOUT, PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.stmt import Attributes
from layoutproof.lowering.illegal import IllegalTransform
from layoutproof.lowering.step import Step
from layoutproof.verify.verdict.verdict import Verdict


def program_text(func: PrimFunc) -> str:
    """The program without its import line and without the record of its layouts, which the last step's proof states anyway."""
    kept = Attributes({name: value for name, value in func.attrs.items() if name != LAYOUT})
    _, _, text = print_func(replace(func, attrs=kept)).partition("\n\n")
    return text


def step_text(step: Step) -> str:
    """The step, under which licences it is proved, and the program after it."""
    return f"# {step}\n# {_answer(step.verdicts)}\n{program_text(step.rewrite.new)}"


def refusal_text(problem: IllegalTransform) -> str:
    """The first thing that is wrong with a transform that was refused, without the program lines around it."""
    first = problem.diagnostics[0]
    head, *_ = first.message.splitlines()
    return f"# refused: {head}\n" + (f"#   {first.help}\n" if first.help is not None else "")


def proof_text(steps: Sequence[Step], decisive: str) -> str:
    """What was proved: each step with its licences, all together, and every obligation of the last step of the primitive `decisive`.

    Raises ValueError where no step is of that primitive.
    """
    chosen = next((step for step in reversed(steps) if step.transform.primitive == decisive), None)
    if chosen is None:
        raise ValueError(f"no step is a {decisive}")
    lines = [f"{number}. {step.transform.primitive}: {_answer(step.verdicts)}" for number, step in enumerate(steps, start=1)]
    lines.append(f"all together: {_answer([v for step in steps for v in step.verdicts])}")
    lines.append(f"{decisive}:")
    # One line for each claim; those of many accesses are said once.
    lines += dict.fromkeys(f"  {v.status}: {v.claim}{f' ({v.reason})' if v.reason is not None else ''}" for v in chosen.verdicts)
    return "\n".join(lines) + "\n"


def _answer(verdicts: Sequence[Verdict]) -> str:
    counted = Counter(v.status.value for v in verdicts)
    statuses = ", ".join(f"{number} {status}" for status, number in sorted(counted.items()))
    licences = sorted({word for v in verdicts for word in v.strictness})
    return f"{statuses}, {'with ' + ' '.join(licences) if licences else 'bit for bit'}"

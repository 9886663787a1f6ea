"""Questions for tests: pairs of programs as text, and what came of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.tree import ROOT

from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import CellMap, InstanceMap, Rewrite, Witness
from layoutproof.ir.script.reader import load_module, loads_module
from layoutproof.ir.text import Style, expr_text
from layoutproof.lowering.compare.comparison import Found, Question
from layoutproof.lowering.compare.shared_interface import aligned
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status

DATA = ROOT / "tests" / "data" / "pairing"


def question_of(before: PrimFunc, after: PrimFunc, **layouts: str) -> Question:
    """Whether `after` does what `before` does; `layouts` are those of parameters that lie elsewhere, by their names."""
    new = aligned(before, after, {})
    moved = tuple(
        CellMap(buffer.data.name, buffer.data.name, parse_index_map(layouts[buffer.name]))
        for buffer in before.buffers
        if buffer.name in layouts
    )
    return Question(before, new, cells=moved)


def from_text(signature: str, before: str, after: str, after_signature: str | None = None, **layouts: str) -> Question:
    """The same for two bodies; both programs have the parameters of `signature`, unless told otherwise."""
    functions = {
        f.name: f for f in loads_module(_module(signature, before, after_signature or signature, after)).functions
    }
    return question_of(functions["before"], functions["after"], **layouts)


def _module(first: str, before: str, second: str, after: str) -> str:
    texts = [
        (
            f'@T.prim_func(s_tir=True)\ndef {name}({signature}):\n    T.func_attr({{"tirx.noalias": True}})\n'
            f"{_indented(body)}\n"
        )
        for name, signature, body in (("before", first, before), ("after", second, after))
    ]
    return "# from tvm.script import tirx as T\n\n" + "\n\n".join(texts)


def _indented(body: str) -> str:
    lines = body.strip("\n").split("\n")
    least = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join(f"    {line[least:]}" for line in lines)


def from_file(path: Path) -> Question:
    """The question that a file with the functions `before` and `after` asks."""
    functions = {f.name: f for f in load_module(path).functions}
    return question_of(functions["before"], functions["after"])


def verdict(question: Question, found: Found) -> Status:
    """What the checker says of a witness."""
    moved = tuple(
        buffer.name for buffer in question.old.buffers if any(c.old_data == buffer.data.name for c in found.cells)
    )
    witness = Witness(found.instances, found.cells, moved)
    return worst(v.status for v in prove_rewrite(Rewrite(question.old, question.new, witness)).verdicts)


def told(found: Found) -> list[str]:
    """The maps of instances as text: new store, old store, loops."""
    return [_told_one(each) for each in found.instances]


def _told_one(claim: InstanceMap) -> str:
    if claim.instances is None:
        return f"{claim.new_store} -> none"
    inputs = ", ".join(v.name for v in claim.instances.inputs)
    outputs = ", ".join(expr_text(e, Style.PLAIN) for e in claim.instances.outputs)
    suffix = f" where {expr_text(claim.where, Style.PLAIN)}" if claim.where is not None else ""
    return f"{claim.new_store} -> {claim.old_store}: [{inputs}] -> [{outputs}]{suffix}"


def asked(question: Question) -> Question:
    """The question with the layouts of all parameters that have another shape looked for."""
    pairs = zip(question.old.buffers, question.new.buffers, strict=True)
    return replace(question, unknown=tuple(old.name for old, new in pairs if old.shape != new.shape))


def sized(**shapes: str) -> str:
    """Parameters of floats with these shapes."""
    return ", ".join(f'{name}: T.Buffer(({shape},), "float32")' for name, shape in shapes.items())

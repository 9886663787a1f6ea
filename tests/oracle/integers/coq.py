"""Refutations as proofs of Coq: its kernel is a third judge, and shares nothing with the other two.

The tree of a refutation becomes the script of a proof; what a sum says is left to `lia`, which finds factors of its
own. Products of facts and multiples of zeros are given to it, as it knows products of variables as names only.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.oracle.integers.items import Item

COQC = "coqc"
_SECONDS = 600
_HEAD = """Require Import ZArith Lia.
Open Scope Z_scope.
Lemma sides (p : Z) : 0 <= p \\/ 0 <= - p - 1. Proof. lia. Qed.
"""


def is_installed() -> bool:
    """Whether Coq can be asked."""
    return shutil.which(COQC) is not None


@dataclass
class Script:
    """The theorem that a question has no solution, and its proof. `leaves` counts the sums in it."""

    item: Item
    lines: list[str] = field(default_factory=list)
    leaves: int = 0

    def __post_init__(self) -> None:
        facts, zeros, choices, proof = self.item
        self._names: dict[str, str] = {}
        self._fresh = 0
        known = [f"0 <= {self._value(p)}" for p in facts] + [f"{self._value(p)} = 0" for p in zeros]
        known += [" \\/ ".join(map(self._case, cases)) or "False" for cases in choices]
        labels = [f"F{k}" for k in range(len(facts))], [f"Z{k}" for k in range(len(zeros))]
        steps = list(self._proof(proof, *labels))
        variables = f"forall {' '.join(self._names.values())} : Z, " if self._names else ""
        names = [*self._names.values(), *labels[0], *labels[1], *(f"C{k}" for k in range(len(choices)))]
        self.lines = [f"Goal {variables}{' -> '.join([*(f'({each})' for each in known), 'False'])}."]
        self.lines += [f"Proof. intros {' '.join(names)}.", *steps, "Qed."]

    def _value(self, polynomial: Item) -> str:
        terms = ["*".join([f"({k})", *map(self._name, names)]) for k, names in polynomial]
        return f"({' + '.join(terms) or '0'})"

    def _name(self, name: str) -> str:
        return self._names.setdefault(name, f"v{len(self._names)}")

    def _case(self, case: Item) -> str:
        facts, zeros = case
        known = [f"0 <= {self._value(p)}" for p in facts] + [f"{self._value(p)} = 0" for p in zeros]
        return "(" + " /\\ ".join([*known, "True"]) + ")"

    def _label(self) -> str:
        self._fresh += 1
        return f"H{self._fresh}"

    def _proof(self, node: Item, facts: list[str], zeros: list[str]) -> Iterator[str]:
        if node[0] == "sum":
            yield from self._sum(node[1], node[2], facts, zeros)
        elif node[0] == "branch":
            label = self._label()
            yield f"destruct (sides {self._value(node[1])}) as [{label} | {label}]."
            for side in node[2:]:
                yield "{"
                yield from self._proof(side, [*facts, label], zeros)
                yield "}"
        else:
            yield from self._split(node[1], node[2], facts, zeros)

    def _split(self, number: int, proofs: Sequence[Item], facts: list[str], zeros: list[str]) -> Iterator[str]:
        cases = [([self._label() for _ in f], [self._label() for _ in z]) for f, z in self.item[2][number]]
        copy = self._label()
        yield f"pose proof C{number} as {copy}."
        known = ["(" + " & ".join([*more_facts, *more_zeros, "_"]) + ")" for more_facts, more_zeros in cases]
        yield f"destruct {copy}{f' as {_either(known)}' if known else ''}."
        for (more_facts, more_zeros), proof in zip(cases, proofs, strict=True):
            yield "{"
            yield from self._proof(proof, [*facts, *more_facts], [*zeros, *more_zeros])
            yield "}"

    def _sum(self, terms: Item, zero_terms: Item, facts: list[str], zeros: list[str]) -> Iterator[str]:
        self.leaves += 1
        used: list[str] = []
        for _, numbers in terms:
            label, *others = (facts[number] for number in numbers)
            for other in others:
                product = self._label()
                yield f"pose proof (Z.mul_nonneg_nonneg _ _ {label} {other}) as {product}."
                label = product
            used.append(label)
        for polynomial, number in zero_terms:
            label = zeros[number]
            if any(names for _, names in polynomial):
                product = self._label()
                yield f"pose proof (f_equal (Z.mul {self._value(polynomial)}) {label}) as {product}."
                label = product
            used.append(label)
        yield f"clear - {' '.join(dict.fromkeys(used))}. lia."


def _either(patterns: Sequence[str]) -> str:
    """The pattern of a disjunction, which associates to the right."""
    first, *others = patterns
    return f"[{first} | {_either(others)}]" if others else first


def refused(scripts: Mapping[str, Sequence[str]], folder: Path) -> dict[str, str]:
    """What Coq does not accept, with its message, of proofs by their names."""
    wrong: dict[str, str] = {}
    rest = dict(scripts)
    while rest:
        starts: list[tuple[int, str]] = []
        lines = _HEAD.splitlines()
        for name, script in rest.items():
            starts.append((len(lines), name))
            lines += script
        path = folder / "refutations.v"
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")
        done = subprocess.run(
            [COQC, "-q", path.name], cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        if done.returncode == 0:
            break
        found = re.search(r"line (\d+)", done.stderr)
        assert found is not None, done.stderr
        name = max(start for start in starts if start[0] < int(found[1]))[1]
        wrong[name] = done.stderr
        # Coq stops at the first one: those after it are still to be asked.
        names = list(rest)
        rest = {each: rest[each] for each in names[names.index(name) + 1 :]}
    return wrong

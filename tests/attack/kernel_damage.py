"""Real certificates damaged in one place: a token of a text, a line of the witness, a number, name or entry of the
evidence, or the JSON itself. What the kernel accepts after that is decided by running both programs.

Damage number k of a seed is the same in every run. See `kernel_campaign` for the command line.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import logical_and
from layoutproof.ir.notations.rewrite_text import parse_litmus, rewrite_text
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.verify.certificate.finder.kernel_evidence import find_evidence
from layoutproof.verify.certificate.sealed_files import REFUTATIONS, Document, from_bytes
from layoutproof.verify.kernel.evidence import JudgedStep, judge_certificate, read_evidence
from layoutproof.verify.kernel.judge import judged_in_turn
from layoutproof.verify.kernel.reader import read_rewrite
from layoutproof.verify.kernel.rejected import FAILURES, Rejected
from layoutproof.verify.lockstep.identity import is_same_program
from layoutproof.verify.values.fast_math import ALL
from tests.attack.campaign import assumed_of
from tests.attack.judge import judge as told_apart
from tests.attack.kernel_texts import damaged_text, right_rewrites
from tests.lowering.loops.cases import CASES
from tests.tree import ROOT

_RAW = "@raw@"
_REGIONS = ("T.reads(", "T.writes(")
_CHUNK = 50
_SCHEDULES = ("row_sum", "double", "two_contracts", "convolution")
_AT_RANDOM = 40


@dataclass
class Tally:
    """What came of some attempts."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[str, str]] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add another tally to this one."""
        self.counts += other.counts
        self.wrong += other.wrong


# ---- certificates


@cache
def certificates(many: bool) -> tuple[Document, ...]:
    """What certificates have for the kernel, of rewrites that it accepts; a handful, or many: `proofs/accepted`,
    schedules of several steps, and random rewrites.
    """
    texts = [[path.read_text(encoding="utf-8")] for path in sorted((ROOT / "proofs" / "accepted").glob("*.py"))]
    texts += [[rewrite_text(step) for step in CASES[name].proposals()][:3] for name in _SCHEDULES]
    texts += [[rewrite_text(rewrite)] for rewrite in islice(right_rewrites(Random(5)), _AT_RANDOM)]
    if not many:
        texts = texts[-2 - _AT_RANDOM : 4 - _AT_RANDOM]
    found = (_certificate(steps) for steps in texts)
    return tuple(document for document in found if document is not None and _is_accepted(document))


def _certificate(texts: Sequence[str]) -> Document | None:
    steps, refutations = list[Document](), dict[str, object]()
    for text in texts:
        evidence, proofs = find_evidence(text, ALL)
        refutations.update(proofs)
        steps.append({"rewrite": text.split("\n"), "licences": sorted(x.value for x in ALL), "kernel": evidence})
    # As it is read: tuples are lists.
    document: Document = json.loads(json.dumps({"steps": steps, REFUTATIONS: refutations}))
    return document if all(step["kernel"] is not None for step in steps) else None


def _is_accepted(document: object) -> bool:
    steps = judge_certificate(document)
    return bool(steps) and all(claim.is_accepted for step in steps for claim in step.claims)


# ---- damage


@dataclass(frozen=True, slots=True)
class Damaged:
    """What was done to which certificate, and its text; `raw`: not by a value that JSON can have twice over."""

    what: str
    number: int
    text: str
    raw: bool


def damaged(rng: Random, many: bool) -> Damaged:
    """A certificate with something else in one place."""
    every = certificates(many)
    while True:
        number = rng.randrange(len(every))
        document = copy.deepcopy(every[number])
        kind, places = _places(document, rng)
        path = rng.choice(places)
        parent = _at(document, path[:-1])
        name, change = rng.choice([*_CHANGES, *(_OF_LINES if kind == "text" else ())])
        raw = change(parent, path[-1], rng)
        if raw is None:
            continue
        text = json.dumps(document).replace(json.dumps(_RAW), raw)
        if text != json.dumps(every[number]):
            return Damaged(f"{kind}: {name}", number, text, name in _ONLY_RAW)


def other_evidence(evidence: Document, rng: Random) -> Document:
    """The evidence of a step with something else in one place."""
    while True:
        document = {"kernel": copy.deepcopy(evidence)}
        path = rng.choice(_below(document, ("kernel",)))
        _, change = rng.choice([(name, change) for name, change in _CHANGES if name not in _ONLY_RAW])
        change(_at(document, path[:-1]), path[-1], rng)
        if document.get("kernel") not in (None, evidence):
            return document["kernel"]


def _places(document: Document, rng: Random) -> tuple[str, list[tuple[Any, ...]]]:
    """The places of one kind: in texts, in evidence, in refutations, or the steps with their parts."""
    step = rng.randrange(len(document["steps"]))
    kind = rng.choice(("text", "text", "evidence", "evidence", "refutation", "refutation", "step"))
    match kind:
        case "text":
            return kind, [("steps", step, "rewrite", k) for k in range(len(document["steps"][step]["rewrite"]))]
        case "evidence":
            return kind, _below(document, ("steps", step, "kernel"))
        case "refutation":
            names = list(document[REFUTATIONS])
            name = rng.choice(names) if names else None
            return kind, [(REFUTATIONS,)] if name is None else _below(document, (REFUTATIONS, name))
        case _:
            pass
    parts = [("steps", step, key) for key in document["steps"][step]]
    return kind, [("steps",), (REFUTATIONS,), ("steps", step), *parts, *_below(document, ("steps", step, "licences"))]


def _below(document: Document, path: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    value = _at(document, path)
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, _ in items for place in _below(document, (*path, key)))]


def _at(document: Any, path: Sequence[Any]) -> Any:
    for key in path:
        document = document[key]
    return document


# Each change returns what stands at the raw place of the text, empty where there is none; None where it does not apply.
Change = Callable[[Any, Any, Random], str | None]


def _other_value(parent: Any, key: Any, rng: Random) -> str | None:
    value = parent[key]
    if type(value) is int:
        parent[key] = rng.choice(
            [value + 1, value - 1, value + 2, -value, 0, 2 * value, value + (1 << 64), 1 << 5000, rng.randrange(-9, 60)]
        )
        return ""
    if isinstance(value, str):
        parent[key] = damaged_text(value, rng) if any(c.isalnum() for c in value) else "x"
        return ""
    return None


def _of_another_type(parent: Any, key: Any, rng: Random) -> str | None:
    value = parent[key]
    others: list[Any] = [None, True, 0, 1, 1.0, "", "1", [], {}, [value], {"0": value}]
    if type(value) is int:
        others += [float(value) if abs(value) < 1 << 60 else 0.5, str(value)]
    parent[key] = rng.choice(others)
    return ""


def _deleted(parent: Any, key: Any, rng: Random) -> str | None:
    del parent[key]
    return ""


def _twice(parent: Any, key: Any, rng: Random) -> str | None:
    if isinstance(parent, dict):
        parent[f"{key}{rng.choice('_0a')}"] = copy.deepcopy(parent[key])
    else:
        parent.insert(rng.randrange(len(parent) + 1), copy.deepcopy(parent[key]))
    return ""


def _in_another_place(parent: Any, key: Any, rng: Random) -> str | None:
    others = [k for k in (parent if isinstance(parent, dict) else range(len(parent))) if k != key]
    if not others:
        return None
    other = rng.choice(others)
    parent[key], parent[other] = parent[other], parent[key]
    return ""


def _as_in_another_place(parent: Any, key: Any, rng: Random) -> str | None:
    others = [k for k in (parent if isinstance(parent, dict) else range(len(parent))) if k != key]
    if not others:
        return None
    parent[key] = copy.deepcopy(parent[rng.choice(others)])
    return ""


def _reversed(parent: Any, key: Any, rng: Random) -> str | None:
    value = parent[key]
    if not isinstance(value, list) or len(value) < 2:
        return None
    value.reverse()
    return ""


def _key_twice(parent: Any, key: Any, rng: Random) -> str | None:
    """Two entries of one key in the text of an object: JSON readers differ in which one counts."""
    if not isinstance(parent, dict):
        return None
    changed = {key: copy.deepcopy(parent[key])}
    _of_another_type(changed, key, rng)
    texts = [json.dumps(parent[key]), json.dumps(changed[key])]
    rng.shuffle(texts)
    parent[key] = _RAW
    return f"{texts[0]}, {json.dumps(key)}: {texts[1]}"


def _deep(parent: Any, key: Any, rng: Random) -> str | None:
    depth = rng.choice([60, 900, 100_000])
    inner = json.dumps(parent[key])
    parent[key] = _RAW
    return "[" * depth + inner + "]" * depth


def _written_otherwise(parent: Any, key: Any, rng: Random) -> str | None:
    if type(parent[key]) is not int:
        return None
    value = parent[key]
    parent[key] = _RAW
    return rng.choice([f"{value}.0", f"{value}e0", f"{value}E+0", f"{value}{'0' * 5000}", "-0", "NaN", "Infinity"])


def _lines_moved(parent: Any, key: Any, rng: Random) -> str | None:
    """A line, or a part of it, in another place of the text: with its lines around."""
    lines = damaged_text("\n".join(parent), rng).split("\n")
    parent[:] = lines
    return ""


_CHANGES: tuple[tuple[str, Change], ...] = (
    *[("other value", _other_value)] * 3,
    ("another type", _of_another_type),
    ("deleted", _deleted),
    ("twice", _twice),
    ("moved", _in_another_place),
    ("as another", _as_in_another_place),
    ("reversed", _reversed),
    ("key twice", _key_twice),
    ("deep", _deep),
    ("written otherwise", _written_otherwise),
)
_OF_LINES: tuple[tuple[str, Change], ...] = (("token or line", _lines_moved),) * 6
_ONLY_RAW = ("key twice", "deep", "written otherwise")


# ---- judgement


def damage_many(seed: int, count: int, workers: int = 1, log: Path | None = None, *, many: bool = True) -> Tally:
    """Damage number 0 up to `count` of a seed, but for those that the log has. Raises AssertionError for a log of
    another seed.
    """
    tally, done = Tally(), set[int]()
    for line in log.read_text(encoding="utf-8").splitlines() if log is not None and log.exists() else ():
        entry = json.loads(line)
        assert entry["seed"] == seed, "the log is of another seed"
        done.add(entry["start"])
        tally.add(Tally(Counter(entry["counts"]), [(what, text) for what, text in entry["wrong"]]))
    starts = [start for start in range(0, count, _CHUNK) if start not in done]
    if not starts:
        return tally
    certificates(many)  # Found once, before the workers are made.
    one = partial(_chunk, seed, count, many)
    if workers == 1:
        results: Iterator[Tally] = map(one, starts)
        return _gathered(tally, starts, results, seed, log)
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        return _gathered(tally, starts, pool.map(one, starts), seed, log)


def _gathered(tally: Tally, starts: Sequence[int], results: Iterator[Tally], seed: int, log: Path | None) -> Tally:
    for start, found in zip(starts, results, strict=True):
        tally.add(found)
        if log is not None:
            entry = {"seed": seed, "start": start, "counts": found.counts, "wrong": found.wrong}
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
    return tally


def _chunk(seed: int, count: int, many: bool, start: int) -> Tally:
    tally = Tally()
    for number in range(start, min(start + _CHUNK, count)):
        rng = Random(f"{seed}:{number}")
        _judge(damaged(rng, many), rng, many, tally)
    return tally


def _judge(given: Damaged, rng: Random, many: bool, tally: Tally) -> None:
    tally.counts["damaged"] += 1
    tally.counts[given.what] += 1
    if given.raw:
        try:
            from_bytes(given.text.encode("ascii"), "damaged")
            tally.wrong.append((f"{given.what}: read as a sealed file", given.text))
        except LayoutproofError:
            tally.counts["raw damage refused by the reader of files"] += 1
    try:
        document = json.loads(given.text)
    except (ValueError, RecursionError):
        tally.counts["no JSON"] += 1
        return
    if _is_plainly_rejected(document):
        tally.counts["rejected"] += 1
        return
    try:
        steps = judge_certificate(document)
    except Rejected:
        tally.counts["rejected as a whole"] += 1
        return
    except FAILURES as problem:
        tally.wrong.append((f"{given.what}: the kernel raised {problem!r}", given.text))
        return
    claims = [claim for step in steps for claim in step.claims]
    if not claims or not all(claim.is_accepted for claim in claims):
        tally.counts["rejected"] += 1
        return
    tally.counts["accepted"] += 1
    what, is_wrong = _truth(document, steps, certificates(many)[given.number], rng)
    tally.counts[f"accepted: {what}"] += not is_wrong
    if is_wrong:
        tally.wrong.append((f"{given.what}: {what}", given.text))


def _is_plainly_rejected(document: Any) -> bool:
    """Whether some claim of a step is rejected under all assumptions that the step allows, so that the rest need not be
    asked. What cannot be read is not: `judge_certificate` has to say so.
    """
    try:
        for step in document["steps"]:
            rewrite = read_rewrite("\n".join(step["rewrite"]))
            evidence = read_evidence(step["kernel"], document[REFUTATIONS], rewrite)
            if not all(claim.is_accepted for claim in judged_in_turn(rewrite, evidence, frozenset(step["licences"]))):
                return True
    except FAILURES:
        return False
    return False


def _meant(lines: Sequence[str]) -> str:
    """A text without what a program does not mean: the regions of blocks, which the kernel passes over."""
    return "\n".join(line for line in lines if not line.lstrip().startswith(_REGIONS))


def _truth(document: Document, steps: Sequence[JudgedStep], original: Document, rng: Random) -> tuple[str, bool]:
    """What is known of what an accepted certificate states, and whether that is false."""
    known = {_meant(step["rewrite"]) for step in original["steps"]}
    told = "of the same texts"
    last: PrimFunc | None = None
    for step, judged in zip(document["steps"], steps, strict=True):
        text = _meant(step["rewrite"])
        try:
            litmus = parse_litmus(text)
        except LayoutproofError as problem:
            return f"of a text that is not read: {problem.diagnostics[0].message}", True
        rewrite = litmus.rewrite
        if last is not None and not is_same_program(rewrite.old, last):  # names of blocks may differ
            return "a step begins with another program", True
        last = rewrite.new
        if text in known and not judged.assumptions:
            continue
        bad = [*check_wellformed(rewrite.old), *check_wellformed(rewrite.new)]
        if bad:
            return f"of a program that is not well-formed: {bad[0].message}", True
        told = "and no run differs"
        conditions = [c for c in (litmus.header.where, assumed_of(rewrite)) if c is not None]
        where = logical_and(*conditions) if conditions else None
        found = told_apart(rewrite, rng, trials=40, where=where, fast_math=frozenset(judged.assumptions))
        if found.difference is not None:
            return f"a run differs: {found.difference}", True
        if not found.valid:
            told = "and nothing could be run"
    return told, False

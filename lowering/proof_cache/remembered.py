"""What was proved of a rewrite in an earlier run, found again by the rewrite itself.

The key of an answer is its obligation: the text of both programs and of the witness, the condition on symbols, the
fast-math assumptions, the budget scale, and the digest of the tool and its engines. Messages name files, lines and
columns, so those of both programs' nodes belong to it too. What passes propose is looked up, never trusted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from layoutproof.ir.expr import Expr
from layoutproof.ir.primfunc import Kept, PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.visit import walk
from layoutproof.lowering.proof_cache.entries import Clock, is_storable, proof_key
from layoutproof.lowering.proof_cache.versions import tool_digest
from layoutproof.verify.settings import settings
from layoutproof.verify.values.fast_math import FastMathSet, names_of
from layoutproof.verify.verdict.report import of_entry, to_entry
from layoutproof.verify.verdict.verdict import Status, Verdict

PROOF = "proof"


def verdicts_of(
    rewrite: Rewrite,
    where: Expr | None,
    allowed: FastMathSet,
    search: bool,
    primitive: str,
    arguments: Mapping[str, Any],
) -> tuple[Verdict, ...]:
    """The checker's verdicts on a rewrite, from this or an earlier run.

    `search` is as in `check_rewrite`. Raises LayoutproofError for a malformed layout record or cell map.
    """
    memory, factor = settings().memory, settings().budget_scale
    if memory is None:
        return _checked(rewrite, where, allowed, search)
    from layoutproof.verify.certificate.certificate import text_of

    text, fast_math = text_of(rewrite, where), list(names_of(allowed))
    lines = [_places(rewrite.old), _places(rewrite.new)]
    key = proof_key(tool_digest(), factor, fast_math, text, lines)
    known = memory.get(PROOF, key)
    # Under its key an entry that was checked again is the answer to its own text only.
    if known is not None and (known["rewrite"], known["licences"]) != (text, fast_math):
        known = None
    if known is not None and (known["searched"] if search else not _seen_by_a_run(known["obligations"])):
        return tuple(of_entry(entry) for entry in known["obligations"])
    clock = Clock()
    entries = [to_entry(verdict) for verdict in _checked(rewrite, where, allowed, search)]
    # As they will be read back, so that what is said does not depend on whether it was known.
    entries = json.loads(json.dumps(entries))
    if is_storable(entries, clock) and (known is None or search):
        # Where all is proved there is nothing to search for.
        searched = search or all(entry["status"] == Status.PROVED for entry in entries)
        memory.put(
            PROOF,
            key,
            {
                "tool": tool_digest(),
                "effort": factor,
                "function": rewrite.old.name,
                "primitive": primitive,
                "arguments": dict(arguments),
                "licences": fast_math,
                "rewrite": text,
                "lines": lines,
                "searched": searched,
                "obligations": entries,
            },
        )
    return tuple(of_entry(entry) for entry in entries)


def _seen_by_a_run(entries: Iterable[Mapping[str, Any]]) -> bool:
    """Whether an answer is one that only a search gives."""
    return any(entry["engine"] == "counterexample run" for entry in entries)


def _checked(rewrite: Rewrite, where: Expr | None, allowed: FastMathSet, search: bool) -> tuple[Verdict, ...]:
    from layoutproof.verify.checker import prove_rewrite
    from layoutproof.verify.replay.refute import check_rewrite

    if search:
        return check_rewrite(rewrite, where, allowed=allowed)
    return prove_rewrite(rewrite, where, allowed=allowed).verdicts


_PLACES: Kept[list[str]] = Kept(64)


def _places(func: PrimFunc) -> list[str]:
    """The position of each node that has one, in the order of the text: line and column, and the file where that
    changes. Not to be changed.
    """
    return _PLACES.get(func, (), lambda: _placed(func))


def _placed(func: PrimFunc) -> list[str]:
    found, name = list[str](), ""
    for node in walk(func.body):
        span = node.span
        if span is None:
            found.append("")
        elif span.source.name == name:
            found.append(f"{span.line}:{span.column}")
        else:
            name = span.source.name
            found.append(f"{name}:{span.line}:{span.column}")
    return found

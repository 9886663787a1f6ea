"""Two given programs judged as one item: a rewrite between them is searched for, then proved or refuted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutproof.cli.gate.check_items import Item, Options
from layoutproof.cli.gate.judging.by_kernel import comparison_by_kernel
from layoutproof.cli.gate.judging.cached_proofs import remembered, store_of
from layoutproof.cli.gate.judging.compared import as_step, findings_of, kept_by, notes_of
from layoutproof.cli.gate.judging.notes import details, remarks_of
from layoutproof.cli.gate.judging.schedules import REPORT, difference
from layoutproof.cli.gate.loading import function_of, is_mlir, text_of
from layoutproof.cli.gate.outcomes import Kind, Outcome, Place
from layoutproof.ir.diagnostic import LayoutproofError, Source
from layoutproof.lowering.gates import KERNEL
from layoutproof.lowering.proof_cache.versions import ROOMS, digest_of, tool_digest
from layoutproof.verify.values.fast_math import FastMath, FastMathSet
from layoutproof.verify.verdict.report import to_entry
from layoutproof.verify.verdict.verdict import Status

if TYPE_CHECKING:
    from layoutproof.lowering.compare.comparison import Comparison

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of a comparison as texts: names of the functions, layouts and pad values by parameters of the one
    before, parameters after by those before, and a condition on symbols. What is missing is searched for. `may_alias`:
    arguments of MLIR may overlap.
    """

    functions: tuple[str, str]
    layouts: Pairs = ()
    pads: Pairs = ()
    match: Pairs = ()
    where: str | None = None
    may_alias: bool = False

    @property
    def text(self) -> str:
        """The form that an item holds."""
        return json.dumps(asdict(self))

    @staticmethod
    def read(text: str) -> Asked:
        """The inverse of `text`."""
        data = json.loads(text)
        layouts, pads, match = (
            tuple((name, value) for name, value in data[key]) for key in ("layouts", "pads", "match")
        )
        first, second = data["functions"]
        return Asked((first, second), layouts, pads, match, data["where"], data.get("may_alias", False))


def recall(item: Item, options: Options) -> Outcome | None:
    """The stored outcome of an earlier comparison of the same programs, with these options and this version of the
    tool; None if there is none, or if files are to be written that only a new comparison makes.
    """
    store = store_of(options)
    if (
        item.kind is not Kind.COMPARISON
        or store is None
        or options.certificate is not None
        or options.witness is not None
    ):
        return None
    try:
        known = store.get(REPORT, _report_key(item, options, _texts(item)))
    except LayoutproofError:
        return None  # an unreadable program is reported by judging
    return None if known is None else replace(Outcome.from_dict(known["outcome"]), cached=True)


def judged_comparison(item: Item, options: Options, allowed: FastMathSet) -> Outcome:
    """The outcome of a comparison; stored if it is reproducible. Writes the certificate of a proved one, and the
    rewrite that was found, where requested.

    Raises LayoutproofError for unreadable programs, and for layouts, pad values and names that do not fit them.
    """
    known = recall(item, options)
    if known is not None:
        return known
    texts = _texts(item)
    with remembered(options, allowed) as count:
        compared, lasting = _compared(item, texts)
    outcome = _outcome(item, compared, texts, options)
    store = store_of(options)
    if store is not None and lasting:
        store.put(REPORT, _report_key(item, options, texts), _kept(item, options, texts, outcome))
    proved = compared.status is Status.PROVED and bool(compared.records)
    if options.certificate is not None and proved:
        compared.certificate.save(options.certificate)
    found = _write_witness(compared, options.witness)
    return replace(
        outcome,
        cached=count.known_all,
        certificate=options.certificate if proved else None,
        compared={
            **(outcome.compared if outcome.compared is not None else {}),
            "witness": options.witness if found else None,
        },
    )


def _texts(item: Item) -> tuple[str, str]:
    return text_of(item.program), text_of(item.path)


def _compared(item: Item, texts: tuple[str, str]) -> tuple[Comparison, bool]:
    """The comparison, and whether it is reproducible: independent of the clock."""
    from layoutproof.lowering.compare.compare_programs import compare
    from layoutproof.lowering.proof_cache.entries import Clock, is_storable

    asked, clock = Asked.read(item.text), Clock()
    layouts, pads, match = dict(asked.layouts), dict(asked.pads), dict(asked.match)
    first, second = asked.functions
    if is_mlir(item.program) and is_mlir(item.path):
        # Their types say more of layouts, and their operations what they leave open.
        from layoutproof.importers.mlir.validation import pair_of_texts

        files = ((item.program, texts[0]), (item.path, texts[1]))
        pair = pair_of_texts(files, asked.functions, asked.may_alias)
        found = pair.compared(layouts=layouts, pads=pads, match=match, where=asked.where)
    else:
        before, after = function_of(item.program, texts[0], first), function_of(item.path, texts[1], second)
        found = compare(before, after, layouts=layouts, pads=pads, match=match, where=asked.where)
    return found, is_storable([to_entry(verdict) for verdict in found.verdicts], clock)


def _outcome(item: Item, compared: Comparison, texts: tuple[str, str], options: Options) -> Outcome:
    """The outcome, without written files."""
    line = Source(item.path, texts[1]).line(item.line)
    outcome = Outcome(
        Kind.COMPARISON,
        item.name,
        f"{item.program}:{compared.before.name}",
        Place(item.path, item.line, 1, item.line, len(line) + 1, line),
        compared.status.value,
        (as_step(compared),),
        findings_of(compared),
        (*notes_of(compared), *remarks_of(compared.before, compared.after)),
        compared.seconds,
        detail=details([compared]) if options.detail else None,
        compared=_keys(item, compared),
    )
    return comparison_by_kernel(outcome, compared) if options.trust == KERNEL else outcome


def _keys(item: Item, compared: Comparison) -> dict[str, Any]:
    found = compared.to_dict()
    return {
        "after": f"{item.path}:{compared.after.name}",
        "layouts": found["layouts"],
        "kept": list(kept_by(compared)),
        "strictness": found["strictness"],
        "furthest": found["furthest"],
        "witness": None,
    }


def _write_witness(compared: Comparison, path: str | None) -> bool:
    """Write the rewrite that was found, as text that `check` takes; whether there was one."""
    from layoutproof.cli.output import write_file
    from layoutproof.verify.certificate.certificate import text_of

    if path is None or compared.rewrite is None:
        return False
    write_file(Path(path), text_of(compared.rewrite, compared.where).encode())
    return True


# ---- what is kept


def _report_key(item: Item, options: Options, texts: tuple[str, str]) -> str:
    # How an outcome is told belongs to it, so the sources of the command line do as well.
    parts = [digest_of((*ROOMS, "importers", "cli")), item.name, item.program, item.path, item.line, item.text, *texts]
    return hashlib.sha256(
        json.dumps([*parts, options.fast_math, options.budget_scale, options.detail, options.trust]).encode()
    ).hexdigest()


def _kept(item: Item, options: Options, texts: tuple[str, str], outcome: Outcome) -> dict[str, Any]:
    """An outcome with everything needed to repeat the comparison."""
    given = {
        "kind": Kind.COMPARISON.value,
        "item": asdict(item),
        "texts": list(texts),
        "licences": list(options.fast_math),
        "effort": options.budget_scale,
        "detail": options.detail,
        "trust": options.trust,
    }
    return {"tool": tool_digest(), "outcome": outcome.to_dict(), "given": given}


def compared_again(value: Mapping[str, Any]) -> tuple[str | None, bool]:
    """What is wrong with a stored report, None if it is right; and whether that is certain, independent of the clock.

    The programs are compared again without the cache.
    """
    try:
        given, kept = value["given"], Outcome.from_dict(value["outcome"])
        item = Item(**{**given["item"], "kind": Kind(given["item"]["kind"])})
        options = Options(tuple(given["licences"]), given["effort"], given["detail"], cache=None, trust=given["trust"])
        allowed = frozenset(FastMath(word) for word in options.fast_math)
        first, second = map(str, given["texts"])
        with remembered(options, allowed):
            compared, lasting = _compared(item, (first, second))
    except (KeyError, TypeError, ValueError, AttributeError, LayoutproofError) as problem:
        return f"it is of another form: {problem}", True
    now = _outcome(item, compared, (first, second), options)
    return difference(now, kept, "compared"), lasting

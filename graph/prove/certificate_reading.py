"""The certificate of a rewritten graph read back: everything that it claims is derived and asked again, from the file
alone.

The steps of each function are derived again, as for any certificate, which gives their questions and the checker's
verdicts; then each value is proved as `prove_graph_rewrite` does. What a file lacks, or states otherwise than the
checker, is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from layoutproof.graph.flow.layout_flow import NAME
from layoutproof.graph.graph_reader import parse_graph
from layoutproof.graph.model.graph import Graph
from layoutproof.graph.model.graph_witness import Chain, GraphRewrite, Interface, Place
from layoutproof.graph.model.layout_maps import Asked
from layoutproof.graph.model.wellformed_graph import STRUCTURE, prove_fresh
from layoutproof.graph.prove.graph_certificate import (
    FORMAT,
    NOT_STATED,
    VERSION,
    MapClaim,
    array_of,
    claims_of,
    found_arrays,
    key_of,
    path_beside,
    with_arrays,
)
from layoutproof.graph.prove.prove_graph import prove_graph_rewrite
from layoutproof.ir.diagnostic import LayoutproofError, counted, error
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import const
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.notations.rewrite_text import parse_litmus
from layoutproof.verify.certificate.certificate import (
    Certificate,
    Derived,
    asked,
    check_form,
    check_table,
    fast_math_of,
    query_id,
    query_of,
    text_of_lines,
)
from layoutproof.verify.certificate.reading import Kind, Reading, broken, made_here, read_certificate, read_file
from layoutproof.verify.certificate.sealed_files import Document, check_chain, from_bytes, read_whole
from layoutproof.verify.step_record import StepRecord
from layoutproof.verify.verdict import codes
from layoutproof.verify.verdict.verdict import GOOD, Status, Verdict
from layoutproof.verify.workers.endings import Ending, Limits
from layoutproof.verify.workers.pool import all_in_workers

_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError)


def read_any(path: Path, arrays: Sequence[Path] = (), jobs: int = 1) -> Reading:
    """A file that `recheck` takes: a graph's certificate, or what `read_file` reads. Never raises for what is in it.

    `arrays` are files in which the elements of constants are looked for, besides what stands beside the certificate.
    """
    try:
        data = read_whole(path)
        if FORMAT.encode() not in data[:200]:
            return read_file(path)
        document = from_bytes(data, str(path))
        return _read(path, document, arrays, jobs) if document.get("format") == FORMAT else read_file(path)
    except LayoutproofError as problem:
        return broken(str(path), [diagnostic.render() for diagnostic in problem.diagnostics])


def _read(path: Path, document: Document, files: Sequence[Path], jobs: int) -> Reading:
    check_form(document, str(path), FORMAT, VERSION)
    try:
        _check_form(str(path), document)
        claim = _claimed(str(path), document)
        rewrite = _with_arrays(path, document, claim.rewrite, files)
        parts = _parts(str(path), document, jobs)
        reading = Reading(str(path), Kind.CERTIFICATE)
        for what in _unread(rewrite, path):
            reading.fail(Status.UNKNOWN, what)
        for name, part in parts.items():
            _join(reading, name, part.reading)
        checked = {name: part.checked for name, part in parts.items()}
        asked: Asked = {}
        verdicts = prove_graph_rewrite(rewrite, claim.interface, checked, asked)
        for verdict in verdicts:
            _count(reading, verdict)
        if reading.status in GOOD:
            _ask(reading, document, claims_of(asked))
    except _MALFORMED as problem:
        raise error(
            codes.CERTIFICATE_FORM, f"{path}: a part is missing or is of another kind: {problem!r}"
        ) from problem
    reading.exceptions += [*_facts(rewrite), *(f"not stated: {what}" for what in NOT_STATED.values())]
    return reading


# -- what it claims
# ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Claim:
    """What a document claims, with no elements of constants but those that stand in its texts."""

    rewrite: GraphRewrite
    interface: Interface


def _claimed(path: str, document: Document) -> _Claim:
    """The claim of a document. Raises LayoutproofError for unreadable texts, KeyError and the like if malformed."""
    old, new = (_graph(path, document, which) for which in ("old", "new"))
    functions = {func.name: func for func in new.functions()}
    stray = sorted(set(document["functions"]) - set(functions))
    if stray:
        raise error(
            codes.CERTIFICATE_FORM,
            f"{path}: nothing in the new graph calls {stray[0]}, of which it says how it came about",
        )
    chains: dict[str, Chain] = {}
    for name, part in document["functions"].items():
        records = tuple(_record(f"{path}: {name}", number, step) for number, step in enumerate(part["steps"], start=1))
        chains[name] = Chain(records[0].rewrite.old if records else replace(functions[name], name=NAME), records)
    values = old.by_name()
    unknown = sorted({entry["value"] for entry in document["places"].values()} - set(values))
    if unknown:
        raise error(
            codes.CERTIFICATE_FORM, f"{path}: there is a place of {unknown[0]}, which is no value of the old graph"
        )
    places = {name: _placed(entry, values[entry["value"]].dtype) for name, entry in document["places"].items()}
    missing = [value.name for value in new.values() if value.name not in places]
    if missing:
        raise error(codes.CERTIFICATE_FORM, f"{path}: nothing says what {missing[0]} of the new graph holds")
    inputs, outputs = document["interface"]["inputs"], document["interface"]["outputs"]
    interface = Interface(
        {name: parse_index_map(text) for name, text in inputs.items()},
        None if outputs is None else tuple((name, parse_index_map(text)) for name, text in outputs),
    )
    return _Claim(GraphRewrite(old, new, places, chains), interface)


def _graph(path: str, document: Document, which: str) -> Graph:
    graph = parse_graph(text_of_lines(document[which]), f"{path}: the {which} graph", unread=True)
    keys = {c.value.name: key_of(c.sha256, c.value) for c in graph.constants if c.sha256 is not None}
    if keys != document["constants"][which]:
        raise error(
            codes.CERTIFICATE_FORM,
            f"{path}: the constants of the {which} graph are not those that are listed beside it",
        )
    return graph


def _record(name: str, number: int, step: Document) -> StepRecord:
    litmus = parse_litmus(text_of_lines(step["rewrite"]), f"{name}, step {number}")
    return StepRecord(step["primitive"], step["arguments"], litmus.rewrite, litmus.header.where, fast_math_of(step))


def _placed(entry: Document, dtype: DType) -> Place:
    pad = entry["pad"]
    value = None if pad is None else const(float.fromhex(pad) if isinstance(pad, str) else int(pad), dtype)
    return Place(entry["value"], parse_index_map(entry["index_map"]), value)


# -- the elements of constants
# -------------------------------------------------------------------------------------------------------


def _with_arrays(path: Path, document: Document, rewrite: GraphRewrite, files: Sequence[Path]) -> GraphRewrite:
    """The graphs with all elements that are found: in the document, beside it, in given files, or made of others."""
    inside = {key: array_of(entry) for key, entry in document["arrays"].items()}
    unread = [c for graph in (rewrite.old, rewrite.new) for c in graph.constants if c.sha256 is not None]
    keys = {key_of(c.digest, c.value): c.digest for c in unread}
    stray = sorted(set(inside) - set(keys))
    if stray:
        raise error(codes.CERTIFICATE_FORM, f"{path}: the array {stray[0][:12]} is of no use")
    found = {}
    for key, (array, fresh) in inside.items():
        if fresh != key:
            raise error(codes.CERTIFICATE_CHANGED, f"{path}: the array {key[:12]} was changed")
        found[keys[key]] = array
    beside = path_beside(path)
    more = [*([beside] if beside.is_file() else []), *files]
    wanted = set(keys.values()) - set(found)
    old, new = with_arrays(
        rewrite.old, rewrite.new, rewrite.places, {**found, **(found_arrays(wanted, more) if wanted else {})}
    )
    return replace(rewrite, old=old, new=new)


def _unread(rewrite: GraphRewrite, path: Path) -> list[str]:
    """Constants that were not found, and where they were looked for, but for those equal in both graphs."""
    kept = {c.digest for c in rewrite.old.constants} & {c.digest for c in rewrite.new.constants}
    unread = [c for graph in (rewrite.old, rewrite.new) for c in graph.constants if c.sha256 is not None]
    missing = [c.value.name for c in unread if c.digest not in kept]
    if not missing:
        return []
    count = counted(len(missing), "constant", "constants")
    where = f"they are neither in {path_beside(path)} nor in files that are given with --arrays"
    return [f"not looked at: the elements of {count}, {missing[0]} first, of which only the SHA-256 is known: {where}"]


def _facts(rewrite: GraphRewrite) -> list[str]:
    """What is known of functions from the checker alone: results that they read again after they have written them."""
    functions = dict.fromkeys((*rewrite.old.functions(), *rewrite.new.functions()))
    asked = [verdict for verdict in map(prove_fresh, functions) if verdict.engine != STRUCTURE]
    return [
        f"{verdict.claim}: {verdict.engine}: it is asked again of the checker, and not written down as a question"
        for verdict in asked
    ]


# -- what is derived and asked again
# -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Part:
    """What was read of the steps that lead to one function, and the checker's verdicts on each."""

    reading: Reading
    checked: tuple[tuple[Verdict, ...], ...]


def _parts(path: str, document: Document, jobs: int) -> Mapping[str, _Part]:
    """The certificates of all functions, each read in a process of its own."""
    items = [(f"{path}: {name}", part) for name, part in document["functions"].items()]
    found = all_in_workers(items, _part, _died, Limits(jobs))
    return dict(zip(document["functions"], found, strict=True))


def _part(item: tuple[str, Document]) -> _Part:
    path, document = item
    try:
        derived: list[Derived] = []
        reading = read_certificate(path, Certificate.of_document(document, path), derived)
    except LayoutproofError as problem:
        return _Part(broken(path, [diagnostic.render() for diagnostic in problem.diagnostics]), ())
    except _MALFORMED as problem:
        return _Part(broken(path, [f"{path}: a part is missing or is of another kind: {problem!r}"]), ())
    return _Part(
        reading,
        tuple(tuple(Verdict(o.status, o.claim, o.engine, o.strictness) for o in each.obligations) for each in derived),
    )


def _died(item: tuple[str, Document], ending: Ending) -> _Part:
    return _Part(broken(item[0], [f"{item[0]}: the process that read it ended by itself"]), ())


def _join(reading: Reading, name: str, part: Reading) -> None:
    """What was read of one function, as part of the whole. Raises LayoutproofError where that is broken."""
    if part.is_broken:
        raise error(codes.CERTIFICATE_DIFFERS, "\n".join(part.problems))
    reading.claims += part.claims
    reading.questions += [(f"{name}, {claim}", query) for claim, query in part.questions]
    reading.exceptions += [f"{name}, {what}" for what in part.exceptions]
    reading.steps += [replace(step, name=f"{name}, {step.name}") for step in part.steps]
    for what in part.problems or ([f"it is {part.status.value}"] if part.status not in GOOD else []):
        reading.fail(part.status, f"{name}, {what}")


def _count(reading: Reading, verdict: Verdict) -> None:
    reading.claims += 1
    if verdict.status not in GOOD:
        reading.fail(
            verdict.status,
            f"{verdict.claim}: {verdict.reason if verdict.reason is not None else verdict.counterexample}",
        )


def _check_form(path: str, document: Document) -> None:
    """Raise LayoutproofError where the parts on maps, tools or what is not stated were changed."""
    if set(document["not_stated"]) != set(NOT_STATED) or not all(
        isinstance(version, str) for version in document["tools"].values()
    ):
        raise error(
            codes.CERTIFICATE_FORM,
            f"{path}: what it does not state, or what it was made with, is not said as it has to be",
        )
    check_chain(document["maps"], f"{path}: maps")
    check_table(document["queries"], {query for entry in document["maps"] for query in entry["queries"]}, path)


def _ask(reading: Reading, document: Document, derived: Sequence[MapClaim]) -> None:
    """The questions about maps: written ones, and those of the checker's claims. Raises LayoutproofError."""
    written = {tuple(entry["about"]): entry for entry in document["maps"]}
    claims = {claim.about: claim for claim in derived}
    stray = sorted(entry["claim"] for about, entry in written.items() if about not in claims)
    missing = sorted(claim.claim for about, claim in claims.items() if about not in written)
    if stray or missing:
        what = f"the checker has no such claim: {stray[0]}" if stray else f"a claim is missing: {missing[0]}"
        raise error(codes.CERTIFICATE_DIFFERS, f"{reading.path}: of maps, {what}")
    same_tools = made_here(document)
    for about, claim in claims.items():
        reading.claims += 1
        entry = written[about]
        theirs = {name: query_of(document["queries"][name]) for name in entry["queries"]}
        alike = [*map(asked, theirs.values())] == [*map(asked, claim.queries)]
        if same_tools and not (alike and len(entry["exceptions"]) == len(claim.exceptions)):
            what = "its questions are not those that the checker asks"
            raise error(codes.CERTIFICATE_DIFFERS, f"{reading.path}: of maps, {what}")
        every = {query_id(query): query for query in claim.queries} | theirs
        reading.questions += [(claim.claim, query) for query in every.values()]
        reading.exceptions += [f"{claim.claim}: {what}: {reason}" for what, reason in claim.exceptions]

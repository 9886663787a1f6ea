"""The certificate of a rewritten graph: one file from which everything that was claimed is proved again.

It has both graphs as text with the elements of their constants, the places of all values, how the new graph is called, and for each new
function the certificate of the steps that lead to it. Rechecking derives each step again and has its questions asked of solvers, as for
any certificate, then asks for each value as `prove_graph_rewrite` does, on what was read from the file and nothing else.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from layoutproof.graph import codes
from layoutproof.graph.model import Array, Constant, Graph
from layoutproof.graph.proving import prove_graph_rewrite
from layoutproof.graph.relaid import NAME
from layoutproof.graph.scalars import number_of
from layoutproof.graph.text.printer import is_inline, print_graph
from layoutproof.graph.text.reader import parse_graph
from layoutproof.graph.witness import AS_IT_WAS, Chain, GraphRewrite, Interface, Place, records_of
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import const
from layoutproof.ir.map_text import index_map_text, parse_index_map
from layoutproof.ir.numpy_types import numpy_dtype
from layoutproof.lowering.proving import GOOD
from layoutproof.lowering.schedule import Schedule
from layoutproof.verify import codes as verify_codes
from layoutproof.verify.certificate.certificate import (
    Certificate,
    StepRecord,
    certify,
    check_form,
    licences_of,
    text_of_lines,
    versions,
)
from layoutproof.verify.certificate.files import read_whole, write_whole
from layoutproof.verify.certificate.obligations import derive
from layoutproof.verify.certificate.reading import Kind, Reading, broken, read_certificate, read_file
from layoutproof.verify.certificate.sealing import Document, from_bytes, sealed, to_bytes
from layoutproof.verify.verdict import Verdict

FORMAT = "layoutproof-graph-certificate"
VERSION = 1
MOST_BYTES = 1 << 26
"""The size of all constants' elements past which no certificate is written."""
NOT_STATED = (
    "how the old graph came about: what was imported, hoisted or folded before",
    "that the planner's choice is the cheapest",
    "what kernels make of the functions of the new graph",
)
_MAPS = "equalities of maps between values are asked again of the checker; they are not written down as questions"


def certify_graph(rewrite: GraphRewrite, interface: Interface = AS_IT_WAS) -> Document:
    """The certificate of a rewritten graph, sealed; each function's steps are checked anew.

    Raises LayoutproofError for graphs whose constants have more than MOST_BYTES.
    """
    size = sum(constant.data.nbytes for graph in (rewrite.old, rewrite.new) for constant in graph.constants)
    if size > MOST_BYTES:
        raise error(codes.CONSTANT_DATA, f"the constants of {rewrite.old.name} have {size} bytes; a certificate holds at most {MOST_BYTES}")
    called = {func.name for func in rewrite.new.functions()}
    functions: dict[str, Schedule | Chain] = {**rewrite.chains, **rewrite.schedules}
    return sealed(
        {
            "format": FORMAT,
            "version": VERSION,
            "tools": versions(),
            "not_stated": list(NOT_STATED),
            "old": print_graph(rewrite.old).split("\n"),
            "new": print_graph(rewrite.new).split("\n"),
            "arrays": _arrays(rewrite.old) | _arrays(rewrite.new),
            "constants": {"old": _digests(rewrite.old), "new": _digests(rewrite.new)},
            "places": {name: _place(rewrite.places[name]) for name in sorted(rewrite.places)},
            "interface": _interface(interface),
            "functions": {
                name: certify(records_of(schedule), schedule.original.name).document
                for name, schedule in sorted(functions.items())
                if name in called
            },
        }
    )


def save_graph_certificate(path: str | Path, rewrite: GraphRewrite, interface: Interface = AS_IT_WAS) -> None:
    """Write the certificate of a rewritten graph, whole or not at all. Raises LayoutproofError."""
    write_whole(Path(path), to_bytes(certify_graph(rewrite, interface)))


def read_any(path: Path) -> Reading:
    """A file that `recheck` takes: a graph's certificate, or what `read_file` reads. Never raises for what is in it."""
    try:
        data = read_whole(path)
        if FORMAT.encode() not in data[:200]:
            return read_file(path)
        document = from_bytes(data, str(path))
        return _read(str(path), document) if document.get("format") == FORMAT else read_file(path)
    except LayoutproofError as problem:
        return broken(str(path), [diagnostic.render() for diagnostic in problem.diagnostics])


def _read(path: str, document: Document) -> Reading:
    check_form(document, path, FORMAT, VERSION)
    reading = Reading(path, Kind.CERTIFICATE)
    try:
        parts = {name: Certificate.of_document(part, f"{path}: {name}") for name, part in document["functions"].items()}
        rewrite, interface = _rewrite(path, document, parts)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as problem:
        raise error(verify_codes.CERTIFICATE_FORM, f"{path}: a part is missing or is of another kind: {problem}") from problem
    for name, part in parts.items():
        found = read_certificate(f"{path}: {name}", part)
        reading.claims += found.claims
        reading.questions += [(f"{name}, {claim}", query) for claim, query in found.questions]
        reading.exceptions += [f"{name}, {what}" for what in found.exceptions]
        for what in found.problems or ([f"it is {found.status.value}"] if found.status not in GOOD else []):
            reading.fail(found.status, f"{name}, {what}")
    for verdict in prove_graph_rewrite(rewrite, interface):
        _count(reading, verdict)
    reading.exceptions += [_MAPS, *(f"not stated: {what}" for what in NOT_STATED)]
    return reading


def _count(reading: Reading, verdict: Verdict) -> None:
    reading.claims += 1
    if verdict.status not in GOOD:
        reading.fail(verdict.status, f"{verdict.claim}: {verdict.reason if verdict.reason is not None else verdict.counterexample}")


def _rewrite(path: str, document: Document, parts: Mapping[str, Certificate]) -> tuple[GraphRewrite, Interface]:
    """What a document claims. Raises LayoutproofError for texts that are none, KeyError and the like for a malformed document."""
    old, new = (_graph(path, document, which) for which in ("old", "new"))
    functions = {func.name: func for func in new.functions()}
    chains: dict[str, Chain] = {}
    for name, part in parts.items():
        records = [_record(f"{path}: {name}", number, step) for number, step in enumerate(part.steps, start=1)]
        original = records[0].rewrite.old if records else replace(functions[name], name=NAME)
        chains[name] = Chain(original, tuple(records))
    values = old.by_name()
    places = {name: _placed(entry, values[entry["value"]].dtype) for name, entry in document["places"].items()}
    inputs, outputs = document["interface"]["inputs"], document["interface"]["outputs"]
    interface = Interface(
        {name: parse_index_map(text) for name, text in inputs.items()},
        None if outputs is None else tuple((name, parse_index_map(text)) for name, text in outputs),
    )
    return GraphRewrite(old, new, places, {}, chains), interface


def _graph(path: str, document: Document, which: str) -> Graph:
    arrays = {name: _array(document["arrays"][key]) for name, key in document["constants"][which].items()}
    graph = parse_graph(text_of_lines(document[which]), f"{path}: the {which} graph", arrays)
    if set(arrays) != {constant.value.name for constant in _beside(graph)}:
        raise error(verify_codes.CERTIFICATE_FORM, f"{path}: the {which} graph has no use for some of the arrays that are given for it")
    return graph


def _record(name: str, number: int, step: Document) -> StepRecord:
    allowed = licences_of(step)
    derived = derive(text_of_lines(step["rewrite"]), f"{name}, step {number}", allowed)
    return StepRecord(step["primitive"], step["arguments"], derived.rewrite, derived.where, allowed)


def _arrays(graph: Graph) -> dict[str, Any]:
    """The elements of a graph's constants, by their digests; type and shape belong to the key, since equal bytes may be of several."""
    found: dict[str, Any] = {}
    for constant in _beside(graph):
        raw = np.ascontiguousarray(constant.data).tobytes()
        found[_key(constant.digest, str(constant.value.dtype), constant.value.shape)] = {
            "dtype": str(constant.value.dtype),
            "shape": list(constant.value.shape),
            "data": base64.b64encode(raw).decode("ascii"),
        }
    return found


def _key(digest: str, dtype: str, shape: tuple[int, ...]) -> str:
    return f"{digest} {dtype} {list(shape)}"


def _digests(graph: Graph) -> dict[str, str]:
    return {c.value.name: _key(c.digest, str(c.value.dtype), c.value.shape) for c in _beside(graph)}


def _beside(graph: Graph) -> list[Constant]:
    """The constants whose elements do not stand in the graph's text."""
    return [constant for constant in graph.constants if not is_inline(constant)]


def _array(entry: Document) -> Array:
    raw = base64.b64decode(entry["data"], validate=True)
    return np.frombuffer(raw, dtype=numpy_dtype(DType.parse(entry["dtype"]))).reshape([int(extent) for extent in entry["shape"]])


def _place(place: Place) -> dict[str, Any]:
    pad = None if place.pad is None else _number(place)
    return {"value": place.value, "index_map": index_map_text(place.index_map), "pad": pad}


def _number(place: Place) -> str | int:
    assert place.pad is not None
    number = number_of(place.pad)
    assert number is not None  # what padding is said to hold is a number
    return number.hex() if isinstance(number, float) else number


def _placed(entry: Document, dtype: DType) -> Place:
    pad = entry["pad"]
    value = None if pad is None else const(float.fromhex(pad) if isinstance(pad, str) else int(pad), dtype)
    return Place(entry["value"], parse_index_map(entry["index_map"]), value)


def _interface(interface: Interface) -> dict[str, Any]:
    outputs = interface.outputs
    return {
        "inputs": {name: index_map_text(index_map) for name, index_map in sorted(interface.inputs.items())},
        "outputs": None if outputs is None else [[name, index_map_text(index_map)] for name, index_map in outputs],
    }

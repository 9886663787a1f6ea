"""The certificate of a rewritten graph: a file from which everything that was claimed is proved again.

It has both graphs as text, the places of all values, how the new graph is called, for each new function the certificate of the steps that
lead to it, and the questions about maps. The elements of constants stand in it, or, where they are large, in a file beside it, and each of
them is known by its SHA-256. `certificate_reading` reads it back.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from layoutproof.graph.certificate_arrays import Kept, entry_of, kept_arrays, path_beside
from layoutproof.graph.map_questions import MapClaim, claims_of
from layoutproof.graph.maps import Asked
from layoutproof.graph.proving import prove_graph_rewrite
from layoutproof.graph.scalars import number_of
from layoutproof.graph.text.files import pack
from layoutproof.graph.text.printer import print_graph
from layoutproof.graph.witness import AS_IT_WAS, GraphRewrite, Interface, Place
from layoutproof.ir.dtype import DType
from layoutproof.ir.index_map import index_map_text
from layoutproof.verify.certificate.certificate import certify, query_dict, query_id, versions
from layoutproof.verify.certificate.sealed_files import Content, Document, chained, is_stream, sealed, to_bytes, write_whole_files
from layoutproof.verify.verdict import codes as verify_codes

FORMAT = "layoutproof-graph-certificate"
VERSION = 1
MOST_BYTES = 1 << 24
"""The size of the elements of constants up to which they stand in the certificate itself."""
NOT_STATED = (
    "how the old graph came about: what was imported, hoisted or folded before",
    "that the planner's choice is the cheapest",
    "what kernels make of the functions of the new graph",
)


def certify_graph(rewrite: GraphRewrite, interface: Interface = AS_IT_WAS) -> Document:
    """The certificate of a rewritten graph, sealed; each function's steps are checked anew.

    Where the constants have more than MOST_BYTES they are known by their SHA-256 alone: `certificate_files` has them besides.
    """
    return _certified(rewrite, interface, kept_arrays(rewrite.old, rewrite.new, rewrite.places))


def certificate_files(path: Path, rewrite: GraphRewrite, interface: Interface = AS_IT_WAS) -> Mapping[Path, Content]:
    """The files of a certificate that is to stand at a path, with what they hold: arrays that are too large for it, then itself."""
    kept = kept_arrays(rewrite.old, rewrite.new, rewrite.places)
    files: dict[Path, Content] = {}
    if kept.size > MOST_BYTES and not is_stream(path):
        files[path_beside(path)] = partial(pack, {key.partition(" ")[0]: array for key, array in kept.arrays.items()})
    return {**files, path: to_bytes(_certified(rewrite, interface, kept))}


def save_graph_certificate(path: str | Path, rewrite: GraphRewrite, interface: Interface = AS_IT_WAS) -> None:
    """Write the certificate of a rewritten graph, and what stands beside it, whole or not at all. Raises LayoutproofError."""
    write_whole_files(certificate_files(Path(path), rewrite, interface), verify_codes.CERTIFICATE_WRITE)


def _certified(rewrite: GraphRewrite, interface: Interface, kept: Kept) -> Document:
    called = {func.name for func in rewrite.new.functions()}
    asked: Asked = {}
    prove_graph_rewrite(rewrite, interface, asked=asked)
    claims = claims_of(asked)
    inside = kept.arrays if kept.size <= MOST_BYTES else {}
    return sealed(
        {
            "format": FORMAT,
            "version": VERSION,
            "tools": versions(),
            "not_stated": list(NOT_STATED),
            "old": print_graph(rewrite.old).split("\n"),
            "new": print_graph(rewrite.new).split("\n"),
            "arrays": {key: entry_of(array, DType.parse(key.split(" ")[1])) for key, array in inside.items()},
            "constants": {which: dict(keys) for which, keys in kept.keys.items()},
            "places": {name: _place(rewrite.places[name]) for name in sorted(rewrite.places)},
            "interface": _interface(interface),
            "functions": {
                name: certify(schedule.records, schedule.original.name).document
                for name, schedule in sorted(rewrite.schedules.items())
                if name in called
            },
            "maps": chained([claim_entry(claim) for claim in claims]),
            "queries": {query_id(query): query_dict(query) for claim in claims for query in claim.queries},
        }
    )


def claim_entry(claim: MapClaim) -> Document:
    """A claim about maps as a certificate has it."""
    return {
        "claim": claim.claim,
        "queries": [query_id(query) for query in claim.queries],
        "exceptions": [{"what": what, "reason": reason} for what, reason in claim.exceptions],
    }


def _place(place: Place) -> dict[str, Any]:
    pad = None if place.pad is None else _number(place)
    return {"value": place.value, "index_map": index_map_text(place.index_map), "pad": pad}


def _number(place: Place) -> str | int:
    assert place.pad is not None
    number = number_of(place.pad)
    assert number is not None  # what padding is said to hold is a number
    return number.hex() if isinstance(number, float) else number


def _interface(interface: Interface) -> dict[str, Any]:
    outputs = interface.outputs
    return {
        "inputs": {name: index_map_text(index_map) for name, index_map in sorted(interface.inputs.items())},
        "outputs": None if outputs is None else [[name, index_map_text(index_map)] for name, index_map in outputs],
    }

"""The certificate of a rewritten graph: both graphs as text, the steps that lead to each function, claims about maps as
questions to solvers, and constants by their SHA-256.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from layoutproof.graph import codes
from layoutproof.graph.graph_files import ARRAYS, UNREADABLE, is_inline, pack, print_graph
from layoutproof.graph.model.graph import Array, Constant, Graph, Shape, Value, number_of
from layoutproof.graph.model.graph_witness import AS_IT_WAS, GraphRewrite, Interface, Place
from layoutproof.graph.model.layout_maps import Asked, MapFact
from layoutproof.graph.prove.prove_graph import prove_graph_rewrite
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.ir.expr import Var, const
from layoutproof.ir.index_map import index_map_text
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.stmt import ForKind
from layoutproof.verify.certificate.certificate import certify, query_dict, query_id, versions
from layoutproof.verify.certificate.finder.kernel_evidence import find_evidence
from layoutproof.verify.certificate.lemmas import Layout, layout_lemmas
from layoutproof.verify.certificate.sealed_files import (
    Content,
    Document,
    chained,
    is_stream,
    sealed,
    to_bytes,
    write_whole_files,
)
from layoutproof.verify.program.evidence import NoInstance, Setting
from layoutproof.verify.program.instances import Dim, IterationDomain
from layoutproof.verify.program.questions import SmtQuery, differ
from layoutproof.verify.smt.smtlib import queries_of
from layoutproof.verify.verdict import codes as verify_codes
from layoutproof.verify.verdict.verdict import Status

_MOST_PADDING = 64
"""How many times as large as an array one may be that is made of it: a certificate may claim anything."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Arrays of two graphs, by keys, that cannot be made of others; `keys` are of each graph's constants, by name."""

    arrays: Mapping[str, Array]
    keys: Mapping[str, Mapping[str, str]]

    @property
    def size(self) -> int:
        """The bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())


def kept_arrays(old: Graph, new: Graph, places: Mapping[str, Place]) -> Kept:
    """The constants to keep of a graph and its rewrite: all old ones, and new ones that are not made of those."""
    arrays = {_key_of(constant): constant.data for constant in beside(old)}
    before = {constant.value.name: constant for constant in old.constants}
    for constant in beside(new):
        key, place = _key_of(constant), places[constant.value.name]
        if key not in arrays and _digest(_made(before.get(place.value), place, constant.value)) != constant.digest:
            arrays[key] = constant.data
    keys = {which: {c.value.name: _key_of(c) for c in beside(graph)} for which, graph in (("old", old), ("new", new))}
    return Kept(arrays, keys)


def beside(graph: Graph) -> list[Constant]:
    """The constants whose elements do not stand in the graph's text."""
    return [constant for constant in graph.constants if not is_inline(constant)]


def path_beside(path: Path) -> Path:
    """Where the arrays of a certificate stand that are not in it."""
    return Path(f"{path}{ARRAYS}")


def entry_of(array: Array, dtype: DType) -> dict[str, Any]:
    """An array as a certificate has it."""
    raw = np.ascontiguousarray(array).tobytes()
    return {"dtype": str(dtype), "shape": list(array.shape), "data": base64.b64encode(raw).decode("ascii")}


def array_of(entry: Document) -> tuple[Array, str]:
    """An array of a certificate, with its key. Raises KeyError, TypeError or ValueError for an entry that is none."""
    raw, dtype, shape = (
        base64.b64decode(entry["data"], validate=True),
        DType.parse(entry["dtype"]),
        tuple(map(int, entry["shape"])),
    )
    array = np.frombuffer(raw, dtype=numpy_dtype(dtype)).reshape(shape)
    return array, key_of(hashlib.sha256(raw).hexdigest(), Value("", shape, dtype))


def found_arrays(wanted: Iterable[str], files: Iterable[Path]) -> dict[str, Array]:
    """The arrays with these digests in files. Raises LayoutproofError for a file without readable arrays."""
    digests = set(wanted)
    found: dict[str, Array] = {}
    for file in files:
        try:
            with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                if not isinstance(archive, np.lib.npyio.NpzFile):
                    raise ValueError("it holds one array, not arrays by their names")
                for name in archive.files:
                    array = archive[name]
                    digest = _digest(array)
                    if digest in digests:
                        found[digest] = array
        except UNREADABLE as problem:
            raise error(codes.CONSTANT_DATA, f"the arrays in {file} cannot be read: {problem}") from problem
    return found


def with_arrays(old: Graph, new: Graph, places: Mapping[str, Place], found: Mapping[str, Array]) -> tuple[Graph, Graph]:
    """Both graphs with the elements of all constants that were found by their digests or are made of others."""
    before = {constant.value.name: _filled(constant, found) for constant in old.constants}
    after = {constant.value.name: _filled(constant, found) for constant in new.constants}
    # Backwards first: an old constant of which nothing was found may be taken out of where it went.
    for name, constant in after.items():
        place = places[name]
        source = before.get(place.value)
        if source is not None and source.sha256 is not None and constant.sha256 is None:
            before[place.value] = _known(source, _taken(constant, place, source.value))
    for name, constant in after.items():
        if constant.sha256 is not None:
            after[name] = _known(constant, _made(before.get(places[name].value), places[name], constant.value))
    return replace(old, constants=tuple(before.values())), replace(new, constants=tuple(after.values()))


def _filled(constant: Constant, found: Mapping[str, Array]) -> Constant:
    array = found.get(constant.digest) if constant.sha256 is not None else None
    if array is None or array.nbytes != prod(constant.value.shape) * numpy_dtype(constant.value.dtype).itemsize:
        return constant
    return _known(
        constant,
        np.ascontiguousarray(array).reshape(-1).view(numpy_dtype(constant.value.dtype)).reshape(constant.value.shape),
    )


def _known(constant: Constant, array: Array | None) -> Constant:
    """The constant with its elements, where they are those that it has the digest of."""
    return (
        replace(constant, data=array, sha256=None)
        if array is not None and _digest(array) == constant.sha256
        else constant
    )


def _made(source: Constant | None, place: Place, value: Value) -> Array | None:
    """What a new constant holds if it holds an old one where its place says; None where that cannot be made."""
    if source is None or source.sha256 is not None or source.value.dtype != value.dtype:
        return None
    if prod(value.shape) > _MOST_PADDING * prod(source.value.shape):
        return None
    pad = None if place.pad is None else number_of(place.pad)
    try:
        return np.asarray(place.index_map.map_array(source.data, value.shape, pad if pad is not None else 0), order="C")
    except (LayoutproofError, ValueError, IndexError, OverflowError, ZeroDivisionError):
        return None


def _taken(constant: Constant, place: Place, value: Value) -> Array | None:
    """What an old constant holds if a new one holds it where its place says; None where that cannot be told."""
    if constant.value.dtype != value.dtype or prod(value.shape) > prod(constant.value.shape):
        return None
    try:
        return np.asarray(place.index_map.unmap_array(constant.data, value.shape), order="C")
    except (LayoutproofError, ValueError, IndexError, OverflowError, ZeroDivisionError):
        return None


def _digest(array: Array | None) -> str | None:
    return None if array is None else hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def _key_of(constant: Constant) -> str:
    """By what an array is known: its digest, and type and shape besides, since equal bytes may be of several."""
    return key_of(constant.digest, constant.value)


def key_of(digest: str, value: Value) -> str:
    """By what the array of a value is known."""
    return f"{digest} {value.dtype} {list(value.shape)}"


@dataclass(frozen=True, slots=True)
class MapClaim:
    """A claim about maps, the questions that confirm it, and what no question was found for, with the reason. `about`
    are texts of maps and shapes by which code knows it.
    """

    about: tuple[str, ...]
    claim: str
    queries: tuple[SmtQuery, ...]
    exceptions: tuple[tuple[str, str], ...] = ()


def claims_of(facts: Iterable[MapFact]) -> tuple[MapClaim, ...]:
    """The claims that rest on such facts, each once."""
    found: dict[tuple[str, ...], MapClaim] = {}
    for first, second, shape in facts:
        for claim in _layout_claims(first, shape) if second is None else _equality_claims(first, second, shape):
            found.setdefault(claim.about, claim)
    return tuple(found.values())


def _layout_claims(text: str, shape: Shape) -> Iterator[MapClaim]:
    """One place for each index, within the box; where it is a bijection, one index for each place."""
    if not shape:
        return
    listed = ", ".join(map(str, shape))
    for number, lemma in enumerate(layout_lemmas(Layout(f"`{text}` on [{listed}]", text, listed))):
        if lemma.status is Status.PROVED:
            yield MapClaim(("layout", text, listed, str(number)), lemma.name, lemma.queries, lemma.exceptions)


def _equality_claims(first: str, second: str, shape: Shape) -> Iterator[MapClaim]:
    """No index of the box is taken to two places."""
    a, b = parse_index_map(first), parse_index_map(second)
    if a.rank != b.rank or first == second:
        return
    variables = tuple(Var(f"i{axis}", v.dtype) for axis, v in enumerate(a.inputs))
    pairs = zip(a.map_indices(variables), b.map_indices(variables), strict=True)
    unequal = tuple((differ(one, other),) for one, other in pairs if one != other)
    if not unequal:
        return
    dims = tuple(
        Dim(v, const(0, v.dtype), const(extent, v.dtype), ForKind.SERIAL)
        for v, extent in zip(variables, shape, strict=True)
    )
    queries, missing = queries_of([NoInstance(Setting(), IterationDomain(dims), unequal, "isl")])
    listed = ", ".join(map(str, shape))
    claim = f"`{first}` and `{second}` take each index of [{listed}] to one place"
    exceptions = tuple((each.what, each.reason) for each in missing)
    yield MapClaim(("equal", first, second, listed), claim, queries, exceptions)


FORMAT = "layoutproof-graph-certificate"
VERSION = 2
MOST_BYTES = 1 << 24
"""The size of the elements of constants up to which they stand in the certificate itself."""
NOT_STATED = {
    "origin": "how the old graph came about: what was imported, hoisted or folded before",
    "cost": "that the planner's choice is the cheapest",
    "kernels": "what kernels make of the functions of the new graph",
}


def certify_graph(rewrite: GraphRewrite, interface: Interface = AS_IT_WAS) -> Document:
    """The certificate of a rewritten graph, sealed; each function's steps are checked anew.

    Where the constants have more than MOST_BYTES they are known by their SHA-256 alone: `certificate_files` has them
    besides.
    """
    return _certified(rewrite, interface, kept_arrays(rewrite.old, rewrite.new, rewrite.places))


def certificate_files(path: Path, rewrite: GraphRewrite, interface: Interface = AS_IT_WAS) -> Mapping[Path, Content]:
    """The files of a certificate at a path, with contents: arrays that are too large for it, then itself."""
    kept = kept_arrays(rewrite.old, rewrite.new, rewrite.places)
    files: dict[Path, Content] = {}
    if kept.size > MOST_BYTES and not is_stream(path):
        files[path_beside(path)] = partial(pack, {key.partition(" ")[0]: array for key, array in kept.arrays.items()})
    return {**files, path: to_bytes(_certified(rewrite, interface, kept))}


def save_graph_certificate(path: str | Path, rewrite: GraphRewrite, interface: Interface = AS_IT_WAS) -> None:
    """Write the certificate of a rewritten graph and files beside it, all or none. Raises LayoutproofError."""
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
            "not_stated": dict(NOT_STATED),
            "old": print_graph(rewrite.old).split("\n"),
            "new": print_graph(rewrite.new).split("\n"),
            "arrays": {key: entry_of(array, DType.parse(key.split(" ")[1])) for key, array in inside.items()},
            "constants": {which: dict(keys) for which, keys in kept.keys.items()},
            "places": {name: _place(rewrite.places[name]) for name in sorted(rewrite.places)},
            "interface": _interface(interface),
            "functions": {
                name: certify(schedule.records, schedule.original.name, find_evidence).document
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
        "about": list(claim.about),
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
    assert number is not None  # a claim about padding is a number
    return number.hex() if isinstance(number, float) else number


def _interface(interface: Interface) -> dict[str, Any]:
    outputs = interface.outputs
    return {
        "inputs": {name: index_map_text(index_map) for name, index_map in sorted(interface.inputs.items())},
        "outputs": None if outputs is None else [[name, index_map_text(index_map)] for name, index_map in outputs],
    }

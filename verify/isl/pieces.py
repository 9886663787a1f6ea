"""A relation between instances as expressions over the first ones, part by part. Part of the trust base.

What the decoder says is encoded again and compared with the relation, and no part of it leaves its type: nothing rests on the decoder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layoutproof.ir.expr import Expr, Var, widen
from layoutproof.verify.instances import Dim
from layoutproof.verify.isl.decode import Decoder, pieces_of
from layoutproof.verify.isl.encode import Encoder, NotQuasiAffine
from layoutproof.verify.isl.library import isl
from layoutproof.verify.isl.pairing import Link, Points, Region, function_between, unnamed
from layoutproof.verify.isl.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a relation: on `points`, with the relation's tuple name, `link` leads to the values of `outputs`."""

    points: Points
    link: Link
    outputs: tuple[Expr, ...]


def pieces_said(workspace: Workspace, link: Link, dims: Sequence[Dim], targets: Sequence[Dim]) -> Iterator[Piece]:
    """The parts of a single valued relation from points over `dims` to points over `targets` that expressions over `dims` and symbols say,
    each output in the type of its target. Parts that they do not say are left out.
    """
    # Numbers of one kind go together whatever their widths; nothing is said of others.
    if len({v.dtype.kind for v in (*workspace.symbols, *(dim.var for dim in (*dims, *targets)))}) > 1:
        return
    encoder = workspace.boxed(dims).encoder
    decoder = Decoder(encoder.space, {v.name: v for v in (*workspace.symbols, *(dim.var for dim in dims))})
    for where, piece in pieces_of(isl.PwMultiAff.from_map(link)):
        try:
            outputs = tuple(widen(decoder.affine(piece.get_aff(k)), dim.var.dtype) for k, dim in enumerate(targets))
            said = function_between(encoder, _name(link, isl.dim_type.in_), outputs, _name(link, isl.dim_type.out))
            region = Region(encoder, _in_types(encoder, workspace.symbols, unnamed(where)))
            part = link.intersect_domain(where)
            if said.intersect_domain(where).is_equal(part) and all(region.fits(output) for output in outputs):
                yield Piece(where, part, outputs)
        except (NotQuasiAffine, ValueError):
            # The numbers are too large for an expression.
            continue


def _in_types(encoder: Encoder, symbols: Sequence[Var], points: Points) -> Points:
    """The points for values that symbols of their types have: sets of instances do not say that."""
    for symbol in symbols:
        value = encoder.function(symbol)
        low, high = encoder.constant(symbol.dtype.min_int), encoder.constant(symbol.dtype.max_int)
        points = points.intersect(value.ge_set(low)).intersect(value.le_set(high))
    return points


def _name(link: Link, kind: isl.dim_type) -> str:
    name = link.get_tuple_name(kind)
    assert name is not None
    return name

"""Which memory of a function is an image, and what of one: texels of four channels or of one, in two dimensions or in
layers.

A buffer of scope `global.texture` has two physical axes (rows, then elements of a row) or three (layers first). Where
the elements of a row are a multiple of 4, or the buffer's elements are vectors of 4, a texel has four channels. Source:
backends.md's table of textures; OpenCL 1.2, section 5.3.1 (image formats).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError
from layoutproof.ir.dtype import DType, Kind
from layoutproof.ir.expr import Binary, Cast, Expr, IntImm, binary
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore
from layoutproof.ir.visit import walk
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.c_stmt import describe
from layoutproof.lowering.codegen.calling_convention import MemoryMap
from layoutproof.lowering.codegen.opencl.cl_helpers import Image

TEXTURE = "global.texture"
TEXEL = 4

_CHANNEL_TYPES: Mapping[tuple[Kind, int], str] = {
    (Kind.FLOAT, 16): "HALF_FLOAT",
    (Kind.FLOAT, 32): "FLOAT",
    (Kind.INT, 8): "SIGNED_INT8",
    (Kind.INT, 16): "SIGNED_INT16",
    (Kind.INT, 32): "SIGNED_INT32",
    (Kind.UINT, 8): "UNSIGNED_INT8",
    (Kind.UINT, 16): "UNSIGNED_INT16",
    (Kind.UINT, 32): "UNSIGNED_INT32",
}


def channel_type(dtype: DType) -> str | None:
    """OpenCL's name for the channels of an image of one lane of `dtype`; None where images have no such channels."""
    return _CHANNEL_TYPES.get((dtype.kind, dtype.bits))


def find_images(func: PrimFunc, memory: MemoryMap) -> dict[str, Image]:
    """The images that a function accesses, by the data variable that declares their memory. Raises LayoutproofError
    (LP401, LP403) for every texture that cannot be an image.
    """
    views: dict[str, list[Buffer]] = {}
    declared = {name: piece.buffer for name, piece in memory.by_data.items()}
    for node in walk(func.body):
        if isinstance(node, BufferLoad | BufferStore):
            piece = memory.at(node.buffer)
            found = views.setdefault(piece.buffer.data.name, [])
            if node.buffer not in found:
                found.append(node.buffer)
    textures = {name: found for name, found in views.items() if any(buffer.scope == TEXTURE for buffer in found)}
    problems = [
        problem
        for name, found in textures.items()
        for buffer in found
        for problem in _check_texture(buffer, declared[name])
    ]
    problems = problems if problems else [problem for found in textures.values() for problem in _check_views(found)]
    if problems:
        raise LayoutproofError(problems)
    return {name: _image(found[0]) for name, found in textures.items()}


def _check_views(views: list[Buffer]) -> Iterator[Diagnostic]:
    """Views of one texture are one image: single elements, or texels of four."""
    first = views[0]
    for other in views[1:]:
        if replace(_image(other), buffer=first) != _image(first):
            both = f"{first.name} is {describe(first)} and {other.name} is {describe(other)}"
            yield Diagnostic(
                codes.UNSUPPORTED, f"the OpenCL target cannot see one texture as two kinds of image: {both}", other.span
            )


def _check_texture(buffer: Buffer, declared: Buffer) -> Iterator[Diagnostic]:
    name = declared.name
    if buffer.scope != TEXTURE:
        message = (
            f"{buffer.name} is in scope {buffer.scope!r} and a view of a texture: the OpenCL target reaches textures "
            "as textures only"
        )
        yield Diagnostic(codes.UNSUPPORTED, message, buffer.span)
        return
    if buffer.rank not in (2, 3):
        stated = declared.axis_separators
        separators = f"axis separators {list(stated)}" if stated else "no axis separators"
        yield Diagnostic(
            codes.RANK,
            f"the OpenCL target takes textures of 2 or 3 physical axes; {name}, rank {declared.rank} with "
            f"{separators}, has {buffer.rank}",
            buffer.span,
            help="add axis separators that make two axis groups, rows and what stands in a row (or three, for an image "
            "array), with set_axis_separators; then flatten the buffers (flatten_buffer)",
        )
    if buffer.dtype.lanes not in (1, TEXEL) or channel_type(buffer.dtype) is None:
        yield Diagnostic(
            codes.UNSUPPORTED,
            f"the OpenCL target has no textures of {buffer.dtype}, which {name} holds",
            buffer.span,
            help="textures hold float32, float16, int8 to int32 and uint8 to uint32, alone or as vectors of 4; other "
            "types go into scope 'global'",
        )
    if not (isinstance(buffer.elem_offset, IntImm) and buffer.elem_offset.value == 0):
        message = f"the OpenCL target takes textures from their first element on; {name} has an offset"
        yield Diagnostic(codes.UNSUPPORTED, message, buffer.span)


def _image(buffer: Buffer) -> Image:
    *layers, height, row = buffer.shape
    if buffer.dtype.lanes == TEXEL:
        channels, width = TEXEL, row
    else:
        quarter = divided(row)
        channels, width = (1, row) if quarter is None else (TEXEL, quarter)
    kind = channel_type(buffer.dtype)
    assert kind is not None
    return Image(
        buffer,
        channels,
        "image2d_array" if layers else "image2d",
        width,
        height,
        layers[0] if layers else None,
        "R" if channels == 1 else "RGBA",
        kind,
    )


def divided(expr: Expr) -> Expr | None:
    """A quarter of an index whose values are all multiples of 4; None where that is not evident, or it may wrap."""
    if expr.dtype.kind is not Kind.INT:
        return None
    match expr:
        case IntImm(value=value) if value % TEXEL == 0:
            return IntImm(value // TEXEL, expr.dtype)
        case Binary(op=BinaryOp.ADD | BinaryOp.SUB, lhs=lhs, rhs=rhs):
            left, right = divided(lhs), divided(rhs)
            return binary(expr.op, left, right) if left is not None and right is not None else None
        case Binary(op=BinaryOp.MUL, lhs=lhs, rhs=rhs):
            left, right = divided(lhs), divided(rhs)
            if right is not None:
                return _product(lhs, right)
            return _product(left, rhs) if left is not None else None
        case Cast(value=value) if _widens(expr):
            inner = divided(value)
            return replace(expr, value=inner) if inner is not None else None
        case _:
            return None


def _product(a: Expr, b: Expr) -> Expr:
    for one, other in ((a, b), (b, a)):
        if isinstance(one, IntImm) and one.value == 1:
            return other
    return binary(BinaryOp.MUL, a, b)


def terms_of(expr: Expr) -> Iterator[tuple[BinaryOp, Expr]]:
    """The terms of a sum in order, each with its sign. A sum that is widened is the sum of its widened terms."""
    if isinstance(expr, Binary) and expr.op in _SIGNS:
        yield from terms_of(expr.lhs)
        yield from ((sign if expr.op is BinaryOp.ADD else _SIGNS[sign], term) for sign, term in terms_of(expr.rhs))
    elif isinstance(expr, Cast) and _widens(expr) and isinstance(expr.value, Binary) and expr.value.op in _SIGNS:
        yield from ((sign, replace(expr, value=term)) for sign, term in terms_of(expr.value))
    else:
        yield BinaryOp.ADD, expr


def _widens(expr: Cast) -> bool:
    source, target = expr.value.dtype, expr.dtype
    return source.kind is target.kind is Kind.INT and source.bits <= target.bits


def unwidened(expr: Expr) -> Expr:
    """An index without casts to wider types around it."""
    while isinstance(expr, Cast) and _widens(expr):
        expr = expr.value
    return expr


_SIGNS: Mapping[BinaryOp, BinaryOp] = {BinaryOp.ADD: BinaryOp.SUB, BinaryOp.SUB: BinaryOp.ADD}


def split_row(expr: Expr) -> tuple[Expr, Expr]:
    """An index as `4 * a + b`: `a`, and the terms `b` that are no plain multiples of 4 (0 where there are none)."""
    dtype = expr.dtype
    if dtype.kind is not Kind.INT:
        return IntImm(0, dtype), expr
    whole: list[tuple[BinaryOp, Expr]] = []
    rest: list[tuple[BinaryOp, Expr]] = []
    number = 0
    for sign, term in terms_of(expr):
        quarter = divided(term)
        plain = unwidened(term)
        if isinstance(plain, IntImm):
            number += plain.value if sign is BinaryOp.ADD else -plain.value
        elif quarter is not None:
            whole.append((sign, quarter))
        else:
            rest.append((sign, term))
    return joined_terms(whole, dtype, number // TEXEL), joined_terms(rest, dtype, number % TEXEL)


def joined_terms(terms: Iterable[tuple[BinaryOp, Expr]], dtype: DType, number: int = 0) -> Expr:
    """The sum of terms and a number, which is first where all terms are subtracted."""
    given = list(terms)
    start = next((k for k, (sign, _) in enumerate(given) if sign is BinaryOp.ADD), None)
    found: Expr = IntImm(number, dtype) if start is None else given.pop(start)[1]
    for sign, term in given:
        found = binary(sign, found, term)
    return binary(BinaryOp.ADD, found, IntImm(number, dtype)) if start is not None and number != 0 else found

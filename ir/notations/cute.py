"""CuTe's layouts, `(4,(2,4)):(2,(1,8))`: colexicographic digits times strides, and `Sw<3,3,3> o 0 o ...`, their offset
with some of its bits XORed by higher ones; `Sw<3,4,3> o smem_ptr[16b](unset) o ...` swizzles the address in bytes. The
map goes from the flattened coordinate to one offset, or, with strides such as `1@0`, to the coordinates that they name.

Source: the documentation of CuTe (`media/docs/cpp/cute` of NVIDIA's CUTLASS), and its `pointer_flagged.hpp`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, IntImm, Var, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.notation import (
    Context,
    Notation,
    Scanner,
    WrittenLayout,
    index_variables,
    scaled,
    summed,
    whole,
)

IntTuple = int | tuple["IntTuple", ...]


@dataclass(frozen=True, slots=True)
class Swizzle:
    """`Swizzle<bits, base, shift>`: XOR `bits` bits from `base` on with those `shift` places higher (lower, if < 0)."""

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        if self.bits < 0 or self.base < 0:
            raise ValueError(f"{self} has a negative number of bits")
        if abs(self.shift) < self.bits:
            raise ValueError(f"{self}: the bits and those they are XORed with overlap")
        if self.base + self.bits + abs(self.shift) > 62:
            raise ValueError(f"{self} does not fit 64 bits")

    def __str__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"

    @property
    def source_mask(self) -> int:
        """The bits that are read."""
        return ((1 << self.bits) - 1) << (self.base + max(0, self.shift))

    def __call__(self, offset: int) -> int:
        """The swizzled offset."""
        read = offset & self.source_mask
        return offset ^ (read >> self.shift if self.shift >= 0 else read << -self.shift)

    def expr(self, offset: Expr) -> Expr:
        """The same of an expression."""
        if self.bits == 0:
            return offset
        if self.shift >= 0:
            return offset ^ ((offset >> self.shift) & (self.source_mask >> self.shift))
        return offset ^ ((offset & self.source_mask) << -self.shift)


@dataclass(frozen=True, slots=True)
class CuteLayout:
    """`shape:stride`, two nested tuples of one form, behind `swizzle` and `offset` where they are given."""

    shape: IntTuple
    stride: IntTuple
    swizzle: Swizzle | None = None
    offset: int = 0

    def __post_init__(self) -> None:
        if not is_congruent(self.shape, self.stride):
            raise ValueError(f"{self}: the shape and the stride have different forms")
        if any(extent < 1 for extent in leaves(self.shape)):
            raise ValueError(f"{self}: an extent is at least 1")

    def __str__(self) -> str:
        plain = f"{tuple_text(self.shape)}:{tuple_text(self.stride)}"
        if self.swizzle is None:
            return plain if self.offset == 0 else f"{self.offset} o {plain}"
        return f"{self.swizzle} o {self.offset} o {plain}"

    @property
    def modes(self) -> tuple[CuteLayout, ...]:
        """The top modes as layouts, without swizzle."""
        if isinstance(self.shape, int) or isinstance(self.stride, int):
            return (CuteLayout(self.shape, self.stride),)
        return tuple(CuteLayout(s, d) for s, d in zip(self.shape, self.stride, strict=True))

    @property
    def flat(self) -> tuple[tuple[int, int], ...]:
        """Extent and stride of each flat mode."""
        return tuple(zip(leaves(self.shape), leaves(self.stride), strict=True))

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return prod(leaves(self.shape))

    def __call__(self, index: int) -> int:
        """The offset of a colexicographic index; past the size, the last mode goes on."""
        flat = self.flat
        offset = self.offset
        for position, (extent, stride) in enumerate(flat):
            digit = index if position == len(flat) - 1 else index % extent
            offset += digit * stride
            index //= extent
        return offset if self.swizzle is None else self.swizzle(offset)

    def offset_expr(self, digits: Sequence[Expr]) -> Expr:
        """The offset of one expression for each flat mode."""
        terms = [scaled(digit, stride) for digit, (_, stride) in zip(digits, self.flat, strict=True) if stride]
        offset = summed(terms, self.offset)
        return offset if self.swizzle is None else self.swizzle.expr(offset)

    def map_on(self, shape: Sequence[int] | None = None) -> IndexMap:
        """The map from the flattened coordinate, or from a coarser shape whose extents are products of flat modes.

        Raises ValueError for a shape that does not group the modes.
        """
        inputs, digits = digits_on([extent for extent, _ in self.flat], shape)
        return IndexMap(inputs, (self.offset_expr(digits),))


def digits_on(flat: Sequence[int], shape: Sequence[int] | None) -> tuple[tuple[Var, ...], list[Expr]]:
    """Inputs for the extents of a shape, or for the flat modes themselves, and the digit of each mode.

    Raises ValueError for a shape that does not group the modes.
    """
    groups = grouped(flat, flat if shape is None else shape)
    extents = [prod(flat[k] for k in group) for group in groups]
    inputs = index_variables([f"i{k}" for k in range(len(groups))], extents)
    digits: dict[int, Expr] = {}
    for index, group in zip(inputs, groups, strict=True):
        digits.update(zip(group, colex_digits(index, [flat[k] for k in group]), strict=True))
    return inputs, [digits.get(k, const(0)) for k in range(len(flat))]


def colex_digits(index: Expr, extents: Sequence[int]) -> list[Expr]:
    """The digits of an index, the fastest first."""
    found: list[Expr] = []
    step = 1
    for position, extent in enumerate(extents):
        digit = index if step == 1 else index // step
        found.append(digit % extent if position < len(extents) - 1 else digit)
        step *= extent
    return found


def grouped(flat: Sequence[int], shape: Sequence[int]) -> list[list[int]]:
    """The flat modes whose product is each extent, in order. Raises ValueError where there are none."""
    groups: list[list[int]] = []
    position = 0
    for extent in shape:
        group: list[int] = []
        size = 1
        while position < len(flat) and (size < extent or (size == extent and flat[position] == 1 and not group)):
            size *= flat[position]
            group.append(position)
            position += 1
        if size != extent:
            raise ValueError(f"no modes multiply to {extent}")
        groups.append(group)
    while position < len(flat) and flat[position] == 1:
        position += 1
    if position < len(flat):
        raise ValueError(f"the layout has {prod(flat)} coordinates, the shape {prod(shape)}")
    return groups


def leaves(value: IntTuple) -> tuple[int, ...]:
    """The integers of a nested tuple, from left to right."""
    return tuple(_leaves(value))


def _leaves(value: IntTuple) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    else:
        for item in value:
            yield from _leaves(item)


def is_congruent(a: IntTuple, b: IntTuple) -> bool:
    """Whether two nested tuples have one form."""
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int)
    return len(a) == len(b) and all(is_congruent(x, y) for x, y in zip(a, b, strict=True))


def tuple_text(value: IntTuple) -> str:
    """`(4,(2,4))`, as CuTe prints it."""
    return str(value) if isinstance(value, int) else f"({','.join(tuple_text(item) for item in value)})"


@dataclass(frozen=True, slots=True)
class CoordinateLayout:
    """A layout whose strides are multiples of unit coordinates, `(4,8):(1@1,1@0)`: each is (axis, multiple).

    A stride of 0 has no axis.
    """

    shape: IntTuple
    stride: tuple[tuple[int | None, int], ...]

    @property
    def flat(self) -> tuple[tuple[int, int], ...]:
        """Extent and multiple of each flat mode."""
        return tuple((extent, step) for extent, (_, step) in zip(leaves(self.shape), self.stride, strict=True))

    def map_on(self, shape: Sequence[int] | None = None) -> IndexMap:
        """The map from the flattened coordinate, or from a coarser shape. Raises ValueError as `CuteLayout.map_on`."""
        inputs, digits = digits_on(leaves(self.shape), shape)
        rank = 1 + max((axis for axis, _ in self.stride if axis is not None), default=0)
        outputs = []
        for output in range(rank):
            terms = [scaled(d, step) for d, (axis, step) in zip(digits, self.stride, strict=True) if axis == output]
            outputs.append(summed(terms))
        return IndexMap(inputs, tuple(outputs))


# Reading

_BASIS = re.compile(r"_?(-?[0-9]{1,18})(?:\{\})?@([0-9]{1,2})(?![0-9@])")
_NUMBER = re.compile(r"_?(-?[0-9]+)(?:\{\})?")
_POINTER = re.compile(r"(?:smem_)?ptr(?:\[([0-9]{1,4})b\])?(?:\((?:unset|0x([0-9a-fA-F]{1,16}))\))?(?![\[(])")
_COMPOSED = re.compile(r"o(?=\s|\(|_|[0-9])")
_SWIZZLE = re.compile(r"(?:Sw|Swizzle)(?=\s*<)")
_WHAT = "CuTe layout"
_MAX_NESTING = 60


def parse_cute(text: str, name: str = "<layout>") -> CuteLayout:
    """Read a CuTe layout. Raises LayoutproofError at what is none."""
    scanner = Scanner(text, _WHAT, name)
    layout = take_cute(scanner)
    scanner.end()
    return layout


def parse_coordinates(text: str, name: str = "<layout>") -> CoordinateLayout:
    """Read a layout with strides such as `1@0`. Raises LayoutproofError at what is none."""
    scanner = Scanner(text, _WHAT, name)
    first = scanner.position
    shape = _tuple(scanner)
    middle = scanner.position
    scanner.expect(":", "between shape and stride")
    start = scanner.position
    found: list[tuple[int | None, int]] = []
    stride = _tuple(scanner, basis=found)
    scanner.end()
    if not is_congruent(shape, stride):
        raise scanner.fail(f"the shape {tuple_text(shape)} and its strides have different forms", start, len(text))
    _check_extents(scanner, shape, first, middle)
    return CoordinateLayout(shape, tuple(found))


def take_cute(scanner: Scanner) -> CuteLayout:
    """Read a CuTe layout from where the scanner stands."""
    start = scanner.position
    swizzle, offset = None, 0
    if scanner.matched(_SWIZZLE) is not None:
        swizzle = _swizzle(scanner, start)
        _compose(scanner)
        pointer = scanner.matched(_POINTER)
        if pointer is not None:
            swizzle = _of_elements(scanner, swizzle, pointer)
        else:
            first, second = scanner.position, _tuple(scanner)
            if scanner.sees(":"):
                return _with_strides(scanner, first, second, swizzle, 0)
            if not isinstance(second, int):
                raise scanner.fail("an offset is expected after the swizzle", first, scanner.position)
            offset = second
        _compose(scanner)
    first = scanner.position
    shape = _tuple(scanner)
    if swizzle is None and isinstance(shape, int) and scanner.matched(_COMPOSED) is not None:
        offset, first = shape, scanner.position
        shape = _tuple(scanner)
    return _with_strides(scanner, first, shape, swizzle, offset)


def _compose(scanner: Scanner) -> None:
    if scanner.matched(_COMPOSED) is None:
        raise scanner.fail(f"'o' is expected after the swizzle or the offset, not {scanner.next}")


def _swizzle(scanner: Scanner, start: int) -> Swizzle:
    numbers = []
    scanner.expect("<")
    for position in range(3):
        if position:
            scanner.expect(",")
        numbers.append(scanner.integer("a number of bits"))
    end = scanner.position + 1
    scanner.expect(">")
    try:
        return Swizzle(*numbers)
    except ValueError as problem:
        raise scanner.fail(str(problem), start, end) from problem


def _of_elements(scanner: Scanner, swizzle: Swizzle, pointer: re.Match[str]) -> Swizzle:
    """A swizzle of the address in bytes, as beside a pointer, as one of the offset in elements of so many bits."""
    if swizzle.bits == 0:
        return swizzle
    width = int(pointer[1]) if pointer[1] is not None else 0
    base = swizzle.base + 3 - (width.bit_length() - 1)
    problem = None
    if width == 0 or width & (width - 1):
        problem = (
            "the swizzle is one of bytes: say of how many bits an element is, a power of two, `smem_ptr[16b](unset)`"
        )
    elif base < 0:
        problem = f"{swizzle} moves bytes inside an element of {width} bits"
    elif int(pointer[2] or "0", 16) % (1 << (swizzle.base + swizzle.bits + abs(swizzle.shift))):
        problem = f"{swizzle} depends on this address, which is no multiple of what it swizzles"
    if problem is not None:
        raise scanner.fail(problem, pointer.start(), pointer.end())
    return Swizzle(swizzle.bits, base, swizzle.shift)


def _with_strides(scanner: Scanner, first: int, shape: IntTuple, swizzle: Swizzle | None, offset: int) -> CuteLayout:
    middle = scanner.position
    scanner.expect(":", "between shape and stride")
    start = scanner.position
    stride = _tuple(scanner)
    if not is_congruent(shape, stride):
        message = f"the shape {tuple_text(shape)} and the stride {tuple_text(stride)} have different forms"
        raise scanner.fail(message, start, max(start + 1, len(scanner.text[: scanner.position].rstrip())))
    _check_extents(scanner, shape, first, middle)
    return CuteLayout(shape, stride, swizzle, offset)


def _check_extents(scanner: Scanner, shape: IntTuple, first: int, end: int) -> None:
    for extent in leaves(shape):
        if extent < 1:
            raise scanner.fail(f"an extent is at least 1, this shape has {extent}", first, end)


def _unit(scanner: Scanner, basis: list[tuple[int | None, int]]) -> int:
    """Take `3@0`, or 0, and note it."""
    match = scanner.matched(_BASIS)
    if match is None:
        start = scanner.position
        if scanner.integer("a stride such as 1@0, or 0,"):
            raise scanner.fail("beside strides such as 1@0 there is no other number than 0", start)
        basis.append((None, 0))
        return 0
    basis.append((int(match[2]), int(match[1])))
    return int(match[1])


def _tuple(scanner: Scanner, depth: int = 0, basis: list[tuple[int | None, int]] | None = None) -> IntTuple:
    """Take an integer or a tuple; with `basis`, strides of coordinates, which are noted there."""
    start = scanner.position
    if depth > _MAX_NESTING:
        raise scanner.fail("tuples are nested too deep")
    if not scanner.optional("("):
        if basis is not None:
            return _unit(scanner, basis)
        match = scanner.matched(_NUMBER)
        if match is None:
            raise scanner.fail(f"an integer or a tuple is expected, not {scanner.next}")
        if len(match[1]) > 19:
            raise scanner.fail(f"{match[1][:24]} does not fit 64 bits", start, match.end())
        return int(match[1])
    items: list[IntTuple] = []
    while not scanner.optional(")"):
        if items:
            scanner.expect(",", "or ')'")
            if scanner.optional(")"):
                break
        items.append(_tuple(scanner, depth + 1, basis))
    return tuple(items)


def read_cute(text: str, context: Context, name: str = "<layout>") -> WrittenLayout:
    """The map of a CuTe layout on its own flattened shape, or on the context's, which groups its modes."""
    layout = parse_coordinates(text, name) if "@" in text else parse_cute(text, name)
    return on_shape(layout, text, context, name)


def on_shape(
    layout: CuteLayout | CoordinateLayout, text: str, context: Context, name: str = "<layout>"
) -> WrittenLayout:
    """The map of a layout on the context's shape. Raises LayoutproofError where that does not group its modes."""
    extents = [extent for extent, _ in layout.flat]
    if context.shape is not None:
        extents = _numbers(context.shape, text, name)
    try:
        index_map = layout.map_on(extents)
    except ValueError as problem:
        own = tuple_text(layout.shape)
        message = f"the shape {extents} does not group the modes of {own}: {problem}"
        raise error(codes.NOTATION_INCOMPLETE, message, whole(Scanner(text, _WHAT, name).source)) from problem
    return WrittenLayout(Notation.CUTE, text, index_map, tuple(const(extent) for extent in extents))


def _numbers(shape: Sequence[Expr], text: str, name: str) -> list[int]:
    found = [extent.value for extent in shape if isinstance(extent, IntImm)]
    if len(found) != len(shape):
        message = "a CuTe layout has numbers for extents, the given shape has symbols"
        raise error(codes.NOTATION_INCOMPLETE, message, whole(Scanner(text, _WHAT, name).source))
    return found

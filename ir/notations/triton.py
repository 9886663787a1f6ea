"""Triton's layouts: `#linear<{register = [[0, 1], ...], lane = ..., warp = ..., block = ...}>`, bits to bits, and
`#blocked<{sizePerThread = ..., ...}>` on a shape. The map goes from register, lane, warp and block to the index of a
tensor: the XOR of the basis vectors of the bits that are set. `triton_encodings` reads them, and those of matrices.

Source: the documentation of Triton's linear layouts and of the attributes of its TritonGPU dialect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, IntImm, Var, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.notation import Context, Scanner, index_variables, whole

HARDWARE = ("register", "lane", "warp", "block")
Basis = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LinearLayout:
    """For each input, in order, the images of its bits, each a tuple over the outputs; `extents` are the outputs'."""

    inputs: tuple[tuple[str, tuple[Basis, ...]], ...]
    extents: tuple[int, ...]

    def __post_init__(self) -> None:
        for name, bases in self.inputs:
            for basis in bases:
                if len(basis) != len(self.extents):
                    raise ValueError(f"a basis of {name} has {len(basis)} entries for {len(self.extents)} outputs")
                if any(not 0 <= value < extent for value, extent in zip(basis, self.extents, strict=True)):
                    raise ValueError(f"the basis {list(basis)} of {name} is outside the outputs {list(self.extents)}")
        if any(extent < 1 or extent & (extent - 1) for extent in self.extents):
            raise ValueError(f"the extents {list(self.extents)} of the outputs are no powers of two")

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the inputs."""
        return tuple(1 << len(bases) for _, bases in self.inputs)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return tuple(name for name, _ in self.inputs)

    def bases(self, name: str) -> tuple[Basis, ...]:
        """The images of the bits of one input; none where there is no such input."""
        return dict(self.inputs).get(name, ())

    def __call__(self, index: Sequence[int]) -> Basis:
        """The output of one index over the inputs."""
        found = [0] * len(self.extents)
        for value, (_, bases) in zip(index, self.inputs, strict=True):
            for bit, basis in enumerate(bases):
                if value >> bit & 1:
                    found = [a ^ b for a, b in zip(found, basis, strict=True)]
        return tuple(found)

    def __str__(self) -> str:
        entries = (f"{name} = [{', '.join(str(list(b)) for b in bases)}]" for name, bases in self.inputs)
        return f"#linear<{{{', '.join(entries)}}}>"

    def index_map(self) -> IndexMap:
        """The layout as XORs of shifted and masked inputs; disjoint parts are added."""
        variables = index_variables(self.names, self.shape)
        outputs = [
            _xor_of([(v, [b[axis] for b in bases]) for v, (_, bases) in zip(variables, self.inputs, strict=True)])
            for axis in range(len(self.extents))
        ]
        return IndexMap(variables, tuple(outputs))


def _xor_of(columns: Sequence[tuple[Var, Sequence[int]]]) -> Expr:
    """The XOR, over all inputs and their bits, of one value a bit."""
    result: Expr | None = None
    taken = 0
    for variable, values in columns:
        for term, reach in _runs(variable, values):
            if result is None:
                result = term
            else:
                result = result ^ term if taken & reach else result + term
            taken |= reach
    return const(0) if result is None else result


def _runs(variable: Var, values: Sequence[int]) -> Iterator[tuple[Expr, int]]:
    """Slices of the input, each moved to its place, whose XOR is that of its bits' values; with what each reaches.

    Bits of the input that go to bits equally far away are one slice.
    """
    places = {
        (out - bit, bit) for bit, value in enumerate(values) for out in range(value.bit_length()) if value >> out & 1
    }
    while places:
        distance, start = min(places, key=lambda place: (abs(place[0]), place))
        end = start
        while (distance, end) in places:
            places.remove((distance, end))
            end += 1
        digit: Expr = variable if start == 0 else variable // (1 << start)
        digit = digit if end == len(values) else digit % (1 << (end - start))
        low = start + distance
        yield (digit * (1 << low) if low else digit), ((1 << (end - start)) - 1) << low


# Reading


def take_linear(scanner: Scanner) -> LinearLayout:
    """Read the entries of a linear layout, up to the closing brace. Raises LayoutproofError."""
    found: dict[str, tuple[Basis, ...]] = {}
    while not scanner.optional("}"):
        if found:
            scanner.expect(",", "or '}'")
        start = scanner.position
        name = scanner.name("register, lane, warp or block")
        if name in found or name not in HARDWARE:
            why = "is given twice" if name in found else f"is none of {', '.join(HARDWARE)}"
            raise scanner.fail(f"{name} {why}", start, start + len(name))
        scanner.expect("=")
        found[name] = _bases(scanner)
    lengths = {len(basis) for bases in found.values() for basis in bases}
    if len(lengths) > 1:
        raise scanner.fail(f"bases of different lengths: {', '.join(map(str, sorted(lengths)))}", 0, len(scanner.text))
    if not lengths:
        raise scanner.fail(
            "a basis is expected: without one, the rank of the tensor is not known", 0, len(scanner.text)
        )
    rank = lengths.pop()
    top = [max((b[axis] for bases in found.values() for b in bases), default=0) for axis in range(rank)]
    bits = sum(len(bases) for bases in found.values())
    if bits > 40 or max(top).bit_length() > 40:
        raise scanner.fail(f"{bits} bits are too many: 40 are read", 0, len(scanner.text))
    inputs = tuple((name, found.get(name, ())) for name in HARDWARE)
    return LinearLayout(inputs, tuple(1 << value.bit_length() for value in top))


def _bases(scanner: Scanner) -> tuple[Basis, ...]:
    scanner.expect("[")
    found: list[Basis] = []
    while not scanner.optional("]"):
        if found:
            scanner.expect(",", "or ']'")
        start = scanner.position
        basis = tuple(scanner.listed("[", "]", "an entry of a basis"))
        if any(value < 0 for value in basis) or not basis:
            raise scanner.fail("a basis has an entry of at least 0 for each axis", start, scanner.position)
        found.append(basis)
    return tuple(found)


_BLOCKED = ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order")
_CLUSTER = ("CTAsPerCGA", "CTASplitNum", "CTAOrder")


def take_blocked(scanner: Scanner, context: Context) -> LinearLayout:
    """Read the entries of a blocked layout, up to the closing brace. Raises LayoutproofError."""
    lists: dict[str, list[int]] = {}
    while not scanner.optional("}"):
        if lists:
            scanner.expect(",", "or '}'")
        start = scanner.position
        name = scanner.name(", ".join(_BLOCKED))
        if name not in (*_BLOCKED, *_CLUSTER) or name in lists:
            raise scanner.fail(f"{name} is unknown or given twice", start, start + len(name))
        scanner.expect("=")
        lists[name] = scanner.listed("[", "]", "an integer")
    for name in _BLOCKED:
        if name not in lists:
            raise scanner.fail(f"{name} is missing", 0, len(scanner.text))
    if any(n != 1 for name in _CLUSTER[:2] for n in lists.get(name, ())):
        raise scanner.fail("clusters of more than one block are not supported", 0, len(scanner.text))
    rank = len(lists["order"])
    problem = _blocked_problem(lists, rank)
    if problem is not None:
        raise scanner.fail(problem, 0, len(scanner.text))
    extents = tensor_extents(scanner, context, rank, "a blocked layout")
    return blocked_layout(lists, extents)


def _blocked_problem(lists: Mapping[str, Sequence[int]], rank: int) -> str | None:
    if sorted(lists["order"]) != list(range(rank)):
        return f"order is a permutation of 0 to {rank - 1}"
    for name in _BLOCKED[:3]:
        if len(lists[name]) != rank or any(not is_power(n) for n in lists[name]):
            return f"{name} has {rank} powers of two"
    return None


def tensor_extents(scanner: Scanner, context: Context, rank: int, what: str) -> list[int]:
    """The extents of the tensor, powers of two. Raises LayoutproofError where the context has no such."""
    shape = context.needed(scanner.source, f"{what} does not say the shape of its tensor")
    extents = [extent.value for extent in shape if isinstance(extent, IntImm)]
    if len(extents) != rank or len(shape) != rank or not all(map(is_power, extents)):
        message = f"{what} of rank {rank} is on a shape of {rank} powers of two"
        raise error(codes.NOTATION_INCOMPLETE, message, whole(scanner.source))
    return extents


def is_power(value: int) -> bool:
    """Whether a number is a power of two."""
    return value > 0 and value & (value - 1) == 0


def blocked_layout(lists: Mapping[str, Sequence[int]], shape: Sequence[int]) -> LinearLayout:
    """Elements of a thread, threads of a warp and warps, each along `order`; what the shape has more goes to registers,
    what it has less is broadcast.
    """
    rank, order = len(shape), lists["order"]
    reached = [1] * rank
    inputs: dict[str, list[Basis]] = {}
    for name, key in (("register", "sizePerThread"), ("lane", "threadsPerWarp"), ("warp", "warpsPerCTA")):
        inputs[name] = []
        for axis in order:
            for _ in range(lists[key][axis].bit_length() - 1):
                inputs[name].append(unit_basis(rank, axis, reached[axis] if reached[axis] < shape[axis] else 0))
                reached[axis] *= 2
    for axis in order:
        while reached[axis] < shape[axis]:
            inputs["register"].append(unit_basis(rank, axis, reached[axis]))
            reached[axis] *= 2
    # A thread does not hold an element twice; lanes and warps beyond the shape hold it again.
    inputs["register"] = [basis for basis in inputs["register"] if any(basis)]
    inputs["block"] = []
    return LinearLayout(tuple((name, tuple(inputs[name])) for name in HARDWARE), tuple(shape))


def unit_basis(rank: int, axis: int, value: int) -> Basis:
    """The basis vector with one value along an axis."""
    return tuple(value if k == axis else 0 for k in range(rank))

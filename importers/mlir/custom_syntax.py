"""The custom syntax of operations that xDSL reads in their generic form only.

One function an operation, in a table; each makes the operation with the operands and attributes of its generic form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Block, Region
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.parser import Parser

Make = Callable[..., Any]
PAREN, SQUARE, BRACES = Parser.Delimiter.PAREN, Parser.Delimiter.SQUARE, Parser.Delimiter.BRACES


def syntax_of(name: str) -> Callable[[Any, Make], Any] | None:
    """How to read an operation; None where xDSL does."""
    if name in SYNTAX:
        return SYNTAX[name]
    dialect, _, rest = name.partition(".")
    return _named_structure if dialect == "linalg" and rest not in _LINALG_BY_XDSL else None


_LINALG_BY_XDSL = ("generic", "yield", "index")


def _sizes(groups: Sequence[Sequence[Any]]) -> Any:
    return DenseArrayBase.from_list(i32, [len(group) for group in groups])


def _integers(values: Sequence[int]) -> Any:
    return DenseArrayBase.from_list(i64, list(values))


def _terminated(parser: Any, region: Any, name: str) -> Any:
    """The region, its terminator added where the text leaves it out."""
    block: Block = region.block
    last = block.last_op
    if last is None or _name(last) != name:
        terminator = parser._get_op_by_name(name)
        terminator = getattr(terminator, "registered", terminator)
        op = terminator.create()
        parser.places[op] = (parser.pos, parser.pos)
        block.add_op(op)
    return region


def _name(op: Any) -> str:
    return str(op.attributes["op_name__"].data) if op.name == "builtin.unregistered" else str(op.name)


def _operands(parser: Any, delimiter: Any, kind: Any = None) -> list[Any]:
    found = parser.parse_comma_separated_list(delimiter, parser.parse_unresolved_operand)
    return [parser.resolve_operand(each, IndexType() if kind is None else kind) for each in found]


def _arguments(parser: Any) -> list[Any]:
    """`(%i, %j)`, of type index."""
    found = parser.parse_comma_separated_list(PAREN, lambda: parser.parse_argument(expect_type=False))
    return [argument.resolve(IndexType()) for argument in found]


def _arrow_types(parser: Any) -> list[Any]:
    """`-> (types)` or `-> type`, if it is there."""
    if parser.parse_optional_punctuation("->") is None:
        return []
    if parser._current_token.text == "(":
        return list(parser.parse_comma_separated_list(PAREN, parser.parse_type))
    return [parser.parse_type()]


def _typed(parser: Any, operands: Sequence[Any], types: Sequence[Any]) -> list[Any]:
    return list(parser.resolve_operands(operands, types, parser.pos))


# ---- affine


def _affine_if(parser: Any, make: Make) -> Any:
    condition = parser.parse_attribute()
    operands = _operands(parser, PAREN)
    if parser._current_token.text == "[":
        operands += _operands(parser, SQUARE)
    types = _arrow_types(parser)
    regions = [_terminated(parser, _filled(parser), "affine.yield")]
    if parser.parse_optional_keyword("else") is not None:
        regions.append(_terminated(parser, _filled(parser), "affine.yield"))
    else:
        regions.append(Region())
    attributes = {**parser.parse_optional_attr_dict(), "condition": condition}
    return make(operands=operands, result_types=types, attributes=attributes, regions=regions)


def _filled(parser: Any, arguments: Sequence[Any] = ()) -> Any:
    """A region with a block, also where its braces are empty."""
    return parser.parse_region(arguments)


def _affine_parallel(parser: Any, make: Make) -> Any:
    arguments = _arguments(parser)
    parser.parse_punctuation("=")
    lower, lower_groups, lower_values = _bounds(parser, "max")
    parser.parse_keyword("to")
    upper, upper_groups, upper_values = _bounds(parser, "min")
    steps = [1] * len(arguments)
    if parser.parse_optional_keyword("step") is not None:
        steps = parser.parse_comma_separated_list(PAREN, parser.parse_integer)
    reductions: list[str] = []
    if parser.parse_optional_keyword("reduce") is not None:
        reductions = parser.parse_comma_separated_list(PAREN, parser.parse_str_literal)
    types = _arrow_types(parser)
    region = _terminated(parser, _filled(parser, arguments), "affine.yield")
    attributes = {
        **parser.parse_optional_attr_dict(),
        "lowerBoundsMap": lower,
        "lowerBoundsGroups": lower_groups,
        "upperBoundsMap": upper,
        "upperBoundsGroups": upper_groups,
        "steps": _integers(steps),
        "reductions": ArrayAttr([StringAttr(each) for each in reductions]),
    }
    values = lower_values + upper_values
    return make(operands=values, result_types=types, attributes=attributes, regions=[region])


def _bounds(parser: Any, word: str) -> tuple[Any, Any, list[Any]]:
    """`(0, max(%a, %b + 1))` as a map over values, and the number of results of each bound."""
    values: list[Any] = []

    def bound() -> list[AffineExpr]:
        if parser.parse_optional_keyword(word) is not None:
            return list(parser.parse_comma_separated_list(PAREN, lambda: parser.affine_of_values(values)))
        return [parser.affine_of_values(values)]

    groups = parser.parse_comma_separated_list(PAREN, bound)
    results = tuple(result for group in groups for result in group)
    return AffineMapAttr(AffineMap(0, len(values), results)), _integers([len(g) for g in groups]), values


def _affine_extreme(parser: Any, make: Make) -> Any:
    found = parser.parse_attribute()
    operands = _operands(parser, PAREN)
    if parser._current_token.text == "[":
        operands += _operands(parser, SQUARE)
    attributes = {**parser.parse_optional_attr_dict(), "map": found}
    return make(operands=operands, result_types=[IndexType()], attributes=attributes)


def _delinearize(parser: Any, make: Make) -> Any:
    index = parser.resolve_operand(parser.parse_unresolved_operand(), IndexType())
    parser.parse_keyword("into")
    basis = _operands(parser, PAREN)
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
    return make(operands=[index, *basis], result_types=types, attributes=attributes)


# ---- scf


def _scf_parallel(parser: Any, make: Make) -> Any:
    arguments = _arguments(parser)
    parser.parse_punctuation("=")
    lower = _operands(parser, PAREN)
    parser.parse_keyword("to")
    upper = _operands(parser, PAREN)
    parser.parse_keyword("step")
    steps = _operands(parser, PAREN)
    given: list[Any] = []
    if parser.parse_optional_keyword("init") is not None:
        given = parser.parse_comma_separated_list(PAREN, parser.parse_unresolved_operand)
    types = _arrow_types(parser)
    inits = _typed(parser, given, types)
    region = _terminated(parser, _filled(parser, arguments), "scf.reduce")
    groups = [lower, upper, steps, inits]
    attributes = {**parser.parse_optional_attr_dict(), "operandSegmentSizes": _sizes(groups)}
    operands = [value for group in groups for value in group]
    return make(operands=operands, result_types=types, attributes=attributes, regions=[region])


def _forall(parser: Any, make: Make) -> Any:
    arguments = _arguments(parser)
    lower: list[Any] = [0] * len(arguments)
    steps: list[Any] = [1] * len(arguments)
    if parser.parse_optional_keyword("in") is not None:
        upper = _mixed(parser, PAREN)
    else:
        parser.parse_punctuation("=")
        lower = _mixed(parser, PAREN)
        parser.parse_keyword("to")
        upper = _mixed(parser, PAREN)
        parser.parse_keyword("step")
        steps = _mixed(parser, PAREN)
    shared: list[tuple[Any, Any]] = []
    if parser.parse_optional_keyword("shared_outs") is not None:
        shared = parser.parse_comma_separated_list(PAREN, lambda: _assignment(parser))
    types = _arrow_types(parser)
    outs = _typed(parser, [value for _, value in shared], types)
    arguments += [argument.resolve(kind) for (argument, _), kind in zip(shared, types, strict=True)]
    region = _terminated(parser, _filled(parser, arguments), "scf.forall.in_parallel")
    attributes = dict(parser.parse_optional_attr_dict())
    groups = []
    for name, mixed in (("Lower", lower), ("Upper", upper), ("Step", steps)):
        attributes[f"static{name}{'' if name == 'Step' else 'Bound'}"] = _static(mixed)
        groups.append([value for value in mixed if not isinstance(value, int)])
    groups.append(outs)
    attributes["operandSegmentSizes"] = _sizes(groups)
    operands = [value for group in groups for value in group]
    return make(operands=operands, result_types=types, attributes=attributes, regions=[region])


def _assignment(parser: Any) -> tuple[Any, Any]:
    argument = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    return argument, parser.parse_unresolved_operand()


DYNAMIC = -(1 << 63)


def _mixed(parser: Any, delimiter: Any) -> list[Any]:
    """Numbers and values of type index."""

    def one() -> Any:
        number = parser.parse_optional_integer(allow_boolean=False)
        if number is not None:
            return number
        return parser.resolve_operand(parser.parse_unresolved_operand(), IndexType())

    return list(parser.parse_comma_separated_list(delimiter, one))


def _static(mixed: Sequence[Any]) -> Any:
    return _integers([value if isinstance(value, int) else DYNAMIC for value in mixed])


def _in_parallel(parser: Any, make: Make) -> Any:
    region = parser.parse_optional_region(())
    return make(regions=[region if region is not None else Region(Block())])


# ---- tensor and linalg


def _packing(parser: Any, make: Make) -> Any:
    source = parser.parse_unresolved_operand()
    padding = []
    if parser.parse_optional_keyword("padding_value") is not None:
        parser.parse_punctuation("(")
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        padding = [parser.resolve_operand(value, parser.parse_type())]
        parser.parse_punctuation(")")
    attributes: dict[str, Any] = {}
    if parser.parse_optional_keyword("outer_dims_perm") is not None:
        attributes["outer_dims_perm"] = _listed(parser)
    parser.parse_keyword("inner_dims_pos")
    attributes["inner_dims_pos"] = _listed(parser)
    parser.parse_keyword("inner_tiles")
    parser.parse_punctuation("=")
    tiles = _mixed(parser, SQUARE)
    attributes["static_inner_tiles"] = _static(tiles)
    parser.parse_keyword("into")
    destination = parser.parse_unresolved_operand()
    attributes |= parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    kind = parser.parse_type()
    parser.parse_punctuation("->")
    types = [parser.parse_type()]
    groups = [
        [parser.resolve_operand(source, kind)],
        [parser.resolve_operand(destination, types[0])],
        padding,
        [value for value in tiles if not isinstance(value, int)],
    ]
    attributes["operandSegmentSizes"] = _sizes(groups)
    operands = [value for group in groups for value in group]
    return make(operands=operands, result_types=types, attributes=attributes)


def _listed(parser: Any) -> Any:
    parser.parse_punctuation("=")
    return _integers(parser.parse_comma_separated_list(SQUARE, parser.parse_integer))


def _parallel_insert(parser: Any, make: Make) -> Any:
    source = parser.parse_unresolved_operand()
    parser.parse_keyword("into")
    destination = parser.parse_unresolved_operand()
    offsets, sizes, strides = (_mixed(parser, SQUARE) for _ in range(3))
    attributes = dict(parser.parse_optional_attr_dict())
    parser.parse_punctuation(":")
    kind = parser.parse_type()
    parser.parse_keyword("into")
    groups = [[parser.resolve_operand(source, kind)], [parser.resolve_operand(destination, parser.parse_type())]]
    for name, mixed in (("offsets", offsets), ("sizes", sizes), ("strides", strides)):
        attributes[f"static_{name}"] = _static(mixed)
        groups.append([value for value in mixed if not isinstance(value, int)])
    attributes["operandSegmentSizes"] = _sizes(groups)
    return make(operands=[value for group in groups for value in group], attributes=attributes)


def _generate(parser: Any, make: Make) -> Any:
    sizes = (
        parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_optional_unresolved_operand)
        if (parser._current_token.text.startswith("%"))
        else []
    )
    region = parser.parse_region()
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    kind = parser.parse_type()
    operands = _typed(parser, sizes, [IndexType()] * len(sizes))
    return make(operands=operands, result_types=[kind], attributes=attributes, regions=[region])


def _converted(parser: Any, make: Make) -> Any:
    """`%x words : memref type`, the tensor for a memref and the other way round; or `%x : type to type`."""
    to_tensor = parser.last_name == "bufferization.to_tensor"
    value = parser.parse_unresolved_operand()
    words = {}
    while (word := parser.parse_optional_keyword_in(("restrict", "writable", "read_only"))) is not None:
        words[word] = IntegerAttr(1, i64)
    attributes = {**words, **parser.parse_optional_attr_dict()}
    parser.parse_punctuation(":")
    kind = parser.parse_type()
    if parser.parse_optional_keyword("to") is not None:
        return make(
            operands=[parser.resolve_operand(value, kind)], result_types=[parser.parse_type()], attributes=attributes
        )
    operand, result = (kind, _other_kind(parser, kind)) if to_tensor else (_other_kind(parser, kind), kind)
    return make(operands=[parser.resolve_operand(value, operand)], result_types=[result], attributes=attributes)


def _materialize(parser: Any, make: Make) -> Any:
    """`%source in words %destination : (tensor, type) -> types`."""
    values = [parser.parse_unresolved_operand()]
    parser.parse_keyword("in")
    words = {}
    while (word := parser.parse_optional_keyword_in(("restrict", "writable"))) is not None:
        words[word] = IntegerAttr(1, i64)
    values.append(parser.parse_unresolved_operand())
    attributes = {**words, **parser.parse_optional_attr_dict()}
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(PAREN, parser.parse_type)
    return make(operands=_typed(parser, values, types), result_types=_arrow_types(parser), attributes=attributes)


def _other_kind(parser: Any, found: Any) -> Any:
    """The tensor type of a memref type, and the other way round, where the text names only one of them."""
    if isinstance(found, MemRefType):
        return TensorType(found.element_type, found.get_shape())
    if isinstance(found, TensorType):
        return MemRefType(found.element_type, found.get_shape())
    return parser.raise_error("a tensor or memref type is expected")


def _named_structure(parser: Any, make: Make) -> Any:
    """`linalg.matmul {attributes} ins(...) outs(...) attributes = {...} -> types`, with a region of a reduction."""
    attributes = dict(parser.parse_optional_attr_dict())
    region = []
    ins = _typed_list(parser, "ins")
    outs = _typed_list(parser, "outs")
    for word in ("permutation", "dimensions"):
        if parser.parse_optional_keyword(word) is not None:
            attributes[word] = _listed(parser)
    attributes |= parser.parse_optional_attr_dict()
    if parser._current_token.text == "(":
        arguments = parser.parse_comma_separated_list(PAREN, parser.parse_argument)
        region = [parser.parse_region(arguments)]
    types = _arrow_types(parser)
    if not types:
        types = [value.type for value in outs if value.type.name == "tensor"]
    attributes["operandSegmentSizes"] = _sizes([ins, outs])
    return make(operands=[*ins, *outs], result_types=types, attributes=attributes, regions=region)


def _typed_list(parser: Any, word: str) -> list[Any]:
    """`ins(%a, %b : type, type)`."""
    if parser.parse_optional_keyword(word) is None:
        return []
    parser.parse_punctuation("(")
    values = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation(")")
    return _typed(parser, values, types)


def _index_cast(parser: Any, make: Make) -> Any:
    value = parser.parse_unresolved_operand()
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    kind = parser.parse_type()
    parser.parse_keyword("to")
    operand = parser.resolve_operand(value, kind)
    return make(operands=[operand], result_types=[parser.parse_type()], attributes=attributes)


def _memref_copy(parser: Any, make: Make) -> Any:
    source = parser.parse_unresolved_operand()
    parser.parse_punctuation(",")
    target = parser.parse_unresolved_operand()
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    kind = parser.parse_type()
    parser.parse_keyword("to")
    operands = _typed(parser, [source, target], [kind, parser.parse_type()])
    return make(operands=operands, attributes=attributes)


SYNTAX: Mapping[str, Callable[[Any, Make], Any]] = {
    "affine.if": _affine_if,
    "affine.parallel": _affine_parallel,
    "affine.max": _affine_extreme,
    "affine.min": _affine_extreme,
    "affine.delinearize_index": _delinearize,
    "scf.parallel": _scf_parallel,
    "scf.forall": _forall,
    "scf.forall.in_parallel": _in_parallel,
    "tensor.pack": _packing,
    "tensor.unpack": _packing,
    "linalg.pack": _packing,
    "linalg.unpack": _packing,
    "tensor.parallel_insert_slice": _parallel_insert,
    "tensor.generate": _generate,
    "bufferization.to_memref": _converted,
    "bufferization.to_buffer": _converted,
    "bufferization.to_tensor": _converted,
    "bufferization.materialize_in_destination": _materialize,
    "memref.copy": _memref_copy,
    "arith.index_cast": _index_cast,
    "arith.index_castui": _index_cast,
}

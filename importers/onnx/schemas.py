"""What ONNX says of a node before anything is known of its operands: how many there are, and the kinds of its attributes."""

from __future__ import annotations

from functools import cache
from typing import Any

from layoutproof.graph import codes
from layoutproof.importers.onnx.library import DOMAINS, library
from layoutproof.ir.diagnostic import error


@cache
def schema_of(operator: str, opset: int) -> Any:
    """ONNX's own description of an operator (`onnx.defs.OpSchema`) in a version; None where it has none."""
    onnx = library()
    try:
        return onnx.defs.get_schema(operator, opset, "")
    except onnx.defs.SchemaError:
        return None


def check_node(node: Any, opset: int, told: str) -> None:
    """Raise LayoutproofError for a node (`onnx.NodeProto`) that its operator cannot have. Operators that ONNX does not know are let be."""
    schema = schema_of(node.op_type, opset) if node.domain in DOMAINS else None
    if schema is None:
        return
    for word, given, least, most in (
        ("operands", node.input, schema.min_input, schema.max_input),
        ("results", node.output, schema.min_output, schema.max_output),
    ):
        if not least <= len(given) <= most:
            expected = f"{least}" if least == most else f"{least} to {most}"
            raise error(codes.MODEL_OPERATOR, f"{told}: it has {len(given)} {word}, expected are {expected}")
    seen = set[str]()
    for item in node.attribute:
        if item.name in seen:
            raise error(codes.MODEL_OPERATOR, f"{told}: the attribute {item.name} is given twice")
        seen.add(item.name)
        known = schema.attributes.get(item.name)
        if known is not None and item.type != int(known.type.value):
            kind = known.type.name.lower()
            raise error(codes.MODEL_OPERATOR, f"{told}: the attribute {item.name} is of another kind than {kind}, which is expected")
    missing = [name for name, known in schema.attributes.items() if known.required and name not in seen]
    if missing:
        raise error(codes.MODEL_OPERATOR, f"{told}: the attribute {sorted(missing)[0]} is missing")

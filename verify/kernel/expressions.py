"""Expressions in TVM's script syntax -> those of `programs`. Nothing is executed, and nothing is guessed: what is not
understood, a conversion that the text does not write included, is rejected with its line.
"""

from __future__ import annotations

import ast
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from layoutproof.verify.kernel import programs as core
from layoutproof.verify.kernel.programs import Buffer, Expr, element_of, is_float, is_integer, lanes_of, with_lanes
from layoutproof.verify.kernel.rejected import Rejected

T = TypeVar("T")
_LONGEST, _DEEPEST, _LARGEST = 1_000_000, 80, 20_000  # characters; levels of syntax; parts of one expression
_OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<",
    ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.And: "and", ast.Or: "or",
}  # fmt: skip
_NAMED = {
    "floordiv": "//", "floormod": "%", "truncdiv": "truncdiv", "truncmod": "truncmod", "min": "min", "max": "max",
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "shift_left": "<<", "shift_right": ">>",
}  # fmt: skip
_ONE = "exp log sqrt rsqrt tanh sigmoid erf abs floor ceil round exp2 log2 log10 sin cos tan sinh cosh atan trunc"
_FUNCTIONS = dict.fromkeys(_ONE.split(), 1) | dict.fromkeys("pow fmax fmin maximum minimum".split(), 2) | {"fma": 3}
_OF_INTEGERS = ("//", "%", "truncdiv", "truncmod", "<<", ">>", "&", "|", "^")
_TAKEN = {
    "int32": ("int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64"),
    "int64": ("int64", "uint64"), "float32": ("float32", "float64"),
}  # fmt: skip
_FORMATS = {"float16": "<e", "bfloat16": "<f", "float32": "<f", "float64": "<d"}


def fail(node: ast.AST, message: str) -> NoReturn:
    """Raise Rejected at the line of a piece of syntax."""
    raise Rejected(f"line {getattr(node, 'lineno', 1)}: {message}")


def parse(text: str, mode: str) -> Any:
    """The syntax tree of a text, of a limited size and depth."""
    if len(text) > _LONGEST:
        raise Rejected(f"the text has more than {_LONGEST} characters")
    try:
        tree = ast.parse(text, mode=mode)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise Rejected(f"the text has no syntax tree: {type(problem).__name__}") from problem
    level: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return tree
    raise Rejected(f"the text is nested more than {_DEEPEST} levels deep")


def limited(node: ast.AST, e: Expr, most: int = _LARGEST, deepest: int = 2 * _DEEPEST) -> Expr:
    """The expression, if it has no more than that many parts and levels: those who read it may recurse."""
    level, count = [e], 0
    for _ in range(deepest):
        count += len(level)
        level = [part for found in level for part in core.parts(found)] if count <= most else level
        if not level:
            return e
    return fail(node, "the expression is too large")


def script_name(node: ast.AST | None) -> str:
    """`axis.remap` of `T.axis.remap` and of `T.axis.remap(...)`; empty for anything else."""
    names: list[str] = []
    node = node.func if isinstance(node, ast.Call) else node
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return ".".join(names) if isinstance(node, ast.Name) and node.id == "T" else ""


def bind(call: ast.AST | None, names: Sequence[str], required: int) -> dict[str, ast.expr]:
    """The arguments of a call by `names`, in their order, at least the first `required`. None is one not given."""
    if not isinstance(call, ast.Call) or len(call.args) > len(names):
        fail(call or ast.Pass(), "a call with other arguments is expected")
    given = list(zip(names, call.args, strict=False)) + [(k.arg or "", k.value) for k in call.keywords]
    bound = dict(given)
    if len(bound) != len(given) or not set(bound) <= set(names):
        fail(call, f"T.{script_name(call)} has an argument that is not understood")
    none = [n for n, e in bound.items() if isinstance(e, ast.Constant) and e.value is None]
    found = {n: bound[n] for n in names if n in bound and n not in none}
    if not all(n in found for n in names[:required]):
        fail(call, f"T.{script_name(call)} lacks an argument")
    return found


def entries_of(node: ast.expr) -> list[ast.expr]:
    """The entries of a tuple or list; anything else as the only one."""
    return list(node.elts) if isinstance(node, ast.Tuple | ast.List) else [node]


def literal(node: ast.expr, kind: type[T]) -> T:
    """The value of a constant of that type."""
    if not isinstance(node, ast.Constant) or type(node.value) is not kind:
        fail(node, f"a plain {kind.__name__} is expected")
    return node.value


def dtype_of(node: ast.expr) -> str:
    """The data type in quotes."""
    return core.parse_dtype(literal(node, str)) or fail(node, "the data type is not known")


def float_constant(node: ast.AST, value: float, dtype: str) -> Expr:
    """A float rounded to its type, ties to even (bfloat16: only one of its numbers); an integer must be exact."""
    try:
        number = struct.unpack(_FORMATS[dtype], data := struct.pack(_FORMATS[dtype], float(value)))[0]
    except OverflowError:
        return fail(node, f"the number is past the largest {dtype}")
    inexact = number != value and (isinstance(value, int) or (dtype == "bfloat16" and value == value))
    if inexact or (dtype == "bfloat16" and value == value and data[:2] != b"\0\0"):
        fail(node, f"the number is none of type {dtype}")
    return ("const", dtype, number.hex())


class Expressions:
    """Reads expressions. `scope` has the variables, the values that names stand for, and the buffers.

    While it is read, a plain number (and `T.undef()`) has the type "", until what it meets decides it.
    """

    def __init__(self, scope: Mapping[str, Expr | Buffer]) -> None:
        self.scope = dict(scope)

    # ---- types

    def typed(self, node: ast.AST, e: Expr, dtype: str) -> Expr:
        """The expression with that type: its own, or one that a plain number can have."""
        if e[1] == dtype:
            return e
        if e[1] != "":
            fail(node, f"{e[1]} stands where {dtype} is needed: the text does not write the conversion")
        if e[0] == "undef":
            return ("undef", dtype)
        if lanes_of(dtype) > 1:
            return ("broadcast", dtype, self.typed(node, e, element_of(dtype)), lanes_of(dtype))
        value = e[2]
        if dtype == "bool" and isinstance(value, bool):
            return ("const", dtype, value)
        if is_float(dtype) and not isinstance(value, bool):
            return float_constant(node, value, dtype)
        if is_integer(dtype) and type(value) is int and core.fits(value, dtype):
            return ("const", dtype, value)
        return fail(node, f"the number is none of type {dtype}")

    def default(self, node: ast.AST, e: Expr) -> Expr:
        """The expression; a plain number with the type that it has by itself."""
        return self.typed(node, e, own_type(e) or fail(node, "the type of T.undef() is not known here"))

    def joined(self, node: ast.AST, *values: Expr) -> list[Expr]:
        """The values, all of one type. A plain number takes the type of the others only where that is no conversion of
        theirs: one of 32 or 64 bits or a float for an integer, float32 or float64 for a float.
        """
        own = [own_type(e) for e in values]
        dtype = next((e[1] for e in values if e[1] != ""), "") or next(filter(None, own), "")
        for e, kind in zip(values, own, strict=True):
            if e[1] == "" and kind and element_of(dtype) not in _TAKEN.get(kind, (kind,)):
                fail(node, f"a plain number of type {kind} meets {dtype}: the text does not write the conversion")
        return [self.default(node, self.typed(node, e, dtype)) for e in values]

    # ---- what callers ask for

    def value(self, node: ast.expr) -> Expr:
        """An expression with a type, of a limited size."""
        return limited(node, self.default(node, self.read(node)))

    def condition(self, node: ast.expr) -> Expr:
        """A truth value that no undefined value decides."""
        e = self.value(node)
        if e[1] != "bool" or core.has(e, "undef"):
            fail(node, "a truth value is expected")
        return e

    def integer(self, node: ast.expr) -> Expr:
        """An integer of one lane, as bounds and shapes are."""
        return self.whole(node, self.value(node))

    def whole(self, node: ast.AST, e: Expr, loads: bool = False, lanes: bool = False) -> Expr:
        """The expression, if it is an integer that is always defined; of loads or several lanes only if allowed."""
        if not is_integer(e[1]) or (lanes_of(e[1]) > 1 and not lanes) or core.has(e, "undef"):
            fail(node, "an integer is expected")
        if core.has(e, "load") and not loads:
            fail(node, "a load in a bound or a binding is not understood")
        return limited(node, e)

    # ---- syntax

    def read(self, node: ast.expr) -> Expr:
        """An expression, whose type may be open."""
        handler = _READERS.get(type(node))
        return handler(self, node) if handler is not None else fail(node, f"a {type(node).__name__} is not understood")

    def constant(self, node: ast.Constant) -> Expr:
        value = node.value
        most = math.inf if isinstance(value, float) else 1 << 64
        if not isinstance(value, bool | int | float) or not abs(value) < most:
            fail(node, "a constant that is no number of 64 bits")
        return ("const", "", value)

    def name(self, node: ast.Name) -> Expr:
        found = self.scope.get(node.id)
        return found if isinstance(found, tuple) else fail(node, f"`{node.id}` is no value that is defined here")

    def binary(self, node: ast.BinOp) -> Expr:
        op = _OPERATORS.get(type(node.op)) or fail(node, "the operator is not understood")
        return self.operation(node, op, self.read(node.left), self.read(node.right))

    def operation(self, node: ast.AST, op: str, a: Expr, b: Expr) -> Expr:
        if a[1] == b[1] == "" and op in ("+", "-", "*") and type(a[-1]) is type(b[-1]) is int:
            return ("const", "", core.computed(op, a[2], b[2]))
        a, b = self.joined(node, a, b)
        integer = is_integer(a[1]) or (element_of(a[1]) == "bool" and op in ("&", "|", "^"))
        if not (integer if op in _OF_INTEGERS else is_float(a[1]) or (op != "/" and integer)):
            fail(node, f"`{op}` of {a[1]}")
        return (op, a[1], a, b)

    def unary(self, node: ast.UnaryOp) -> Expr:
        e = self.read(node.operand)
        if isinstance(node.op, ast.Not) and element_of(e[1] or "bool") == "bool":
            e = self.typed(node, e, e[1] or "bool")
            return ("not", e[1], e)
        if isinstance(node.op, ast.USub) and e[:2] == ("const", "") and not isinstance(e[2], bool):
            return ("const", "", -e[2])
        if isinstance(node.op, ast.USub) and (is_float(e[1]) or e[1].startswith("int")):
            return ("*", e[1], e, self.typed(node, ("const", "", -1), e[1]))
        return fail(node, f"this sign of {e[1] or 'a plain number'} is not understood")

    def comparison(self, node: ast.Compare) -> Expr:
        op = _OPERATORS.get(type(node.ops[0]))
        if len(node.ops) != 1 or op is None:
            fail(node, "a chained comparison, or one that is not understood")
        a, b = self.joined(node, self.read(node.left), self.read(node.comparators[0]))
        return (op, with_lanes("bool", lanes_of(a[1])), a, b)

    def logical(self, node: ast.BoolOp) -> Expr:
        result, *terms = self.joined(node, *map(self.read, node.values))
        if element_of(result[1]) != "bool":
            fail(node, "`and` and `or` take truth values")
        for term in terms:
            result = (_OPERATORS[type(node.op)], term[1], result, term)
        return result

    def choice(self, node: ast.Call) -> Expr:
        c, *sides = map(self.read, bind(node, ("c", "a", "b"), 3).values())
        kind, a, b = "if" if script_name(node) == "if_then_else" else "select", *self.joined(node, *sides)
        c = self.default(node, c)
        if element_of(c[1]) != "bool" or lanes_of(c[1]) not in ((1,) if kind == "if" else (1, lanes_of(a[1]))):
            fail(node, "a choice by something that is no truth value")
        return (kind, a[1], c, a, b)

    def load(self, node: ast.Subscript) -> Expr:
        buffer, indices, dtype = self.access(node)
        return ("load", dtype, buffer.name, indices)

    def access(self, node: ast.Subscript) -> tuple[Buffer, tuple[Expr, ...], str]:
        """The buffer, the indices, and the type of what is loaded or stored there."""
        buffer = self.scope.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if not isinstance(buffer, Buffer):
            fail(node, "an element of a buffer is expected")
        given = entries_of(node.slice)
        indices = tuple(self.whole(e, self.value(e), loads=True, lanes=e is given[-1]) for e in given)
        if len(indices) != len(buffer.shape):
            fail(node, f"{buffer.name} has {len(buffer.shape)} axes, and {len(indices)} indices here")
        lanes = lanes_of(indices[-1][1]) if indices else 1
        return buffer, indices, with_lanes(buffer.dtype, lanes_of(buffer.dtype) * lanes)

    # ---- calls

    def call(self, node: ast.Call) -> Expr:
        name = script_name(node)
        if name in _NAMED:
            return self.operation(node, _NAMED[name], *self.joined(node, *map(self.read, bind(node, "ab", 2).values())))
        handler = _CALLS.get(name) or (Expressions.conversion if core.parse_dtype(name) else None)
        return handler(self, node) if handler is not None else fail(node, f"`T.{name[:40]}` is not known as a value")

    def function(self, node: ast.Call) -> Expr:
        name = script_name(node)
        count = _FUNCTIONS[name]
        arguments = self.joined(node, *map(self.read, bind(node, "xyz"[:count], count).values()))
        dtype = arguments[0][1]
        if not is_float(dtype) and not (name == "abs" and is_integer(dtype)):
            fail(node, f"{name} of {dtype}")
        return ("call", dtype, name, *arguments)

    def conversion(self, node: ast.Call) -> Expr:
        """`T.float32(x)`: a number of the type, or a cast."""
        dtype, argument = core.parse_dtype(script_name(node)) or "", bind(node, ("expr",), 1)["expr"]
        if isinstance(argument, ast.Constant) and argument.value in ("inf", "-inf", "nan") and dtype in _FORMATS:
            return ("const", dtype, float(argument.value).hex())
        e = self.read(argument)
        return self.typed(node, e, dtype) if e[1] in ("", dtype) else self.cast_to(node, dtype, e)

    def cast(self, node: ast.Call) -> Expr:
        bound = bind(node, ("dtype", "value"), 2)
        return self.cast_to(node, dtype_of(bound["dtype"]), self.default(node, self.read(bound["value"])))

    def cast_to(self, node: ast.AST, dtype: str, e: Expr) -> Expr:
        return ("cast", dtype, e) if lanes_of(dtype) == lanes_of(e[1]) else fail(node, "a cast that changes the lanes")

    def reinterpret(self, node: ast.Call) -> Expr:
        """The float that has the bits of an integer; not the other way round, as NaNs of several bits are one value."""
        bound = bind(node, ("dtype", "value"), 2)
        dtype, e = dtype_of(bound["dtype"]), self.default(node, self.read(bound["value"]))
        bits = [t.lstrip("uintbfloa") for t in (dtype, e[1])]
        if not is_float(dtype) or not is_integer(e[1]) or bits[0] != bits[1]:
            fail(node, f"the bits of {e[1]} as {dtype}")
        return ("call", dtype, "reinterpret", e)

    def vector(self, node: ast.Call) -> Expr:
        kind = script_name(node).lower()
        names = ("base", "stride", "lanes") if kind == "ramp" else ("value", "lanes")
        *operands, count = bind(node, names, len(names)).values()
        values, lanes = self.joined(node, *map(self.read, operands)), literal(count, int)
        dtype = values[0][1]
        if not 1 < lanes < 10_000 or lanes_of(dtype) > 1 or (kind == "ramp" and not is_integer(dtype)):
            fail(node, f"a {kind} of {dtype} that is not understood")
        return (kind, with_lanes(dtype, lanes), *values, lanes)

    def limit(self, node: ast.Call) -> Expr:
        """`T.infinity(t)`, `T.min_value(t)`, `T.max_value(t)`: of floats, the least and the largest finite number."""
        dtype, name = dtype_of(bind(node, ("dtype",), 1)["dtype"]), script_name(node)
        if lanes_of(dtype) > 1 or not (is_float(dtype) or (is_integer(dtype) and name != "infinity")):
            fail(node, f"{name} of {dtype}")
        return ("call", dtype, name)

    def undef(self, node: ast.Call) -> Expr:
        bound = bind(node, ("dtype",), 0)
        return ("undef", dtype_of(bound["dtype"]) if bound else "")


def own_type(e: Expr) -> str:
    """The type of an expression, or the one that a plain number has by itself; empty for a plain `T.undef()`."""
    if e[1] != "" or e[0] == "undef":
        return str(e[1])
    if isinstance(e[2], bool | float):
        return "bool" if isinstance(e[2], bool) else "float32"
    return "int32" if core.fits(e[2], "int32") else "int64"


_READERS: Mapping[type[ast.AST], Callable[[Expressions, Any], Expr]] = {
    ast.Constant: Expressions.constant, ast.Name: Expressions.name, ast.BinOp: Expressions.binary,
    ast.UnaryOp: Expressions.unary, ast.Compare: Expressions.comparison, ast.BoolOp: Expressions.logical,
    ast.Subscript: Expressions.load, ast.Call: Expressions.call,
}  # fmt: skip
_CALLS: Mapping[str, Callable[[Expressions, ast.Call], Expr]] = {
    "Cast": Expressions.cast,
    "undef": Expressions.undef,
    "reinterpret": Expressions.reinterpret,
    **dict.fromkeys(("Select", "if_then_else"), Expressions.choice),
    **dict.fromkeys(("Ramp", "ramp", "Broadcast", "broadcast"), Expressions.vector),
    **dict.fromkeys(("infinity", "min_value", "max_value"), Expressions.limit),
    **dict.fromkeys(_FUNCTIONS, Expressions.function),
}

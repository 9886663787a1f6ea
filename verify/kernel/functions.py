"""One function in TVM's script syntax -> the core model of `programs`.

Blocks are written out here: at each point of the loops around a block its variables are bound, then, where `T.where`
holds, the init runs if every reduce variable is at the start of its domain, then the body.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from layoutproof.verify.kernel import expressions as syntax
from layoutproof.verify.kernel import programs as core
from layoutproof.verify.kernel.expressions import Expressions, bind, entries_of, fail, limited, literal, script_name
from layoutproof.verify.kernel.programs import TRUE, Buffer, Expr, Loop, variable
from layoutproof.verify.kernel.rejected import Rejected

_SUBSTITUTED = (256, 24)  # parts and levels of a value that a name stands for, as it may be written many times
_NESTED, _LOOPS_IN_ALL = 64, 5_000  # loops around a statement, and in a function
_LOOPS = {"range": "serial", "serial": "serial", "parallel": "parallel", "vectorized": "vectorized", "unroll": "unroll"}
_BUFFER = ("shape", "dtype", "data", "strides", "elem_offset", "scope", "align", "offset_factor", "", "axis_separators",
           "annotations")  # fmt: skip
_AXES = {"spatial": "S", "S": "S", "reduce": "R", "R": "R", "opaque": "O", "O": "O"}
_REMARKS = ("reads", "writes", "block_attr", "sblock_attr")
_NOALIAS = ("tirx.noalias", "tir.noalias", "noalias", "layoutproof.apart")
_LAYOUT = "layoutproof.layout"
Domain = tuple[Expr, Expr, Expr]  # start, extent, value
Axis = tuple[str, Expr, Expr, Expr]  # of a block: its kind and domain


def difference(a: Expr, b: Expr) -> Expr:
    """`b - a`, without a subtraction where both are constants, `b` is `a + e`, or `a` is 0."""
    if a[0] == b[0] == "const" and core.fits(b[2] - a[2], a[1]):
        return ("const", a[1], b[2] - a[2])
    if b[0] == "+" and b[2] == a:
        return core.parts(b)[1]
    return b if a[0] == "const" and a[2] == 0 else ("-", a[1], b, a)


class Functions(Expressions):
    """Reads one function: what stands around the statement that is read, and what was found so far."""

    def __init__(self, node: ast.FunctionDef) -> None:
        super().__init__({})
        self.node, self.attributes = node, self.function_attributes(node)
        self.layouts: dict[str, Any] = self.attributes.pop(_LAYOUT, {})
        self.loops: tuple[Loop, ...] = ()
        self.guards: tuple[Expr, ...] = ()
        self.lets: list[tuple[ast.stmt, Expr, int]] = []  # those that load, of the body that is read
        self.times: list[int] = [0]  # the next position in the function, and in each loop around
        self.params: dict[str, str | None] = {}  # the names of the parameters, those of handles by what they match
        self.buffers: dict[str, Buffer] = {}
        self.symbols: dict[str, str] = {}
        self.written: dict[str, str] = {}  # of each loop, its name in the text
        self.statements: list[core.Statement] = []
        self.insides: list[core.Statement] = []
        self.stores = 0
        self.noalias = any(self.attributes.get(key) in (True, 1) for key in _NOALIAS)

    def program(self, name: str) -> core.Program:
        """The function, called `name`, but for the records of its layouts."""
        body = [node for node in self.node.body if not self.declares(node)]
        self.parameters()
        body = body[1:] if is_call(body[0], "func_attr") else body
        while body and isinstance(body[0], ast.Assign) and script_name(body[0].value) == "match_buffer":
            self.match(body.pop(0))
        if None in self.params.values():
            fail(self.node, "a handle has no buffer")
        self.body(body)
        if not self.symbols.keys().isdisjoint(self.written):
            fail(self.node, "a loop has the name of a symbol")
        always = [s.condition for s in self.statements if s.kind == "assume" and not s.loops and not s.guards]
        assumed = tuple(condition for condition in always if not core.has(condition, "load"))
        found = tuple(self.symbols.items()), self.buffers, tuple(self.statements), tuple(self.insides)
        return core.Program(
            name, tuple(map(str, self.params.values())), *found, self.noalias, {}, self.attributes, assumed
        )

    # ---- the signature

    @staticmethod
    def function_attributes(node: ast.FunctionDef) -> dict[str, Any]:
        calls = [each.value for each in node.body if isinstance(each, ast.Expr) and is_call(each, "func_attr")]
        given = bind(calls[0], ("attrs",), 1)["attrs"] if calls else ast.Dict([], [])
        for part in (part for part in ast.walk(given) if isinstance(part, ast.Dict)):
            part.values = [
                ast.List([ast.Constant(ast.unparse(v))]) if script_name(v) == "target" else v for v in part.values
            ]
            keys = {k.value for k in part.keys if isinstance(k, ast.Constant) and type(k.value) is str}
            if len(keys) != len(part.keys):
                fail(given, "attributes have different texts as keys")
        if len(calls) > 1 or not isinstance(given, ast.Dict):
            fail(given, "a function has one T.func_attr, of a dictionary")
        try:
            found: dict[str, Any] = ast.literal_eval(given)
        except (ValueError, TypeError) as problem:
            raise Rejected(f"line {given.lineno}: the attributes are no plain values") from problem
        return found if isinstance(found.get(_LAYOUT, {}), dict) else fail(given, f"{_LAYOUT} is no dictionary")

    def declares(self, node: ast.stmt) -> bool:
        """Whether the statement is `n = T.int32()` or the like; its names become symbols."""
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            return False
        targets, calls = entries_of(node.targets[0]), entries_of(node.value)
        types = [core.parse_dtype(script_name(c)) for c in calls if isinstance(c, ast.Call) and not c.args + c.keywords]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if None in types or not len(types) == len(calls) == len(names) == len(targets):
            return False
        for name, dtype in zip(names, types, strict=True):
            self.symbol(node, name, dtype or "")
        return True

    def symbol(self, node: ast.AST, name: str, dtype: str) -> Expr:
        e = ("var", dtype, name)
        if not (name.isascii() and name.isidentifier()) or "x" in dtype or self.scope.setdefault(name, e) != e:
            fail(node, f"`{name[:40]}` is no symbol, or bound twice")
        self.symbols[name] = dtype
        return e

    def parameters(self) -> None:
        """The parameters; scalars are brought into scope before any buffer is read."""
        given = self.node.args
        if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs or given.defaults or self.node.returns:
            fail(self.node, "only plain positional parameters are understood")
        for argument in given.args:
            dtype = core.parse_dtype(script_name(argument.annotation))
            if dtype is not None:
                self.symbol(argument, argument.arg, dtype)
            elif script_name(argument.annotation) not in ("Buffer", "handle"):
                fail(argument, f"the type of parameter `{argument.arg}` is not understood")
            is_handle = script_name(argument.annotation) == "handle"
            self.params[argument.arg] = None if is_handle else argument.arg
        for argument in given.args:
            if argument.arg not in self.symbols and self.params[argument.arg] is not None:
                self.buffer(argument, argument.arg, bind(argument.annotation, _BUFFER, 1), True)

    def match(self, node: Any) -> None:
        """`A = T.match_buffer(a, ...)` names the array that a handle is of: a parameter like others."""
        bound = bind(node.value, ("param", *_BUFFER), 2)
        handle, (target, *others) = ast.unparse(bound.pop("param")), node.targets
        if self.params.get(handle, "") is not None or not isinstance(target, ast.Name) or others:
            fail(node, "a handle, which has no buffer yet, is expected")
        self.params[handle] = target.id
        self.buffer(node, target.id, bound, True)

    def buffer(self, node: ast.AST, name: str, bound: dict[str, ast.expr], is_parameter: bool) -> None:
        """A parameter, an allocation, or, with `data`, a view."""
        if name in self.buffers or name in self.scope or {"", *(["annotations"] if is_parameter else [])} & set(bound):
            fail(node, f"buffer `{name}` is declared twice, or has an argument that is not understood")
        data, loops, given = f"{name}_data", self.loops, bound.get("data")
        if given is not None:
            of = self.scope.get(getattr(getattr(given, "value", None), "id", ""))
            if not isinstance(of, Buffer) or ast.unparse(given) != f"{of.name}.data" or is_parameter:
                fail(node, "the data of a view is `A.data` of another buffer")
            data, loops = of.data, of.loops
        shape, strides, separators = (
            entries_of(bound[key]) if key in bound else [] for key in ("shape", "strides", "axis_separators")
        )
        if strides and len(strides) != len(shape):
            fail(node, f"`{name}` has not as many strides as axes")
        align, factor = (max(0, literal(bound[key], int)) if key in bound else 0 for key in ("align", "offset_factor"))
        self.buffers[name] = self.scope[name] = Buffer(
            name, data, syntax.dtype_of(bound["dtype"]) if "dtype" in bound else "float32",
            tuple(map(self.extent, shape)), tuple(map(self.extent, strides)),
            self.extent(bound["elem_offset"]) if "elem_offset" in bound else ("const", "int32", 0),
            literal(bound["scope"], str) if "scope" in bound else "global", is_parameter, loops,
            tuple(literal(e, int) - 1 for e in separators), (align, factor),
        )  # fmt: skip

    def extent(self, node: ast.expr) -> Expr:
        """An integer of a shape, of strides, an offset; a text names a symbol."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self.symbol(node, node.value, self.symbols.get(node.value, "int32"))
        e = self.integer(node)
        return e if e[0] != "const" or e[2] >= 0 else fail(node, "an extent below zero")

    # ---- statements

    def body(self, nodes: Sequence[ast.stmt]) -> None:
        """The statements of a loop, a branch, a block or the function; names that they bind end with it."""
        scope, lets, self.lets = dict(self.scope), self.lets, []
        for node in nodes:
            handler = _STATEMENTS.get(type(node)) or fail(node, f"a {type(node).__name__} is not understood")
            handler(self, node)
        for node, value, since in self.lets:
            self.check_let(node, value, self.statements[since:])
        self.scope, self.lets = scope, lets

    def add(self, node: ast.stmt, store: tuple[str, tuple[Expr, ...], Expr] | None, condition: Expr) -> None:
        kind, number = ("store", self.stores) if store is not None else ("assume", -1)
        self.stores += store is not None
        around = (kind, self.loops, self.guards, tuple(self.times))
        self.times[-1] += 1
        self.statements.append(core.Statement(*around, *(store or ("", (), TRUE)), condition, node.lineno, number))

    def assign(self, node: ast.Assign) -> None:
        target = node.targets[0] if len(node.targets) == 1 else None
        if isinstance(target, ast.Subscript):
            buffer, indices, dtype = self.access(target)
            value = limited(node, self.typed(node, self.read(node.value), dtype))
            self.add(node, (buffer.name, indices, value), TRUE)
        elif not isinstance(target, ast.Name):
            fail(node, "this assignment is not understood")
        elif script_name(node.value) in ("alloc_buffer", "sblock_alloc_buffer", "decl_buffer"):
            self.buffer(node, target.id, bind(node.value, _BUFFER, 1), False)
        else:
            self.let(node, target, self.value(node.value))

    def annotated(self, node: ast.AnnAssign) -> None:
        note = node.annotation.slice if isinstance(node.annotation, ast.Subscript) else node.annotation
        dtype = core.parse_dtype(script_name(note))
        if dtype is None or node.value is None or ast.unparse(node.annotation) != f"T.let[{ast.unparse(note)}]":
            fail(node, "this declaration is not understood")
        self.let(node, node.target, self.typed(node, self.read(node.value), dtype))

    def let(self, node: ast.stmt, target: ast.expr, value: Expr) -> None:
        """The name stands for the value, which is evaluated here."""
        if core.has(value, "undef"):
            fail(node, "a let of an undefined value is not understood")
        self.stands_for(target, value)
        if core.has(value, "load"):
            self.lets.append((node, value, len(self.statements)))
        else:
            self.arithmetic(node, value)

    def arithmetic(self, node: ast.stmt, value: Expr) -> None:
        """Keep the arithmetic of a value, which the program evaluates here whether or not it uses it."""
        for part in core.walk(value):
            if core.is_integer(part[1]):
                self.evaluated(node, part)

    def check_let(self, node: ast.stmt, value: Expr, inside: Sequence[core.Statement]) -> None:
        """A value that was loaded stands at each use instead of its name. That is the same where nothing that it loads
        is written before a use; and, so that it has the faults that it has here, a store that is executed whenever it
        is evaluated here evaluates it.
        """
        read = {self.memory(load[2]) for load in core.loads_of(value)}
        for k, s in enumerate(inside):
            later = inside[k + 1 :] if s.loops == self.loops else inside
            is_changed = s.kind == "store" and self.memory(s.buffer) in read
            if is_changed and any(value in core.walk(text) for other in later for text in other.texts):
                fail(node, "a let loads what is changed before it is used")
        depth, count = len(self.loops), len(self.guards)
        for s in (s for s in inside if s.kind == "store"):
            texts = s.guards[count : count + 1] or s.texts
            is_run = all(loop.extent[0] == "const" and loop.extent[2] > 0 for loop in s.loops[depth:])
            if is_run and value in always_evaluated(texts):
                return
        fail(node, "a let loads what is not always used")

    def stands_for(self, target: ast.expr, value: Expr) -> None:
        if not isinstance(target, ast.Name) or target.id in self.scope:
            fail(target, "a name that is not bound here is expected")
        self.scope[target.id] = limited(target, value, *_SUBSTITUTED)

    def evaluated(self, node: ast.stmt, value: Expr, domain: tuple[Expr, Expr] | None = None) -> None:
        """Keep a value that the program evaluates here, where it must be in a domain or at least have no fault."""
        is_loop = any(value == variable(x) and domain in (None, (x.start, x.extent)) for x in self.loops)
        if not is_loop and (value[0] != "const" or domain is not None):  # else nothing is asked
            domain = domain if domain is not None else (value, ("const", value[1], 1))
            self.insides.append(core.evaluated_at(self.loops, self.guards, (value, *domain), node.lineno))

    def expression(self, node: ast.Expr) -> None:
        call: ast.expr = node.value
        if script_name(call) == "evaluate":
            call = bind(call, ("value",), 1)["value"]
            if script_name(call) != "assume":
                value = self.value(call)
                if core.has(value, "load", "undef"):
                    fail(node, "a value that may change is evaluated")
                self.arithmetic(node, value)
                return
        if script_name(call) != "assume":
            fail(node, f"`T.{script_name(call)[:40]}` is not understood as a statement")
        text = bind(call, ("condition",), 1)["condition"]
        condition = self.value(text)
        if condition[1] != "bool":
            fail(node, "an assumption is a truth value")
        self.check_identities(text, condition)
        self.add(node, None, condition)

    def check_identities(self, text: ast.expr, condition: Expr) -> None:
        """In an assumption `A[i] == v` means that one value is the other, under `and` and `or` alone, and where the
        load stands there. Any other `==` of floats has 0 equal to -0, which is another assumption, and is rejected.
        """
        names = {node.id for node in ast.walk(text) if isinstance(node, ast.Name)}
        named = any(isinstance(e, tuple) and core.has(e, "load") for e in map(self.scope.get, names))
        leaves = [condition]
        while leaves:
            e = leaves.pop()
            if e[0] in ("and", "or"):
                leaves += core.parts(e)
                continue
            asked = core.parts(e) if e[0] == "==" and "load" in (e[2][0], e[3][0]) and not named else [e]
            if any(x[0] == "==" and core.is_float(x[2][1]) for part in asked for x in core.walk(part)):
                fail(text, "an assumption that floats are equal, and not that an element is a value")

    def loop(self, node: ast.For) -> None:
        targets, heads = entries_of(node.target), self.heads(node.iter)
        if node.orelse or len(targets) != len(heads):
            fail(node, "this loop is not understood")
        if len(self.loops) + len(heads) > _NESTED or len(self.written) > _LOOPS_IN_ALL:
            fail(node, "there are too many loops")
        loops, times, scope, since = self.loops, self.times, dict(self.scope), len(self.statements)
        for target, (kind, start, extent) in zip(targets, heads, strict=True):
            name = target.id if isinstance(target, ast.Name) else ""
            var, number = name, 0
            while var in self.written or var in self.symbols:
                var, number = f"{name}_{number + 1}", number + 1
            self.stands_for(target, ("var", extent[1], var))
            self.written[var] = name
            self.loops, self.times = (*self.loops, Loop(var, extent[1], start, extent, kind)), [*self.times, 0]
        self.body(node.body)
        self.loops, self.times, self.scope = loops, times, scope
        self.check_guarded(node, [], since)
        self.times[-1] += 1

    def heads(self, node: ast.expr) -> list[tuple[str, Expr, Expr]]:
        """Kind, start and extent of each loop that a `for` stands for."""
        plain = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"
        name = "range" if plain else script_name(node)
        if isinstance(node, ast.Call) and name == "grid" and not node.keywords:
            return [("serial", *self.domain(node, (e,))[:2]) for e in node.args]
        if name not in _LOOPS:
            fail(node, f"a loop over `{name[:40]}` is not understood")
        bound = bind(node, ("start", "stop") if plain else ("start", "stop", "annotations"), 1)
        bound.pop("annotations", None)
        return [(_LOOPS[name], *self.domain(node, list(bound.values()))[:2])]

    def domain(self, node: ast.AST, limits: Sequence[ast.expr], binding: ast.expr | None = None) -> Domain:
        """Start and extent of `(extent,)` or `(start, stop)`, and what a block binds to it, all of one type."""
        if len(limits) not in (1, 2):
            fail(node, "a domain is an extent, or a start and a stop")
        first = limits[0] if len(limits) == 2 else ast.Constant(0)
        joined = self.joined(node, *map(self.read, (limits[-1], first, binding or limits[-1])))
        stop, start, value = (self.whole(node, each) for each in joined)
        extent = difference(start, stop)
        if extent[0] == "const" and extent[2] < 0:
            fail(node, "a domain of less than no elements")
        return start, extent, value

    def branch(self, node: ast.If) -> None:
        condition, guards, since = self.condition(node.test), self.guards, len(self.statements)
        for guard, nodes in ((condition, node.body), (("not", "bool", condition), node.orelse)):
            self.guards = (*guards, guard)
            self.body(nodes)
        self.guards = guards
        self.check_guarded(node, [condition], since)

    def check_guarded(self, node: ast.AST, conditions: list[Expr], since: int) -> None:
        """Reject a body without statements, at which its bounds and conditions would show; and one that changes what
        its conditions have read, as they are evaluated once but stand at each statement.
        """
        read = {self.memory(load[2]) for load in core.loads_of(*conditions)}
        inside = self.statements[since:]
        alone = len(inside) == 1 and inside[0].loops == self.loops
        if not inside:
            fail(node, "a body that does nothing is not understood")
        if not alone and any(s.kind == "store" and self.memory(s.buffer) in read for s in inside):
            fail(node, "a condition reads what is changed under it")

    def memory(self, buffer: str) -> str:
        """The data of a buffer, the same for all parameters that may overlap."""
        data = self.buffers[buffer].data
        return "" if self.buffers[data.removesuffix("_data")].is_parameter and not self.noalias else data

    # ---- blocks

    def block(self, node: ast.With) -> None:
        item, scope, guards, since = node.items[0], dict(self.scope), self.guards, len(self.statements)
        if len(node.items) != 1 or item.optional_vars or script_name(item.context_expr) not in ("block", "sblock"):
            fail(node, "only blocks are understood after `with`")
        bind(item.context_expr, ("name",), 0)
        axes: list[Axis] = []
        where: list[Expr] = []
        init: list[ast.stmt] = []
        body: list[ast.stmt] = []
        for part in node.body:
            name = script_name(part.value) if isinstance(part, ast.Assign | ast.Expr) else ""
            if isinstance(part, ast.With) and list(map(ast.unparse, part.items)) == ["T.init()"] and not body + init:
                init = part.body
            elif isinstance(part, ast.Assign) and name.startswith("axis.") and not body:
                axes += self.axes(part, name.removeprefix("axis."))
            elif isinstance(part, ast.Expr) and name == "where" and not body + where:
                where.append(self.condition(bind(part.value, ("predicate",), 1)["predicate"]))
            elif name not in _REMARKS or body:
                body.append(part)
        for value in [axis[3] for axis in axes if where]:
            self.evaluated(node, value)  # before it is asked where the block runs
        self.guards = inside = (*guards, *where)
        for _, start, extent, value in axes:
            self.evaluated(node, value, (start, extent))
        self.guards = (*inside, *(("==", "bool", value, start) for kind, start, _, value in axes if kind == "R"))
        self.body(init)
        self.guards = inside
        self.body(body)
        self.scope, self.guards = scope, guards
        self.check_guarded(node, where, since)

    def axes(self, node: ast.Assign, word: str) -> list[Axis]:
        """Kind, start, extent and value of the variables of a block that one statement binds."""
        if word == "remap":
            bound = bind(node.value, ("kinds", "bindings"), 2)
            kinds = list(literal(bound["kinds"], str))
            found = [self.domain_of(binding) for binding in entries_of(bound["bindings"])]
        else:
            bound = bind(node.value, ("dom", "binding"), 2)
            kinds, found = [_AXES.get(word, "")], [self.domain(node, entries_of(bound["dom"]), bound["binding"])]
        targets = entries_of(node.targets[0])
        if not len(kinds) == len(found) == len(targets) or not set(kinds) <= {"S", "R", "O"} or len(node.targets) != 1:
            fail(node, "these axes are not understood")
        for target, (_, _, value) in zip(targets, found, strict=True):
            self.stands_for(target, value)
        return [(kind, *domain) for kind, domain in zip(kinds, found, strict=True)]

    def domain_of(self, node: ast.expr) -> Domain:
        """The domain of a loop, for a variable of a block that is the loop's."""
        value = self.read(node)
        found = [(loop.start, loop.extent, value) for loop in self.loops if value == variable(loop)]
        return found[0] if found else fail(node, "T.axis.remap takes loop variables")


def always_evaluated(texts: Sequence[Expr]) -> Iterator[Expr]:
    """What is evaluated whenever these expressions are."""
    stack = list(texts)
    while stack:
        yield (e := stack.pop())
        stack += [e[2]] if e[0] == "if" else core.parts(e)


def is_call(node: ast.stmt, name: str) -> bool:
    """Whether a statement is the call of that function of the script."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and script_name(node.value) == name


_STATEMENTS: Mapping[type[ast.stmt], Callable[[Functions, Any], None]] = {
    ast.Assign: Functions.assign, ast.AnnAssign: Functions.annotated, ast.Expr: Functions.expression,
    ast.For: Functions.loop, ast.If: Functions.branch, ast.With: Functions.block, ast.Pass: lambda reader, node: None,
}  # fmt: skip

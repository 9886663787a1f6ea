"""Python's statements -> IR statements, by a table of syntax nodes and one of the script's own statements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from layoutproof.ir import codes
from layoutproof.ir.buffer import access_type
from layoutproof.ir.diagnostic import counted
from layoutproof.ir.dtype import HANDLE, DType
from layoutproof.ir.expr import Binary, Expr, IntImm, Var
from layoutproof.ir.intrinsics import Assume, OpaqueCall
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.script.buffer_methods import METHODS, is_vector_store, read_allocating, read_vector_store, read_view
from layoutproof.ir.script.declarations import ALLOCATIONS, Environment, Scoped, read_decl
from layoutproof.ir.script.early_exits import Exits, exits_for, read_exit, read_return, read_while, without_continue
from layoutproof.ir.script.expressions import ExpressionReader, dotted_name, syntax_name
from layoutproof.ir.script.functions import FUNCTIONS, SCRIPT_BUILTINS, TYPES
from layoutproof.ir.script.lets_and_attributes import read_attr, read_let
from layoutproof.ir.script.loops_and_blocks import HEADER_NAMES, LOOP_NAMES, BlockReader, LoopHead, read_grid, read_loop
from layoutproof.ir.script.operands import Value
from layoutproof.ir.script.parsing import Text, bind, did_you_mean, parse_dtype, read_dtype
from layoutproof.ir.script.threads import ENV_THREAD, LAUNCH, ThreadReader
from layoutproof.ir.stmt import BufferStore, Evaluate, For, IfThenElse, Let, Stmt, seq
from layoutproof.ir.visit import fresh

Hook = Callable[[ast.stmt, bool], bool]


class StatementReader:
    """Reads the statements of one function. `block_allocations` are the dialect's names of block-level allocation."""

    def __init__(self, text: Text, namespaces: Collection[str], block_allocations: frozenset[str]) -> None:
        self.text = text
        self.env = Environment(text)
        self.namespaces = namespaces
        self.block_allocations = block_allocations
        self.exprs = ExpressionReader(text, self.env, {**FUNCTIONS, **METHODS}, namespaces, SCRIPT_BUILTINS)
        self.exits: list[Exits | None] = []
        self.threads = ThreadReader(self.exprs, self.env)

    # ---- bodies

    def body(self, nodes: Sequence[ast.stmt], hook: Hook | None = None) -> Stmt:
        """The statements as one. What follows a let or an allocation becomes its body.

        `hook` may take a statement for itself; it is told whether a let or an allocation is open before it.
        """
        done: list[Stmt] = []
        open_: list[tuple[list[Stmt], Scoped]] = []
        position = 0
        with ExitStack() as frames:
            while position < len(nodes):
                node = nodes[position]
                position += 1
                if self.declare(node) or (hook is not None and hook(node, bool(open_))):
                    continue
                if isinstance(node, ast.While):
                    done.append(read_while(self, node, done))
                    continue
                result = self._statement(node, nodes[position] if position < len(nodes) else None)
                if isinstance(result, Scoped):
                    frames.enter_context(self.env.frame(node, 0))
                    result.bind(self.env)
                    open_.append((done, result))
                    done = []
                    position += result.consumed
                else:
                    done.append(result)
                    goes_on = self.exits[-1].go_on(node) if self.exits and self.exits[-1] is not None else None
                    if goes_on is not None and position < len(nodes):
                        rest = self.nested(nodes[position:], node)
                        done.append(self.exprs.make(node, IfThenElse, goes_on, rest))
                        break
        statement = seq(*done)
        for before, scoped in reversed(open_):
            statement = seq(*before, scoped.close(statement))
        return statement

    def _statement(self, node: ast.stmt, following: ast.stmt | None) -> Stmt | Scoped:
        handler = _STATEMENTS.get(type(node))
        if handler is None:
            raise self.text.fail(codes.UNSUPPORTED, f"{syntax_name(node)} is not supported", node)
        return handler(self, node, following)

    def nested(self, nodes: Sequence[ast.stmt], owner: ast.AST) -> Stmt:
        """The statements as one, in a frame of their own."""
        with self.env.frame(owner):
            return self.body(nodes)

    # ---- calls through the script's namespace

    def script_call(self, node: ast.expr) -> tuple[str, ast.Call] | None:
        """`("axis.remap", call)` for `T.axis.remap(...)`; None for anything else."""
        if not isinstance(node, ast.Call):
            return None
        name = self.script_name(node.func)
        return (name, node) if name is not None else None

    def script_name(self, node: ast.expr) -> str | None:
        """What stands behind `T.`; None for a name of another kind."""
        path = dotted_name(node)
        for length in range(1, len(path) if path is not None else 0):
            assert path is not None
            if ".".join(path[:length]) in self.namespaces:
                return ".".join(path[length:])
        return None

    # ---- declarations of variables

    def declare(self, node: ast.stmt) -> bool:
        """Bind the variables of `n = T.int32()` or `n, m = T.int32(), T.int32()`; False for other statements."""
        found = self.declarations(node)
        for name, dtype, target in found:
            if self.env.lookup(name) != Var(name, dtype):  # a signature may have brought it in already
                self.env.bind(name, Var(name, dtype, span=self.text.span(target)), target)
        return bool(found)

    def declarations(self, node: ast.stmt) -> list[tuple[str, DType, ast.expr]]:
        """Name, type and place of each variable that a statement declares; empty for other statements."""
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            return []
        target, value = node.targets[0], node.value
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        values = value.elts if isinstance(value, ast.Tuple) else [value]
        types = [self._declared_type(v) for v in values]
        if len(targets) != len(values) or not types or any(t is None for t in types):
            return []
        if not all(isinstance(t, ast.Name) for t in targets):
            return []
        return [(t.id, d, t) for t, d in zip(targets, types, strict=True) if isinstance(t, ast.Name) and d is not None]

    def _declared_type(self, node: ast.expr) -> DType | None:
        found = self.script_call(node)
        if found is None:
            return None
        name, call = found
        if name == "var":
            bound = bind(self.text, call, "T.var", ("dtype",), 0)
            return read_dtype(self.text, bound["dtype"]) if bound else parse_dtype(self.text, call, "int32")
        if name == "handle":
            return HANDLE
        if call.args or call.keywords:
            return None
        return parse_dtype(self.text, call, name) if name in _TYPE_NAMES else None

    # ---- statements

    def assign(self, node: ast.Assign, following: ast.stmt | None) -> Stmt | Scoped:
        """A store, an allocation, an alias or a let."""
        if len(node.targets) != 1:
            raise self.text.fail(codes.UNSUPPORTED, "an assignment to several names at once is not supported", node)
        target = node.targets[0]
        if isinstance(target, ast.Subscript):
            return self.store(node, target, self.exprs.read(node.value))
        if not isinstance(target, ast.Name):
            raise self.text.fail(codes.UNSUPPORTED, f"an assignment to {syntax_name(target)} is not supported", target)
        found = self.script_call(node.value)
        named = read_view(self, node, target) if found is None else self._named(node, target, *found, following)
        return named if named is not None else self.let(node, target, self.exprs.expr(node.value))

    def _named(
        self, node: ast.Assign, target: ast.Name, name: str, call: ast.Call, following: ast.stmt | None
    ) -> Stmt | Scoped | None:
        """What a call of the script gives a name to, apart from values."""
        if name == ENV_THREAD:
            self.threads.declare(target, call)
            return seq()
        if name == LAUNCH:
            return self.threads.launch(node, call, target)
        if name in ("decl_buffer", "buffer_decl", "Buffer", "buffer"):
            return read_decl(self.exprs, self.env, node, target, call, f"T.{name}")
        if self._allocates(name):
            return read_allocating(self, node, target, call, name, following)
        if name in self.block_allocations or name.startswith("axis.") or name == "match_buffer":
            raise self.misplaced(call, name)
        if name == "bind":
            return self.let(node, target, self.exprs.expr(bind(self.text, call, "T.bind", ("value",), 1)["value"]))
        if name == "meta_var":
            value = self.exprs.named(bind(self.text, call, "T.meta_var", ("value",), 1)["value"])
            return Scoped(lambda env: env.bind(target.id, value, target), lambda body: body)
        return None

    def _allocates(self, name: str) -> bool:
        """Whether a call is a statement that allocates: `T.alloc_buffer` is one in the current dialect only."""
        return name in ALLOCATIONS and name not in self.block_allocations

    def let(self, node: ast.AST, target: ast.Name, value: Expr) -> Scoped:
        """A let of a value, for what follows."""
        var = Var(target.id, value.dtype, span=self.text.span(target))
        return Scoped(
            lambda env: env.bind(target.id, var, target), lambda body: self.exprs.make(node, Let, var, value, body)
        )

    def annotated(self, node: ast.AnnAssign, following: ast.stmt | None) -> Stmt | Scoped:
        """`x: T.int32 = value` and `x: T.let[T.int32] = value`."""
        if not isinstance(node.target, ast.Name):
            raise self.text.fail(codes.UNSUPPORTED, "a let binds a name", node.target)
        if node.value is None:
            message, help = f"`{node.target.id}` is given no value", "a symbolic size is n = T.int32()"
            raise self.text.fail(codes.UNSUPPORTED, message, node, help=help)
        dtype = self._let_type(node.annotation)
        source = node.value
        found = self.script_call(source)
        if found is not None and found[0] == "bind":
            source = bind(self.text, found[1], "T.bind", ("value",), 1)["value"]
        value = self.exprs.expr(source, dtype)
        if dtype is not None and value.dtype.lanes == dtype.lanes and not isinstance(node.annotation, ast.Subscript):
            value = self.exprs.stored(value, dtype)  # `x: T.int32 = ...` is a cell, and converts what is stored there
        if dtype is not None and value.dtype != dtype:
            message = f"`{node.target.id}` is declared {dtype}, its value has type {value.dtype}"
            raise self.text.fail(codes.WRONG_TYPE, message, node.value)
        return self.let(node, node.target, value)

    def _let_type(self, node: ast.expr) -> DType | None:
        if isinstance(node, ast.Subscript) and self.script_name(node.value) == "let":
            return self._let_type(node.slice)
        if isinstance(node, ast.Call) and (not node.args or self.script_name(node.func) == "handle"):
            node = node.func  # T.int32(), T.handle("int32"): buffers that use a pointer have the type it points to
        name = self.script_name(node)
        if name == "let":
            return None
        if name is None:
            raise self.text.fail(codes.UNSUPPORTED, "a type such as T.int32 is expected", node)
        return parse_dtype(self.text, node, name)

    def augmented(self, node: ast.AugAssign, following: ast.stmt | None) -> Stmt:
        """`A[i] += x`, as `A[i] = A[i] + x`."""
        if not isinstance(node.target, ast.Subscript):
            raise self.text.fail(codes.UNSUPPORTED, "only an element of a buffer can be changed", node.target)
        load = ast.copy_location(ast.Subscript(node.target.value, node.target.slice, ast.Load()), node.target)
        value = self.exprs.read(ast.copy_location(ast.BinOp(load, node.op, node.value), node))
        return self.store(node, node.target, value)

    def store(self, node: ast.AST, target: ast.Subscript, value: Value) -> Stmt:
        """`A[i] = value`, converted to the type of the element."""
        buffer = self.exprs.buffer(target.value)
        indices = self.exprs.indices(target, buffer)
        stored = self.exprs.stored(value, access_type(buffer, indices))
        return self.exprs.make(node, BufferStore, buffer, indices, stored, code=codes.BUFFER_USE)

    def loop(self, node: ast.For, following: ast.stmt | None) -> Stmt:
        """A `for` over `range`, `T.serial`, `T.grid`, ..."""
        if node.orelse:
            raise self.text.fail(codes.UNSUPPORTED, "`else` after a loop is not supported", node.orelse[0])
        heads = self._loop_heads(node.iter)
        targets = node.target.elts if isinstance(node.target, ast.Tuple | ast.List) else [node.target]
        if len(targets) != len(heads):
            variables = counted(len(targets), "loop variable", "loop variables")
            message = f"{variables} for {counted(len(heads), 'extent', 'extents')}"
            raise self.text.fail(codes.WRONG_ARGUMENTS, message, node.target)
        with self.env.frame(node, len(heads)):
            names: list[Var] = []
            steps: list[tuple[Var, Expr]] = []
            for target, head in zip(targets, heads, strict=True):
                if not isinstance(target, ast.Name):
                    raise self.text.fail(codes.UNSUPPORTED, "a loop variable is a name", target)
                var = Var(target.id, head.domain.extent.dtype, span=self.text.span(target))
                if head.step == 1:
                    self.env.bind(target.id, var, target, loop=head.domain)
                    names.append(var)
                    continue
                names.append(self._counted(target, var, head, steps))
            name = "_".join(var.name for var in names)
            exits = exits_for(self, node, name, [head.kind for head in heads], {*self.env.names()})
            result = exits.iteration(self.left_by(exits, node))
        for var, value in reversed(steps):
            result = self.exprs.make(node, Let, var, value, result)
        for var, head in reversed(list(zip(names, heads, strict=True))):
            start = head.domain.start if head.step == 1 else IntImm(0, var.dtype)
            result = self.exprs.make(
                node, For, var, start, head.domain.extent, head.kind, result, head.thread, head.annotations
            )
        return exits.whole(result)

    def left_by(self, exits: Exits, node: ast.For | ast.While) -> Stmt:
        """The body of a loop that these flags leave."""
        self.exits.append(exits)
        try:
            return self.body(without_continue(node.body))
        finally:
            self.exits.pop()

    def exit(self, node: ast.Break | ast.Continue, following: ast.stmt | None) -> Stmt:
        """`break` and `continue`."""
        return read_exit(self, node)

    def _counted(self, target: ast.Name, var: Var, head: LoopHead, steps: list[tuple[Var, Expr]]) -> Var:
        """The loop variable of a range with a step: it counts, and a let gives the name its value."""
        counter = Var(fresh(f"{target.id}_step", self.env.names()), var.dtype, span=var.span)
        self.env.bind(counter.name, counter, target)
        self.env.bind(target.id, var, target)
        offset = self.exprs.make(target, Binary, BinaryOp.MUL, counter, IntImm(head.step, var.dtype))
        from_zero = head.domain.start == IntImm(0, var.dtype)
        steps.append(
            (var, offset if from_zero else self.exprs.make(target, Binary, BinaryOp.ADD, head.domain.start, offset))
        )
        return counter

    def _loop_heads(self, node: ast.expr) -> list[LoopHead]:
        if isinstance(node, ast.Call):
            name = self.script_name(node.func)
            shown = f"T.{name}"
            if isinstance(node.func, ast.Name) and node.func.id == "range":
                name = shown = "range"
            if name == "grid":
                return read_grid(self.exprs, node)
            if name is not None and name in LOOP_NAMES:
                return [read_loop(self.exprs, node, name, shown)]
            if name is not None:
                message, help = f"a loop over `{shown}` is not known", did_you_mean(name, LOOP_NAMES, "T.")
                raise self.text.fail(codes.UNKNOWN_FUNCTION, message, node.func, help=help)
        message = "a loop runs over range(...), T.serial(...), T.grid(...) and the like"
        raise self.text.fail(codes.UNSUPPORTED, message, node)

    def branch(self, node: ast.If, following: ast.stmt | None) -> Stmt:
        """`if`, `elif`, `else`."""
        condition = self.exprs.condition(node.test, as_c=True)
        then = self.nested(node.body, node)
        otherwise = self.nested(node.orelse, node) if node.orelse else None
        return self.exprs.make(node, IfThenElse, condition, then, otherwise)

    def with_(self, node: ast.With, following: ast.stmt | None) -> Stmt:
        """Blocks, and what holds for the statements inside: attributes, lets, allocations."""
        if len(node.items) != 1:
            raise self.text.fail(codes.UNSUPPORTED, "one item after `with` is expected", node.items[1].context_expr)
        item = node.items[0]
        found = self.script_call(item.context_expr)
        if found is None:
            raise self.text.fail(codes.UNSUPPORTED, "`with` takes T.block(...) and the like", item.context_expr)
        name, call = found
        if name in ("block", "sblock"):
            if item.optional_vars is not None:
                raise self.text.fail(codes.UNSUPPORTED, "a block is not given a name by `as`", item.optional_vars)
            self.exits.append(None)
            try:
                return BlockReader(self, node, call, f"T.{name}").read()
            finally:
                self.exits.pop()
        if name == "init":
            message = "T.init stands directly in its block, after its axes and before its body"
            raise self.text.fail(codes.MISPLACED, message, item.context_expr)
        scoped = self._with_scoped(node, item, name, call)
        with self.env.frame(node):
            scoped.bind(self.env)
            return scoped.close(self.body(node.body[scoped.consumed :]))

    def _with_scoped(self, node: ast.With, item: ast.withitem, name: str, call: ast.Call) -> Scoped:
        if name == "attr":
            return read_attr(self, node, call)
        if name in ("let", "LetStmt"):
            return read_let(self, node, item, name, call)
        target = item.optional_vars
        if name == LAUNCH:
            return self.threads.launch(node, call, target if isinstance(target, ast.Name) else None)
        if isinstance(target, ast.Name) and (self._allocates(name) or name in ("decl_buffer", "buffer_decl")):
            if self._allocates(name):
                return read_allocating(self, node, target, call, name, node.body[0])
            return read_decl(self.exprs, self.env, node, target, call, f"T.{name}")
        known = ("block", "sblock", "init", "attr", "let", "LetStmt", "allocate", "decl_buffer")
        help = did_you_mean(name, known, "T.")
        raise self.text.fail(codes.UNKNOWN_FUNCTION, f"`with T.{name}` is not known", call.func, help=help)

    def expression(self, node: ast.Expr, following: ast.stmt | None) -> Stmt | Scoped:
        """`T.evaluate(...)`, `T.assume(...)`, an opaque call, `T.attr(...)` for the rest of the body."""
        found = self.script_call(node.value)
        if found is not None:
            name, call = found
            if name == "attr":
                return read_attr(self, node, call)
            if name in HEADER_NAMES or name in ("func_attr", "init"):
                raise self.misplaced(call, name)
            if name == "buffer_store":
                return self._buffer_store(node, call)
            if name == LAUNCH:
                return self.threads.launch(node, call, None)
            if name == "evaluate":
                bound = bind(self.text, call, "T.evaluate", ("value",), 1)
                return self.exprs.make(node, Evaluate, self.exprs.expr(bound["value"]))
        if isinstance(node.value, ast.Call) and is_vector_store(node.value):
            return read_vector_store(self, node, node.value)
        value = self.exprs.read(node.value)
        if isinstance(value, Assume | OpaqueCall):
            return self.exprs.make(node, Evaluate, value)
        message = "an expression whose value is not used"
        raise self.text.fail(codes.UNSUPPORTED, message, node, help="T.evaluate(...) keeps it")

    def _buffer_store(self, node: ast.Expr, call: ast.Call) -> Stmt:
        bound = bind(self.text, call, "T.buffer_store", ("buffer", "value", "indices"), 3)
        target = ast.copy_location(ast.Subscript(bound["buffer"], _as_tuple(bound["indices"]), ast.Store()), call)
        return self.store(node, target, self.exprs.read(bound["value"]))

    def misplaced(self, call: ast.Call, name: str) -> Exception:
        """The error for a statement that belongs to the start of a function or block."""
        where = "of a block"
        if name == "match_buffer" or name in self.block_allocations:
            where = "of the function or a block"
        elif name == "func_attr":
            where = "of the function"
        message = f"T.{name} stands at the start {where}, before its other statements"
        return self.text.fail(codes.MISPLACED, message, call)

    def pass_(self, node: ast.Pass, following: ast.stmt | None) -> Stmt:
        """Nothing."""
        return seq()

    def assertion(self, node: ast.Assert, following: ast.stmt | None) -> Stmt:
        """`assert A[0].dtype == "float32x4"`: decided here, and an error when false. Others are not supported."""
        test = node.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
            left, right = test.left, test.comparators[0]
            if isinstance(left, ast.Attribute) and left.attr == "dtype":
                wanted = read_dtype(self.text, right)
                actual = self.exprs.expr(left.value).dtype
                if actual != wanted:
                    raise self.text.fail(codes.ASSERTION, f"the assertion is false: the type is {actual}", node)
                return seq()
        message = 'only assertions about types, `assert A[0].dtype == "float32"`, are supported'
        raise self.text.fail(codes.UNSUPPORTED, message, node)


def _as_tuple(node: ast.expr) -> ast.expr:
    return ast.copy_location(ast.Tuple(node.elts, ast.Load()), node) if isinstance(node, ast.List) else node


_TYPE_NAMES = frozenset(str(dtype) for dtype in TYPES)

_STATEMENTS: Mapping[type[ast.stmt], Callable[[StatementReader, Any, ast.stmt | None], Stmt | Scoped]] = {
    ast.Assign: StatementReader.assign,
    ast.AnnAssign: StatementReader.annotated,
    ast.AugAssign: StatementReader.augmented,
    ast.For: StatementReader.loop,
    ast.If: StatementReader.branch,
    ast.With: StatementReader.with_,
    ast.Expr: StatementReader.expression,
    ast.Pass: StatementReader.pass_,
    ast.Assert: StatementReader.assertion,
    ast.Break: StatementReader.exit,
    ast.Continue: StatementReader.exit,
    ast.Return: read_return,
}

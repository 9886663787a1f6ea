"""Thread axes that are declared apart from loops, and how a reduction over threads joins values.

`tx = T.env_thread("threadIdx.x")` names an axis, `T.launch_thread(tx, 32)` gives it its number of threads for the rest
of the body, `tx = T.launch_thread("threadIdx.x", 32)` does both. Each is a loop that is bound to the axis.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from contextlib import AbstractContextManager

from layoutproof.ir import codes
from layoutproof.ir.expr import Expr, IntImm, Var
from layoutproof.ir.intrinsics import Reducer
from layoutproof.ir.script.declarations import Environment, Scoped
from layoutproof.ir.script.expressions import ExpressionReader
from layoutproof.ir.script.parsing import bind, read_list, read_string
from layoutproof.ir.stmt import For, ForKind, Stmt

ENV_THREAD = "env_thread"
LAUNCH = "launch_thread"
REDUCER = "comm_reducer"


class ThreadReader:
    """Reads declarations of thread axes in one function."""

    def __init__(self, reader: ExpressionReader, env: Environment) -> None:
        self.reader = reader
        self.env = env
        self.text = reader.text
        self._tags: dict[str, str] = {}

    def declare(self, target: ast.Name, call: ast.Call) -> None:
        """`tx = T.env_thread("threadIdx.x")`."""
        tag = bind(self.text, call, f"T.{ENV_THREAD}", ("thread_tag", "dtype"), 1)["thread_tag"]
        self._tags[target.id] = read_string(self.text, tag, "a thread axis")

    def launch(self, node: ast.stmt, call: ast.Call, target: ast.Name | None) -> Scoped:
        """`T.launch_thread(axis, extent)`; `target` is the name on its left, if there is one."""
        bound = bind(self.text, call, f"T.{LAUNCH}", ("thread", "extent"), 2)
        axis, extent = bound["thread"], self.reader.integer(bound["extent"], "the number of threads")
        if isinstance(axis, ast.Constant) and isinstance(axis.value, str):
            tag, name = axis.value, target
        else:
            name = axis if isinstance(axis, ast.Name) else None
            tag = self._tags.get(name.id, "") if name is not None else ""
            if not tag or target is not None:
                help = (
                    'tx = T.env_thread("threadIdx.x") declares one; tx = T.launch_thread("threadIdx.x", 32) needs none'
                )
                message = f"T.{LAUNCH} takes a name that T.{ENV_THREAD} declared, or gives one to an axis in quotes"
                raise self.text.fail(codes.WRONG_ARGUMENTS, message, axis, help=help)
        shown = name.id if name is not None else tag.replace(".", "_")
        var = Var(shown, extent.dtype, span=self.text.span(name if name is not None else axis))

        def bind_name(env: Environment) -> None:
            env.bind(shown, var, name if name is not None else axis)

        def close(body: Stmt) -> Stmt:
            start = IntImm(0, extent.dtype)
            return self.reader.make(node, For, var, start, extent, ForKind.THREAD_BINDING, body, tag)

        return Scoped(bind_name, close)

    def reducer(self, call: ast.Call, frame: Callable[[ast.AST, int], AbstractContextManager[None]]) -> Reducer:
        """`T.comm_reducer(lambda x, y: x + y, [T.float32(0)])`."""
        bound = bind(self.text, call, f"T.{REDUCER}", ("combiner", "identity"), 2)
        identities = tuple(self.reader.expr(e) for e in read_list(self.text, bound["identity"], "the identities"))
        joins = bound["combiner"]
        bodies = [joins.body] if isinstance(joins, ast.Lambda) else []
        if bodies and isinstance(bodies[0], ast.Tuple):
            bodies = bodies[0].elts
        if (
            not isinstance(joins, ast.Lambda)
            or len(joins.args.args) != 2 * len(identities)
            or len(bodies) != len(identities)
        ):
            message = f"T.{REDUCER} takes a lambda with two variables for each identity, and gives as many values"
            raise self.text.fail(codes.WRONG_ARGUMENTS, message, joins)
        types = [identity.dtype for identity in identities] * 2
        names = [Var(a.arg, t, span=self.text.span(a)) for a, t in zip(joins.args.args, types, strict=True)]
        with frame(call, 0):
            for argument, var in zip(joins.args.args, names, strict=True):
                self.env.bind(argument.arg, var, argument)
            results: tuple[Expr, ...] = tuple(
                self.reader.expr(body, identity.dtype) for body, identity in zip(bodies, identities, strict=True)
            )
        half = len(identities)
        return self.reader.make(call, Reducer, tuple(names[:half]), tuple(names[half:]), results, identities)

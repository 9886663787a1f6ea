"""The fast evaluator: a program as a generated Python function, made once and run with every check on."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType, TracebackType
from typing import Any

import numpy as np

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Ramp,
    Select,
    Var,
)
from layoutproof.ir.interp import runtime, write_expr, write_stmt
from layoutproof.ir.interp.fault import Fault, FaultKind, cannot_interpret
from layoutproof.ir.interp.generator import Facts, Generator, Operand, Site
from layoutproof.ir.interp.memory import Storage
from layoutproof.ir.interp.write_access import bind_memory, write_load
from layoutproof.ir.interp.write_block import write_block
from layoutproof.ir.intrinsics import Assume, Call, Limit, OpaqueCall, PointerCast, StringImm, Undef
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import (
    Allocate,
    AttrStmt,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    Let,
    Seq,
)


def _refuse_call(g: Generator, e: OpaqueCall, index: bool) -> list[Operand]:
    raise cannot_interpret(f"the call of {e.function}", e.span)


def _refuse_assume(g: Generator, e: Assume, index: bool) -> list[Operand]:
    raise cannot_interpret("an assumption inside an expression", e.span)


def _refuse_pointer(g: Generator, e: PointerCast | StringImm, index: bool) -> list[Operand]:
    raise cannot_interpret("a pointer or text as a value", e.span)


EXPRESSIONS: Mapping[type, Callable[..., list[Operand]]] = {
    IntImm: write_expr.write_int,
    FloatImm: write_expr.write_float,
    Limit: write_expr.write_limit,
    Var: write_expr.write_var,
    Binary: write_expr.write_binary,
    Compare: write_expr.write_compare,
    Logical: write_expr.write_logical,
    Not: write_expr.write_not,
    Select: write_expr.write_select,
    IfThenElseExpr: write_expr.write_choice,
    Cast: write_expr.write_cast,
    Ramp: write_expr.write_ramp,
    Broadcast: write_expr.write_broadcast,
    Call: write_expr.write_call,
    Undef: write_expr.write_undef,
    BufferLoad: write_load,
    OpaqueCall: _refuse_call,
    Assume: _refuse_assume,
    PointerCast: _refuse_pointer,
    StringImm: _refuse_pointer,
}

STATEMENTS: Mapping[type, Callable[..., None]] = {
    Seq: write_stmt.write_seq,
    For: write_stmt.write_for,
    IfThenElse: write_stmt.write_branch,
    Let: write_stmt.write_let,
    BufferStore: write_stmt.write_assignment,
    Allocate: write_stmt.write_allocate,
    DeclBuffer: write_stmt.write_declaration,
    Evaluate: write_stmt.write_evaluate,
    AttrStmt: write_stmt.write_attribute,
    Block: write_block,
}


@dataclass(frozen=True, slots=True)
class Compiled:
    """A generated program: its source (for reading), its code, the objects it mentions, and where each line comes from."""

    source: str
    code: CodeType
    objects: Mapping[str, object]
    sites: tuple[Site, ...]

    def run(
        self,
        storages: Mapping[str, Storage],
        floats: Mapping[str, float],
        limit: int,
        new_memory: Callable[[str, int, int, int], Storage],
        undef: Callable[[DType], int | float],
    ) -> int:
        """Run to the end; the iterations counted. Raises Fault, located, and LayoutproofError past `limit` iterations."""
        names = {
            **runtime.namespace(),
            **self.objects,
            "floats": floats,
            "new_memory": new_memory,
            "undef": undef,
            "r32": array("f", [0.0]),
            "r16": np.zeros(1, dtype=np.float16),
        }
        exec(self.code, names)
        program: Any = names["program"]
        try:
            with np.errstate(all="ignore"):
                return int(program(storages, limit))
        except Fault as fault:
            site, values = self._where(fault.__traceback__, program.__code__)
            raise fault.located(site.span, site.block, values) from None
        except Trap as trap:
            site, values = self._where(trap.__traceback__, program.__code__)
            raise Fault(FaultKind.TRAP, str(trap), span=site.span, block=site.block, values=values) from None

    def _where(self, trace: TracebackType | None, code: CodeType) -> tuple[Site, dict[str, object]]:
        """The site of the line that was running, and the variables in its scope."""
        while trace is not None and trace.tb_frame.f_code is not code:
            trace = trace.tb_next
        assert trace is not None
        site = self.sites[trace.tb_lineno - 2]
        values: dict[str, object] = {}
        for name, operands in site.names.items():
            found = [_value(o, trace.tb_frame.f_locals) for o in operands]
            values[name] = found[0] if len(found) == 1 else tuple(found)
        return site, values


def _value(operand: Operand, names: Mapping[str, object]) -> object:
    return names[operand.code] if operand.code in names else operand.constant


def compile_program(func: PrimFunc, facts: Facts) -> Compiled:
    """The generated program for one binding of symbols. Raises TooDeep where Python's compiler would refuse the nesting."""
    g = Generator(facts, EXPRESSIONS, STATEMENTS)
    for root in facts.sizes:
        bind_memory(g, root, f"storages[{root!r}]")
    g.owners.update(dict.fromkeys(facts.sizes))
    g.owners.update({g.root(b): b for b in func.buffers})
    g.emit("count = 0")
    g.stmt(func.body)
    g.emit("return count")
    source = "def program(storages, limit):\n" + "\n".join(g.lines) + "\n"
    return Compiled(source, compile(source, f"<{func.name}>", "exec"), g.objects, tuple(g.sites))

"""Statements of kernels with thread axes: phases by the work items of a group, with barriers between them."""

from __future__ import annotations

from dataclasses import dataclass, field

from layoutproof.ir.stmt import Allocate, For, IfThenElse, Stmt
from layoutproof.lowering.codegen.c_stmt import Writing, describe
from layoutproof.lowering.codegen.opencl.cl_groups import Group, bytes_of, is_phase, place_on, tag_of
from layoutproof.lowering.codegen.opencl.cl_stmt import OpenCLStatements
from layoutproof.lowering.codegen.writer import comment


@dataclass(slots=True, kw_only=True)
class GroupStatements(OpenCLStatements):
    """Writes the statements of one kernel. `declarations` are those of shared memory, which stand before all else."""

    group: Group
    declarations: list[str] = field(default_factory=list[str])
    _in_phase: bool = False

    def step(self, stmt: Stmt) -> Writing | None:
        """Write one statement, with the barrier before it, as a step that asks for what stands inside."""
        if self._in_phase:
            return OpenCLStatements.step(self, stmt)
        fence = self.group.barriers.get(id(stmt))
        if fence is not None:
            self.writer.line(f"barrier({fence});")
        match stmt:
            case _ if is_phase(stmt):
                self._phase(stmt)
            case Allocate(buffer=buffer) if buffer in self.group.shared:
                return self._declare_shared(stmt)
            case For() if tag_of(stmt) is None:
                self._plain_loop(stmt)
            case IfThenElse():
                self._uniform_branch(stmt)
            case _:
                return OpenCLStatements.step(self, stmt)
        return None

    def _phase(self, stmt: Stmt) -> None:
        """What all work items do, or the first along the axes on which it does not depend."""
        first = " && ".join(f"{place_on(tag)} == 0" for tag in self.group.left_out(stmt))
        with self.writer.nested(f"if ({first})" if first else ""), self.names.block():
            self._in_phase = True
            self.emit(stmt)
            self._in_phase = False

    def _uniform_branch(self, stmt: IfThenElse) -> None:
        """A branch that all work items of a group take alike: what stands in it may have barriers."""
        other = stmt.otherwise
        self._body(f"if ({self.expressions.emit_condition(stmt.condition).text})", stmt.then, "" if other else "}")
        if other is not None:
            self._body("} else", other)

    def _declare_shared(self, stmt: Allocate) -> Writing:
        buffer = stmt.buffer
        memory = self.expressions.memory.at(buffer)
        name = self.names.declare(buffer.name)
        self.expressions.pointers[buffer.data.name] = name
        elements = max(bytes_of(buffer) // buffer.dtype.element.bytes, 1)
        self.declarations.append(f"__local {memory.storage} {name}[{elements}]; {comment(describe(buffer))}")
        yield stmt.body

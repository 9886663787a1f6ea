"""Statements of kernels with thread axes: phases by the work items of a group, with barriers between them."""

from __future__ import annotations

from dataclasses import dataclass

from layoutproof.ir.stmt import Allocate, For, IfThenElse, Stmt
from layoutproof.lowering.codegen.c_stmt import Writing, describe, product_of
from layoutproof.lowering.codegen.opencl.cl_groups import Group, is_phase, place_on, tag_of
from layoutproof.lowering.codegen.opencl.cl_helpers import spell
from layoutproof.lowering.codegen.opencl.cl_stmt import OpenCLStatements
from layoutproof.lowering.codegen.writer import comment


@dataclass(slots=True, kw_only=True)
class GroupStatements(OpenCLStatements):
    """Writes the statements of one kernel, after `declare_shared`."""

    group: Group
    _in_phase: bool = False

    def declare_shared(self) -> tuple[list[str], list[str]]:
        """The declarations of shared memory, which stand before all statements, and the parameters of the kernel for
        that whose size the host sets.
        """
        declarations: list[str] = []
        parameters: list[str] = []
        for buffer in self.group.shared:
            storage = self.expressions.memory.at(buffer).storage
            name = self.names.declare(buffer.name)
            self.expressions.pointers[buffer.data.name] = name
            if buffer in self.group.sized_by_host:
                # Not `restrict`: a compiler could then move accesses over barriers, behind which others have stored.
                parameters.append(f"__local {spell(storage)} *{name}")
            else:
                elements = max(product_of(buffer.shape) or 0, 1) * buffer.dtype.lanes
                declarations.append(f"__local {storage} {name}[{elements}]; {comment(describe(buffer))}")
        return declarations, parameters

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
            case Allocate(body=body) if stmt.buffer in self.group.shared:
                return self._inside(body)
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

    @staticmethod
    def _inside(body: Stmt) -> Writing:
        """What stands inside shared memory, which is declared before all statements."""
        yield body

"""Readable OpenCL C 1.2 from a lowered, flattened function: kernels in launch order, and what a host needs.

The host checks before the first launch what the C function checks when it is called (bounds of extents, preconditions
of the proofs, memory that does not overlap). Undefined behaviour is not checked: the proof excludes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import Kind
from layoutproof.ir.expr import Expr, binary
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, For, IfThenElse, Stmt
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import free_variables
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.c import describe_parameter
from layoutproof.lowering.codegen.c_arithmetic import Integers
from layoutproof.lowering.codegen.c_check import Target, check_target
from layoutproof.lowering.codegen.c_helpers import helper_text
from layoutproof.lowering.codegen.c_stmt import Writing, describe, describe_extent, product_of
from layoutproof.lowering.codegen.c_types import CType, loaded, storage_type
from layoutproof.lowering.codegen.calling_convention import Bounds, MemoryMap, Parameter, parameters_of
from layoutproof.lowering.codegen.opencl.cl_expr import OpenCLExpressions
from layoutproof.lowering.codegen.opencl.cl_groups import Group, GroupItems, is_phase, make_group, place_on, tag_of
from layoutproof.lowering.codegen.opencl.cl_helpers import (
    READ_WRITE_IMAGES,
    Image,
    KernelArgument,
    Launch,
    LocalArgument,
    OpenCLNames,
    OpenCLSource,
    bytes_shared,
    find_opencl_helper,
    kernel_name,
    spell,
)
from layoutproof.lowering.codegen.opencl.cl_images import TEXTURE, find_images
from layoutproof.lowering.codegen.opencl.cl_plan import Piece, Plan, WorkItems, make_plan, usage_of
from layoutproof.lowering.codegen.opencl.cl_stmt import OpenCLStatements
from layoutproof.lowering.codegen.requirements import NOTHING_ASSUMED, Contract
from layoutproof.lowering.codegen.writer import Writer, comment, inside_comment


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


OPENCL = Target("the OpenCL target", assumptions=True, textures=TEXTURE)
DOUBLES = "cl_khr_fp64"
# What the text does without where a device has no doubles.
_WITH_DOUBLES = re.compile(r"^#if(?: LP_EXACT|def cl_khr_fp64)$.*?^#(?:else|endif)$", re.MULTILINE | re.DOTALL)


def emit_opencl(
    func: PrimFunc,
    *,
    index_bits: int | None = None,
    bounds: Bounds | None = None,
    notes: Mapping[str, str] | None = None,
    contract: Contract = NOTHING_ASSUMED,
) -> OpenCLSource:
    """The OpenCL C of a function without blocks, whose buffers have one axis, or two or three in scope
    `global.texture`.

    The arguments are those of `emit_c`; the host checks `bounds` and `contract`. Raises LayoutproofError: LP401 to
    LP403 for what the target cannot express, LP404 for a program nested too deeply, LP405 for a store to part of a
    texel.
    """
    remarks = notes if notes is not None else {}
    memory = check_target(func, OPENCL)
    images = find_images(func, memory)
    limits = bounds if bounds is not None else {}
    parameters = parameters_of(func, memory, limits)
    plan = make_plan(func, memory, images, frozenset(p.name for p in parameters if p.buffer is None))
    if index_bits is None:
        first = _Emission(func, memory, images, parameters, plan, CType.I32)
        if not first.overflows:
            return first.source(remarks, contract, 32)
        index_bits = 64
    index_type = CType.I64 if index_bits == 64 else CType.I32
    return _Emission(func, memory, images, parameters, plan, index_type).source(remarks, contract, index_bits)


@dataclass(frozen=True, slots=True)
class _Shared:
    """Memory from the host: its name there, its C name, its image, and the data variable that declares it."""

    name: str
    c_name: str
    data: str
    buffer: Buffer
    image: Image | None


@dataclass(frozen=True, slots=True)
class _Items:
    """What statements have to know of the work items of their kernel, as `OpenCLStatements` takes it."""

    work_items: WorkItems
    both_ways: frozenset[str]
    new_temporary: Callable[[Buffer], str]


class _Emission:
    """One attempt at writing all kernels of a function, with one index type."""

    def __init__(
        self,
        func: PrimFunc,
        memory: MemoryMap,
        images: Mapping[str, Image],
        parameters: tuple[Parameter, ...],
        plan: Plan,
        index_type: CType,
    ) -> None:
        self.func, self.memory, self.images, self.index_type = func, memory, images, index_type
        self.entry = kernel_name(func.name)
        pieces = plan.pieces
        self.kernel_names = [self.entry] if len(pieces) == 1 else [f"{self.entry}_{k}" for k in range(len(pieces))]
        self.names = OpenCLNames((self.entry, *self.kernel_names))
        self.parameters = tuple(replace(p, c_name=self.names.declare(p.name)) for p in parameters)
        self.scalars = tuple(p for p in self.parameters if p.buffer is None)
        self.host_names = {p.name for p in self.parameters}
        self.shared: list[_Shared] = []
        self.temporaries: list[Buffer | Image] = []
        for parameter in self.parameters:
            if parameter.buffer is not None:
                data = parameter.buffer.data.name
                self.shared.append(_Shared(parameter.name, parameter.c_name, data, parameter.buffer, images.get(data)))
        for allocation in plan.allocations:
            self._allocate(allocation.buffer)
        self.helpers: set[str] = set()
        self.overflows = False
        self.launches: list[Launch] = []
        self.texts = [self._kernel(name, piece) for name, piece in zip(self.kernel_names, pieces, strict=True)]

    # --- memory around the kernels

    def _allocate(self, buffer: Buffer) -> None:
        """A temporary for an allocation around kernels, if one of them uses it."""
        piece = self.memory.at(buffer)
        if piece.buffer != buffer or not (piece.read or piece.written):
            return
        image = self.images.get(buffer.data.name)
        known = {p.name for p in self.scalars}
        unknown = [v.name for extent in buffer.shape for v in free_variables(extent) if v.name not in known]
        if unknown:
            message = (
                f"the OpenCL target cannot allocate {buffer.name}: the host does not know {unknown[0]}, which is in "
                "its extents"
            )
            raise error(codes.UNSUPPORTED, message, buffer.span)
        self._share(buffer, image, buffer.data.name)

    def _share(self, buffer: Buffer, image: Image | None, data: str) -> str:
        name = buffer.name
        while name in self.host_names:
            name = f"{name}_{len(self.temporaries)}"
        self.host_names.add(name)
        named = replace(buffer, name=name)
        found = replace(image, buffer=replace(image.buffer, name=name)) if image is not None else None
        c_name = self.names.declare(name)
        self.shared.append(_Shared(name, c_name, data, named, found))
        self.temporaries.append(found if found is not None else named)
        return c_name

    # --- one kernel

    def _kernel(self, name: str, piece: Piece) -> str:
        usage = usage_of(piece.stmt, self.memory)
        both = frozenset(data for data in usage.read & usage.written if data in self.images)
        hosts = frozenset(p.name for p in self.scalars)
        group = make_group(piece.unit, self.memory, hosts) if piece.has_threads else None
        work_items = WorkItems(piece.grid, hosts) if group is None else GroupItems(group.loops, hosts, group=group)
        expressions = OpenCLExpressions(self.memory, Integers(self.index_type), target=OPENCL.name, images=self.images)
        for shared in self.shared:
            expressions.pointers[shared.data] = shared.c_name
        for parameter in self.scalars:
            expressions.variables[parameter.name] = loaded(
                parameter.c_name, parameter.dtype, self.helpers, parameter.bounds
            )
            if parameter.dtype.kind is Kind.INT:
                expressions.index_names.add(parameter.name)
        own: list[_Shared] = []

        def new_temporary(buffer: Buffer) -> str:
            whole = replace(buffer, shape=(*work_items.global_size, *buffer.shape)) if work_items.grid else buffer
            c_name = self._share(_flat(whole), None, f"{name}.{buffer.data.name}")
            own.append(self.shared[-1])
            return c_name

        items = _Items(work_items, both, new_temporary)
        code, local = self._text_of(piece, expressions, items, group)
        self.helpers |= expressions.helpers
        self.overflows = self.overflows or expressions.integers.overflows
        used = [s for s in self.shared if s.data in usage.read | usage.written]
        memory = [KernelArgument(s.name, s.image, _access(s.data in usage.read, s.data in usage.written)) for s in used]
        memory += [KernelArgument(s.name, None, "read_write") for s in own]
        uncommented = re.sub(r"/\*.*?\*/", "", code)
        scalars = [p for p in self.scalars if re.search(rf"\b{p.c_name}\b", uncommented) is not None]
        by_host = [LocalArgument(buffer) for buffer in group.sized_by_host] if group is not None else []
        in_group = group.shared if group is not None else ()
        sizes = work_items.global_size, work_items.local_size, in_group
        self.launches.append(Launch(name, (*memory, *by_host, *scalars), *sizes))
        waits = group is not None and group.waits_for_global
        arguments = [self._argument(s, a, waits=waits) for s, a in zip([*used, *own], memory, strict=True)] + local
        arguments += [f"const {spell(storage_type(p.dtype))} {p.c_name}" for p in scalars]
        about = self._about(work_items.grid, group)
        return f"{about}\n__kernel void {name}(\n    " + ",\n    ".join(arguments) + f"\n) {{\n{code}}}\n"

    def _text_of(
        self, piece: Piece, expressions: OpenCLExpressions, items: _Items, group: Group | None
    ) -> tuple[str, list[str]]:
        """The statements of a kernel, behind the declarations of what a group shares, and its `__local` parameters."""
        writer, declared = Writer(depth=1, spell=spell), Writer(depth=1, spell=spell)
        with self.names.block():
            if group is None:
                statements = OpenCLStatements(
                    expressions,
                    writer,
                    self.names,
                    self.func.noalias,
                    work_items=items.work_items,
                    both_ways=items.both_ways,
                    new_temporary=items.new_temporary,
                )
                statements.emit(piece.stmt)
                return writer.text(), []
            in_groups = GroupStatements(
                expressions,
                writer,
                self.names,
                self.func.noalias,
                work_items=items.work_items,
                both_ways=items.both_ways,
                new_temporary=items.new_temporary,
                group=group,
            )
            declarations, parameters = in_groups.declare_shared()
            in_groups.emit(piece.around_of(group.body))
        for line in declarations:
            declared.line(line)
        return declared.text() + writer.text(), parameters

    def _argument(self, shared: _Shared, argument: KernelArgument, *, waits: bool) -> str:
        """`waits`: work items wait for what others store to buffers, over which a compiler may not move accesses."""
        if shared.image is not None:
            return f"{argument.access} {shared.image.kind}_t {shared.c_name}"
        const = "const " if argument.access == "read_only" else ""
        restrict = "restrict " if self.func.noalias and not (waits and argument.access == "read_write") else ""
        return f"__global {const}{spell(storage_type(shared.buffer.dtype))} *{restrict}{shared.c_name}"

    def _about(self, grid: tuple[For, ...], group: Group | None) -> str:
        """What a kernel's work items are."""
        if not grid:
            return "/* One work item. */"
        loops = ", ".join(f"{loop.var.name} of {describe_extent(loop.extent)}" for loop in grid)
        shared = f"; a group shares {_bytes_text(group)}" if group is not None and group.shared else ""
        return spell(comment(f"One work item for each {loops}{shared}."))

    # --- the whole text

    def source(self, notes: Mapping[str, str], contract: Contract, index_bits: int) -> OpenCLSource:
        """The finished text."""
        helpers = helper_text(self.helpers, find_opencl_helper)
        kernels = "\n".join(self.texts)
        extensions = self._extensions(helpers + kernels)
        lines = [*self._comment(notes, contract), "#pragma OPENCL FP_CONTRACT OFF"]
        lines += [f"#pragma OPENCL EXTENSION {name} : enable" for name in extensions if name.startswith("cl_")]
        lines += ["", *([helpers, ""] if helpers else []), kernels]
        launches, temporaries = tuple(self.launches), tuple(self.temporaries)
        return OpenCLSource("\n".join(lines), launches, self.parameters, temporaries, index_bits, extensions)

    def _extensions(self, code: str) -> tuple[str, ...]:
        found = [DOUBLES] if re.search(r"\bdouble\d*\b", _WITH_DOUBLES.sub("", code)) is not None else []
        arguments = [a for launch in self.launches for a in launch.arguments if isinstance(a, KernelArgument)]
        if any(a.image is not None and a.access == "read_write" for a in arguments):
            found.append(READ_WRITE_IMAGES)
        return tuple(found)

    def _comment(self, notes: Mapping[str, str], contract: Contract) -> Iterator[str]:
        number = len(self.launches)
        count = f"{number} kernels, each launched when the one before it is done" if number > 1 else "one kernel"
        yield "/*"
        yield f" * {inside_comment(f'{self.func.name}: generated by layoutproof, OpenCL C 1.2, {count}.')}"
        yield " *"
        rows = [(p.c_name, describe_parameter(p, notes) + self._image_text(p.name)) for p in self.parameters]
        temporaries = self.shared[len(self.parameters) - len(self.scalars) :]
        rows += [(s.c_name, f"{describe(s.buffer)}, a temporary{_image_text(s.image)}") for s in temporaries]
        width = max((len(name) for name, _ in rows), default=0)
        yield from (f" *   {name:<{width}}  {inside_comment(spell(text))}" for name, text in rows)
        yield " *"
        overlap = ", and do not overlap where one of them is written" if self.func.noalias else ""
        yield f" * Buffers are row-major{overlap}."
        for title, texts in (
            ("The host checks before a launch", [r.text for r in contract.requirements]),
            ("Preconditions that are not checked", list(contract.promises)),
        ):
            yield from [f" * {title}:", *(f" *   {inside_comment(text)}" for text in texts)] if texts else []
        yield " */"

    def _image_text(self, name: str) -> str:
        return next((_image_text(s.image) for s in self.shared if s.name == name), "")


def _image_text(image: Image | None) -> str:
    if image is None:
        return ""
    sizes = [image.width, image.height, *([image.layers] if image.layers is not None else [])]
    texels = " x ".join(describe_extent(size) for size in sizes)
    return f"; {image.kind} of {texels} texels, {image.channel_order} {image.channel_type}"


def _flat(buffer: Buffer) -> Buffer:
    """The buffer with one axis of all its elements."""
    size: Expr = buffer.shape[0]
    for extent in buffer.shape[1:]:
        size = binary(BinaryOp.MUL, size, extent)
    return replace(buffer, shape=(size,), axis_separators=())


def _bytes_text(group: Group) -> str:
    return f"{expr_text(bytes_shared(group.shared), 'plain')} bytes"


def _access(reads: bool, writes: bool) -> str:
    return "read_write" if reads and writes else "write_only" if writes else "read_only"

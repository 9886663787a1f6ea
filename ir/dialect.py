"""The two dialects of the script syntax, as data: what each calls the same thing.

`current` is what TVM 0.27 prints, `old` what TVM 0.8 to 0.20 read. Reading takes the names of both; printing chooses.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dialect:
    """The names that differ between the dialects."""

    name: str
    header: tuple[str, ...]
    prim_func: str
    block: str
    block_attr: str
    block_alloc: str
    allocate: str
    serial: str
    ramp: str
    broadcast: str
    let_annotation: str
    old_buffers: bool


CURRENT = Dialect(
    name="current",
    header=("# from tvm.script import ir as I", "# from tvm.script import tirx as T"),
    prim_func="@T.prim_func(s_tir=True)",
    block="T.sblock",
    block_attr="T.sblock_attr",
    block_alloc="T.sblock_alloc_buffer",
    allocate="T.alloc_buffer",
    serial="range",
    ramp="T.Ramp",
    broadcast="T.Broadcast",
    let_annotation="T.let[{}]",
    old_buffers=False,
)

OLD = Dialect(
    name="old",
    header=("# from tvm.script import ir as I", "# from tvm.script import tir as T"),
    prim_func="@T.prim_func",
    block="T.block",
    block_attr="T.block_attr",
    block_alloc="T.alloc_buffer",
    allocate="T.decl_buffer",
    serial="T.serial",
    ramp="T.ramp",
    broadcast="T.broadcast",
    let_annotation="{}",
    old_buffers=True,
)

DIALECTS = {dialect.name: dialect for dialect in (CURRENT, OLD)}

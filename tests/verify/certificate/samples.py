"""Schedules whose certificates the tests look at."""

from __future__ import annotations

from functools import cache

from layoutproof.ir.script.reader import loads
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.certificate.certificate import Certificate

ROW_SUM = """
from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def main(a: T.handle, b: T.handle):
    T.func_attr({"tirx.noalias": True})
    n = T.int32()
    A = T.match_buffer(a, (n, 14))
    B = T.match_buffer(b, (n,))
    for i in T.parallel(n):
        for j in range(14):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    B[vi] = T.float32(0.0)
                B[vi] = B[vi] + A[vi, vj]
"""


def schedule() -> Schedule:
    """A row sum of any number of rows, its rows of 14 stored as 4 rows of 4, and its blocks lowered."""
    found = Schedule(loads(ROW_SUM.strip() + "\n"))
    found.transform_layout("B", "A", "lambda i, j: [i, j // 4, j % 4]", 0.0)
    found.lower_blocks()
    return found


@cache
def certificate() -> Certificate:
    """The certificate of `schedule`."""
    return schedule().certificate

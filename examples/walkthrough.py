"""The core of layoutproof, explained by running it: from an index map to a kernel, with every answer printed.

Read it from top to bottom, or run it: `python examples/walkthrough.py`. Nothing in it is particular to this one
program.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

import layoutproof as lp
from layoutproof import IllegalTransform, IndexMap, Schedule
from layoutproof.ir.interp import run
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.verify.certificate.certificate import Certificate
from layoutproof.verify.replay.refute import check_rewrite


def section(title: str) -> None:
    """A heading in the output."""
    print(f"\n== {title}\n")


# ---- 1. An index map
#
# A row of 14 numbers is to be stored in fours: element i goes to row i // 4, column i % 4. That is an index map: a
# function from the logical index, by which the program speaks of an element, to the physical one, by which the memory
# does. It is written as a lambda, as text, or as an IndexMap; all three are the same thing, and none of them says how
# large anything is.

section("1. An index map")
in_fours = IndexMap.from_func(lambda i: [i // 4, i % 4])
print("element 9 of the row is stored at", in_fours.evaluate([9]))

# Arrays can be stored by it right away. Where no element goes, the picture shows -1.
print(in_fours.map_array(np.arange(14), fill=-1))

# ---- 2. Is it injective?
#
# Two elements in one cell would overwrite each other, so a map has to be injective on the shape it is used for. That is
# not tested on samples, it is decided. The answer is a verdict: proved, refuted with a counterexample, or unknown with
# a reason.

section("2. Is it injective?")
report = lp.check_map(in_fours, shape=(14,))
print("i -> i//4, i%4 is injective:", report.injective.status)
forgetful = lp.check_map(lambda i: [i // 4], shape=(14,))
print("i -> i//4 is injective:", forgetful.injective.status, forgetful.injective.counterexample)

# The shape may have names. Then the answer holds for every n at once, and so do the physical shape and the inverse.
every_size = lp.check_map(in_fours, shape=("n",), where="n >= 1").to_dict()
print("for every n:", every_size["injective"]["status"], every_size["physical_shape"], "inverse", every_size["inverse"])

# ---- 3. Padding
#
# 14 elements do not fill four rows of four. The cells that no element goes to are padding, and the report says which
# they are, as a predicate over the physical index. What padding *holds* is no property of the map: it is a contract
# between the writers and the readers of the buffer, and has to be made explicit before code may rely on it.

section("3. Padding")
print("box:", report.to_dict()["physical_shape"], "padding where:", report.to_dict()["padding"]["predicate"])

# ---- 4. A program
#
# Programs are text in TVM's script syntax; TVM itself is not needed. They are read, never executed. This one sums the
# rows of a matrix. It has one meaning, which the reference interpreter runs; everything below is judged by that
# meaning.

section("4. A program")
ROW_SUM = """
@T.prim_func
def row_sum(A: T.Buffer((3, 14), "float32"), B: T.Buffer((3,), "float32")):
    T.func_attr({"tir.noalias": True})
    for i, j in T.grid(3, 14):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vj]
"""
program = loads(ROW_SUM, "row_sum.py")
matrix = np.arange(42, dtype=np.float32).reshape(3, 14) - 20
print(print_func(program))
print("the interpreter's sums:", run(program, {"A": matrix, "B": np.zeros(3, np.float32)}).arrays["B"])

# ---- 5. A layout transform, proved
#
# A schedule has a program and changes it, step by step. This step stores the rows of A in fours. Every load of A is
# rewritten, and the signature: callers now pass a 3 by 4 by 4 array. With a pad value of 0 the
# contract becomes program text: the function begins with an assumption about the padding, which its caller has to keep.
# An attribute keeps what was stored how.

section("5. A layout transform, proved")
schedule = Schedule(program)
step = schedule.transform_layout("sum", "A", lambda i, j: [i, j // 4, j % 4], pad_value=0.0)
print(schedule.script())

# What was proved is a list of claims, each with a verdict of its own: that no access leaves its buffer, that the new
# map is injective, that every value stored is the value that was stored before, and so on. The step was kept because
# all of them are proved.
for verdict in step.verdicts[:4]:
    print(f"{verdict.status}: {verdict.claim.text}")
print(f"... {len(step.verdicts)} claims, {sum(v.status is lp.Status.PROVED for v in step.verdicts)} of them proved")

# ---- 6. Who is trusted
#
# The pass that rewrote the program is not trusted. It made a proposal: the old program, the new one, and a witness,
# which says which store of the new program does the work of which store of the old one, and where. The checker proves
# or refutes the proposal knowing nothing of how it came about. So a pass with a mistake in it is caught: here the new
# program reads its neighbour's column.

section("6. Who is trusted")
proposal = step.rewrite
wrong = loads(print_func(proposal.new).replace("vj % 4]", "(vj + 1) % 4]"), "wrong.py")
for verdict in check_rewrite(replace(proposal, new=wrong)):
    if verdict.status is not lp.Status.PROVED:
        print(f"{verdict.status}: {verdict.claim.text}\n{verdict.reason}")

# ---- 7. Loops that follow the memory
#
# The loops still count i and j as before. The next step makes them walk A in the order of its new layout. The last row
# of four has only two elements, so a guard keeps the padding from being added: `T.where` in the text.

section("7. Loops that follow the memory")
schedule.sequential_buffer_access("sum", "A")
print(schedule.script())

# ---- 8. Overcompute, refused
#
# That guard is a branch in the innermost loop. Without it, the loops would be as simple as can be, and add what padding
# holds. Whether that is the same program depends on the contract. Suppose that there is none: padding is there, and
# nobody said what is in it. Then dropping the guard reads what must not be touched, and the schedule refuses, and
# leaves the program as it was.

section("8. Overcompute, refused")


def unguarded(pad_value: object) -> Schedule:
    """The same schedule under another contract, and the guard dropped."""
    result = Schedule(program)
    result.transform_layout("sum", "A", lambda i, j: [i, j // 4, j % 4], pad_value=pad_value)
    result.sequential_buffer_access("sum", "A")
    result.remove_branching_through_overcompute("sum")
    return result


def attempt(pad_value: object) -> None:
    """Try it, and print the counterexample."""
    try:
        unguarded(pad_value)
    except IllegalTransform as problem:
        print(f"padding holds {pad_value}: {problem.status}")
        print(problem.diagnostics[0].message.partition(": ")[2])


attempt(None)

# A contract that is wrong for a sum is no better. The counterexample is not a guess: both programs were run on it, and
# differ.
attempt(1.0)

# ---- 9. A pad value that makes it legal
#
# Under the contract "padding holds 0" the extra additions change nothing, and that is proved bit for bit. It is less
# obvious than it looks: -0.0 + 0.0 is +0.0, so a zero does change an accumulator that is -0.0. The checker finds that
# this one never is, because it starts at +0.0. Where a claim needs more than IEEE arithmetic gives, the verdict lists
# the fast-math assumptions that it needs: this one needs none.

section("9. A pad value that makes it legal")
schedule.remove_branching_through_overcompute("sum")
print(schedule.script())
print("fast-math assumptions:", sorted({flag for v in schedule.steps[-1].verdicts for flag in v.strictness}))
print(
    [verdict.claim.text for verdict in schedule.steps[-1].verdicts if "overcomputed iterations" in verdict.claim.text]
)

# ---- 10. The certificate, and the trace
#
# What was proved can be handed on. A certificate holds the programs, the claims, and the questions to solvers as text,
# so that others can check them again with solvers of their own (`layoutproof recheck`), from the file alone. The trace
# holds the steps, as an autotuner would emit them; replayed, it gives the same program again, each step proved anew.

section("10. The certificate, and the trace")
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "row_sum.lpcert.json"
    schedule.certificate.save(path)
    certificate = Certificate.load(path)
    print("certificate:", certificate.status, [record["primitive"] for record in certificate.steps])
for primitive, arguments in schedule.trace:
    print(primitive, arguments)
print("replayed to the same program:", Schedule.replay(program, schedule.trace).func == schedule.func)

# ---- 11. A kernel
#
# Lowered, flattened and compiled, every pass on the way checked like a step. The kernel takes arrays in their logical
# layout and packs them; `raw` takes physical ones, and then the padding is the caller's: here it is zero, as the
# contract says.

section("11. A kernel")
kernel = schedule.build("c")
print("the kernel's sums:      ", kernel(matrix))
packed = np.zeros((3, 4, 4), dtype=np.float32)
packed[:, np.arange(14) // 4, np.arange(14) % 4] = matrix
sums = np.empty(3, dtype=np.float32)
kernel.raw(packed, sums)
print("of an array packed here:", sums)

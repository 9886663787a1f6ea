"""What proofs take is the proofs' affair: no fast-math assumption becomes a compiler flag or a word in the text unless
fast math is asked for.
"""

import re

import numpy as np
import pytest
from tests.lowering.padding.test_implicit_default import convolution, fast_math, without_branches
from tests.shares import one_in

from layoutproof.ir.script.reader import loads
from layoutproof.lowering.runtime.build_c import build_c
from layoutproof.lowering.runtime.compiler import find_compiler
from layoutproof.lowering.runtime.enclosure import outside
from layoutproof.lowering.runtime.kernel import Kernel
from layoutproof.lowering.schedule.schedule import Schedule

# Every flag of gcc and clang that relaxes float arithmetic, each of -ffast-math's among them.
RELAXING = re.compile(
    r"-Ofast|-ffast-math|-funsafe-math\S*|-fassociative-math|-freciprocal-math|-fno-signed-zeros|-ffinite-math-only|-fno-honor-\S+"
    r"|-ffp-contract=(fast|on)|-fno-rounding-math|-fcx-limited-range|-fapprox-func|-fdenormal-fp-math\S*|-ffp-model\S*|-mrecip\S*"
)
PRAGMAS = re.compile(r"(?:#\s*pragma|_Pragma\s*\()\s*(.*)")


@pytest.fixture(scope="module")
def excused() -> Schedule:
    """A schedule whose proofs regroup sums and take NaN and infinity for absent."""
    schedule = without_branches(convolution("A", 16, "B", finite=False))
    assert fast_math(schedule) == {
        "sequential_buffer_access": {"reassoc"},
        "remove_branching_through_overcompute": {"nnan", "ninf"},
    }
    return schedule


@pytest.fixture(scope="module")
def unexcused() -> Schedule:
    """One whose proofs hold bit for bit."""
    schedule = Schedule(convolution("A", 16, "B").original)
    schedule.transform_layout("conv", "A", "lambda i: [(i + 2)//8, (i + 2)%8]", 0.0)
    assert fast_math(schedule) == {}
    return schedule


def flags_of(kernel: Kernel) -> list[str]:
    """The flags of a build, without paths."""
    return [word for word in kernel.report.command.split()[1:] if word.startswith("-") and word != "-o"]


@one_in(9)
def test_fast_math_are_no_flags(excused: Schedule, unexcused: Schedule) -> None:
    """A kernel whose proofs took fast-math assumptions is compiled with the flags of one whose proofs took none."""
    kernel, plain = excused.build(), unexcused.build()
    assert (
        flags_of(kernel)
        == flags_of(plain)
        == list(dict.fromkeys([*find_compiler().flags(openmp=False, truncates=False), "-lm"]))
    )
    assert RELAXING.search(kernel.report.command) is None
    assert not kernel.report.fast and kernel.report.notes == ()


@one_in(4)
def test_fast_math_are_no_words_in_the_text(excused: Schedule) -> None:
    """Nor does the text ask the compiler for it by pragma or attribute; each operation stands there as the program has
    it.
    """
    text = excused.build().source.text
    assert all(found.startswith("GCC diagnostic") for found in PRAGMAS.findall(text)), PRAGMAS.findall(text)
    assert "__attribute__" not in text and "optimize" not in text and "fma" not in text


def test_the_kernel_is_the_new_program_bit_for_bit(excused: Schedule) -> None:
    """Fast-math assumptions relate the new program to the old one; between the new program and its kernel there
    are none, and the build checks it.
    """
    assert excused.build().report.self_check == "equal to the interpreter, bit for bit"


def test_infinities_that_a_proof_took_for_absent_are_computed_with(excused: Schedule) -> None:
    """An infinite weight meets a zero of the padding and gives NaN, as the new program says; a compiler that knew no
    NaN would not.
    """
    a, weights = np.ones(16, np.float32), np.array([1, 2, np.inf], np.float32)
    found = np.asarray(excused.build()(a, weights))
    assert np.isnan(found).any() and np.isinf(found).any()


@one_in(4)
def test_fast_is_a_choice_that_is_named(excused: Schedule, unexcused: Schedule) -> None:
    """With fast=True the flags relax, whatever the proofs took; report, command and note say so, and results lie within
    the enclosure.
    """
    for schedule in (excused, unexcused):
        report = schedule.build(fast=True).report
        assert report.fast and RELAXING.search(report.command) is not None
        assert any("fast math" in note for note in report.notes) and report.self_check.startswith(
            "equal to the interpreter, "
        )


def test_fast_and_strict_kernels_do_not_mix(unexcused: Schedule) -> None:
    """The two are different libraries: a fast one is never used for a strict build."""
    strict, fast, again = unexcused.build(), unexcused.build(fast=True), unexcused.build()
    assert strict.report.library_path == again.report.library_path != fast.report.library_path


@pytest.mark.parametrize("flag", ["-ffast-math", "-Ofast"])
def test_the_pattern_knows_fast_math(flag: str) -> None:
    """The pattern that finds nothing above finds what it is for."""
    assert RELAXING.search(f"cc -O3 {flag} -c kernel.c") is not None
    assert all(RELAXING.search(f) is not None for f in find_compiler().flags(openmp=False, fast=True)[-5:])


@pytest.mark.parametrize(
    "value",
    [
        "A[i] * B[i] + A[i] * C[i]",
        "A[i] * B[i] - A[i] * C[i]",
        "A[i] / C[i] + B[i] / C[i]",
        "A[i] / (B[i] / C[i])",
        "A[i] / B[i] / C[i]",
        "A[i] * B[i] * C[i] * A[i]",
        "A[i] * 3.0 / C[i]",
    ],
)
def test_a_fast_kernel_may_leave_the_range_of_floats_on_the_way(value: str) -> None:
    """Common factors are taken out, products come in another order and quotients are reciprocals: results are inside of
    their enclosure, which is no use for numbers near the ends of the type alone.
    """
    names, count = "ABC", 512
    arrays = ", ".join(f'{name}: T.Buffer(({count},), "float32")' for name in (*names, "R"))
    text = f"    for i in range({count}):\n        R[i] = {value}"
    kernel = build_c(loads(f"@T.prim_func\ndef f({arrays}):\n{text}"), check=False, fast=True)
    numbers = np.array([0, 1, -3, 0.1, 1e-45, -1e-39, 1.2e-38, 1e-20, 1e20, -3e38, 3.4e38, 2.5e38], np.float32)
    random = np.random.default_rng(3)
    for moderate, values in ((False, numbers), (True, np.array([1, -3, 0.1, 1e-4, 7e3], np.float32))):
        given = {name: random.choice(values, count) for name in names}
        result = np.zeros(count, np.float32)
        with np.errstate(all="ignore"):
            bounds = kernel.enclosed({**given, "R": result}, {}, limit=10**7)["R"]
            kernel(**given, R=result)
        assert not outside(result, bounds).any()
        assert not moderate or np.isfinite(bounds.low).all()

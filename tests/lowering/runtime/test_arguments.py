"""Arguments that do not fit: each refused by name, with its code, before anything runs."""

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.lowering.codegen.programs import Array, function, loop
from tests.lowering.runtime.kernels import scaled_sum
from tests.shares import one_in

from layoutproof.ir.buffer import BufferLoad, make_buffer
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import BufferStore
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.runtime.build_c import build_c
from layoutproof.lowering.runtime.kernel import Kernel


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    """A, B, total, count, factor, n; nothing may overlap."""
    return build_c(scaled_sum())


def numbers(count: int = 8) -> Array:
    """Fresh numbers."""
    return np.arange(count, dtype=np.float32)


def good() -> dict[str, Any]:
    """Arguments that fit."""
    zeros = np.zeros
    return {
        "A": numbers(),
        "B": zeros(8, np.float32),
        "total": zeros(1, np.float32),
        "count": zeros(1, np.int32),
        "factor": 2.0,
    }


def unaligned() -> Array:
    """Eight numbers one byte off."""
    return np.zeros(33, dtype=np.uint8)[1:].view(np.float32)


def read_only() -> Array:
    """An array that may not be written."""
    array = np.zeros(8, dtype=np.float32)
    array.flags.writeable = False
    return array


CASES: list[tuple[str, str, Callable[[], Any], str, str]] = [
    ("shape", "total", lambda: np.zeros(2, np.float32), codes.ARGUMENT_SHAPE, r"total has shape \[2\].*\[1\]"),
    ("axes", "A", lambda: np.zeros((2, 4), np.float32), codes.ARGUMENT_SHAPE, "A has 2 axes"),
    ("type", "A", lambda: np.zeros(8), codes.ARGUMENT_TYPE, "A holds float64; float32 is expected"),
    ("integers", "count", lambda: np.zeros(1, np.int64), codes.ARGUMENT_TYPE, "count holds int64"),
    ("bytes", "A", lambda: np.zeros(8, ">f4"), codes.ARGUMENT_TYPE, "A has the other byte order"),
    ("gaps", "A", lambda: np.zeros(16, np.float32)[::2], codes.ARGUMENT_MEMORY, "A is not contiguous"),
    ("reversed", "A", lambda: numbers()[::-1], codes.ARGUMENT_MEMORY, "A is not contiguous"),
    ("unaligned", "A", unaligned, codes.ARGUMENT_MEMORY, "A is not aligned"),
    ("read-only", "B", read_only, codes.READ_ONLY, "B is written by the kernel and is read-only"),
    ("list", "A", lambda: [1.0, 2.0], codes.NOT_AN_ARRAY, "A is a list"),
    ("none", "A", lambda: None, codes.NOT_AN_ARRAY, "A is a NoneType"),
    ("text", "factor", lambda: "2", codes.ARGUMENT_TYPE, "factor is '2'"),
    ("array as number", "factor", lambda: np.zeros(2), codes.ARGUMENT_TYPE, "factor"),
    ("fraction", "n", lambda: 8.0, codes.ARGUMENT_TYPE, "n is 8.0; an integer of type int32 is expected"),
    ("large", "n", lambda: 2**40, codes.ARGUMENT_TYPE, "does not fit int32"),
    ("wrong", "n", lambda: 7, codes.SYMBOLS, "n is 7 by the argument n|n is 8 by axis 0 of A"),
    ("unknown", "X", numbers, codes.ARGUMENTS, "unknown argument 'X'"),
]


@pytest.mark.parametrize(
    ("name", "make", "code", "words"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
@pytest.mark.parametrize("raw", [False, True], ids=["logical", "physical"])
def test_refused(raw: bool, name: str, make: Callable[[], Any], code: str, words: str, kernel: Kernel) -> None:
    """A call and raw() refuse it alike, and the outputs that were given are as they were."""
    arguments = {**good(), name: make()}
    with pytest.raises(LayoutproofError, match=words) as caught:
        (kernel.raw if raw else kernel)(**arguments)
    assert caught.value.diagnostics[0].code == code
    assert arguments["total"].tolist() in ([0.0], [0.0, 0.0])


def test_good_arguments_are_good(kernel: Kernel) -> None:
    """The arguments that the cases above spoil one at a time do run."""
    arguments = good()
    kernel.raw(**arguments)
    assert arguments["total"].tolist() == [28.0] and arguments["count"].tolist() == [1]
    kernel(**arguments, n=8)
    assert arguments["count"].tolist() == [2]


def test_counts_of_arguments(kernel: Kernel) -> None:
    """Too many, one twice, and too few for raw()."""
    arrays = list(good().values())
    for call, words in (
        (lambda: kernel(*arrays, 8, 9), "7 arguments"),
        (lambda: kernel(numbers(), A=numbers()), "A twice"),
        (lambda: kernel.raw(*arrays[:2]), "no total"),
        (lambda: kernel(), "no A"),
    ):
        with pytest.raises(LayoutproofError, match=words) as caught:
            call()
        assert caught.value.diagnostics[0].code == codes.ARGUMENTS


def test_overlap_with_what_is_written(kernel: Kernel) -> None:
    """An output that is the input, or begins inside it, is refused; so are two outputs in one place."""
    memory = np.zeros(20, dtype=np.float32)
    for first, second in (((0, 8), (0, 8)), ((0, 8), (7, 15)), ((8, 16), (1, 9))):
        arguments = {**good(), "A": memory[slice(*first)], "B": memory[slice(*second)]}
        with pytest.raises(LayoutproofError, match="A and B overlap in memory, and B is written") as caught:
            kernel.raw(**arguments)
        assert caught.value.diagnostics[0].code == codes.OVERLAP
    with pytest.raises(LayoutproofError, match="B and total overlap"):
        kernel.raw(**{**good(), "B": memory[:8], "total": memory[3:4]})
    kernel.raw(**{**good(), "A": memory[:8], "B": memory[8:16]})


def test_inputs_may_share_memory() -> None:
    """Two arrays that are only read do no harm in one place."""
    a, b, c = (make_buffer(name, (4,), "float32") for name in "ABC")
    kernel = build_c(
        function(
            "add", [a, b, c], loop("i", 4, lambda i: BufferStore(c, (i,), BufferLoad(a, (i,)) + BufferLoad(b, (i,))))
        )
    )
    x = numbers(4)
    assert np.asarray(kernel(x, x)).tolist() == [0, 2, 4, 6]


def test_overlap_is_allowed_where_nothing_was_assumed() -> None:
    """Without noalias the function means what it does on shared memory too."""
    arguments = good()
    arguments["B"] = arguments["A"]
    build_c(scaled_sum(noalias=False)).raw(**arguments)
    assert arguments["A"].tolist() == [2.0 * k for k in range(8)]


class Interface:
    """An array known by the array interface alone."""

    def __init__(self, array: Array) -> None:
        self._array = array
        self.__array_interface__ = array.__array_interface__


class Capsule:
    """An array known by DLPack alone."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


class Broken:
    """Something that promises DLPack and does not keep it."""

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("no such device")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.mark.parametrize("wrap", [Interface, Capsule])
def test_other_arrays_without_a_copy(wrap: Callable[[Array], Any], kernel: Kernel) -> None:
    """What is written arrives in the memory of the array behind it."""
    arguments = good()
    kernel.raw(**{**arguments, "A": wrap(arguments["A"]), "total": wrap(arguments["total"])})
    assert arguments["total"].tolist() == [28.0]


def test_broken_protocol(kernel: Kernel) -> None:
    """What its maker says is passed on."""
    with pytest.raises(LayoutproofError, match="A cannot be taken through DLPack: no such device"):
        kernel.raw(**{**good(), "A": Broken()})


class Refusing:
    """Something whose memory cannot be asked for."""

    def __init__(self, problem: Exception) -> None:
        self._problem = problem

    @property
    def __array_interface__(self) -> dict[str, Any]:
        raise self._problem


@pytest.mark.parametrize(
    "problem", [ValueError("no"), KeyError("no"), RuntimeError("no"), OSError("no")], ids=lambda p: type(p).__name__
)
def test_what_other_code_raises_is_named(problem: Exception, kernel: Kernel) -> None:
    """Whatever an object does when it is asked for its memory, the error names the argument."""
    with pytest.raises(LayoutproofError, match="A cannot be taken through the array interface"):
        kernel.raw(**{**good(), "A": Refusing(problem)})


def test_a_number_that_is_written_would_be_lost(kernel: Kernel) -> None:
    """A numpy scalar has a shape, but no memory to write to; a masked array has elements that are not there."""
    with pytest.raises(LayoutproofError, match=r"total is written by the kernel, and is a single number \(float32\)"):
        kernel.raw(**{**good(), "total": np.float32(0)})
    with pytest.raises(LayoutproofError, match="A is a masked array"):
        kernel.raw(**{**good(), "A": np.ma.masked_array(numbers(), mask=[True] + [False] * 7)})
    plain = good()
    kernel.raw(**{**plain, "A": np.ma.masked_array(numbers())})
    assert plain["total"].tolist() == [28.0]


def test_all_of_the_program_s_own_parameters_in_order(kernel: Kernel) -> None:
    """`n`, which the program does not list, need not be given for the others to go by position."""
    arguments = good()
    given = list(arguments.values())
    kernel(*given)
    kernel(*given, 8)
    kernel.raw(*given)
    assert arguments["count"].tolist() == [3] and arguments["total"].tolist() == [28.0]


def _anything(random: Random) -> Any:
    """A value of one kind or another, most of them wrong somewhere."""
    count = random.choice([0, 1, 1, 3, 8, 8, 8])
    array = np.arange(count, dtype=np.float32)
    kinds: list[Callable[[], Any]] = [
        lambda: array, lambda: array.astype(np.float64), lambda: array.astype(">f4"), lambda: array.astype(np.int32),
        lambda: array[::-1], lambda: np.arange(2 * count, dtype=np.float32)[::2], lambda: array.astype(object),
        lambda: array.reshape(1, -1), lambda: np.broadcast_to(np.float32(1), (count,)), unaligned, read_only,
        lambda: array.tolist(), lambda: Capsule(array), lambda: Interface(array), Broken, lambda: np.float32(2),
        lambda: np.array(2, np.int32), lambda: np.array(2.0, np.float32), lambda: 8, lambda: -1, lambda: 1 << 70,
        lambda: 2.5, lambda: float("nan"), lambda: True, lambda: None, lambda: "A", lambda: b"A", lambda: 1j,
        lambda: np.datetime64("2020"), lambda: array.data, lambda: range(3), dict, object, lambda: np.array("A"),
        lambda: array.astype([("f", np.float32)]), lambda: Refusing(ValueError("no")), lambda: np.bool_(True),
        lambda: np.int64(8),
    ]  # fmt: skip
    return random.choice(kinds)()


@one_in(4)
@pytest.mark.parametrize("raw", [False, True], ids=["logical", "physical"])
def test_random_mistakes(raw: bool, kernel: Kernel) -> None:
    """Calls with wrong values, counts and names: each runs or is refused with a message that names the function or the
    argument.
    """
    random = Random(5)
    names = [*good(), "n", "X", ""]
    ran, messages = 0, []
    for _ in range(3_000):
        arguments: dict[str, Any] = good()
        for _ in range(random.choice([0, 1, 1, 2])):
            arguments[random.choice(names)] = _anything(random)
        if random.random() < 0.2:
            del arguments[random.choice(list(arguments))]
        places = (
            [arguments.pop(name) for name in list(arguments)[: random.randrange(8)]] if random.random() < 0.4 else []
        )
        try:
            (kernel.raw if raw else kernel)(*places, **arguments)
            ran += 1
        except LayoutproofError as problem:
            messages.append(problem.diagnostics[0].message)
    assert ran > 100 and len(messages) > 1_000
    assert all(any(name in message for name in (*good(), "n", "scaled_sum")) for message in messages)


@pytest.mark.parametrize("offset", ["off", "off * 4"])
def test_arrays_start_at_their_first_element(offset: str) -> None:
    """What a caller says of an offset cannot lead out of an array, which is all the memory that there is."""
    func = loads(
        "from tvm.script import tir as T\n\n@T.prim_func\n"
        'def f(a: T.handle, off: T.int32, B: T.Buffer((8,), "float32")):\n'
        f'    A = T.match_buffer(a, (8,), "float32", elem_offset={offset})\n'
        "    for i in range(8):\n        B[i] = A[i]\n"
    )
    copy = build_c(func, check=False)
    assert np.array_equal(copy(numbers(), off=0), numbers())
    with pytest.raises(LayoutproofError, match="A, which starts at its first element") as caught:
        copy(numbers(), off=5)
    assert caught.value.diagnostics[0].code == codes.SYMBOLS

"""Whatever the text: a program or a LayoutproofError, never another exception."""

import io
import tokenize
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from tests.random.syntax import RandomProgram
from tests.shares import one_in
from tests.tree import ROOT

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.notations.map_text import parse_condition, parse_index_map, parse_shape
from layoutproof.ir.script.printer import print_func, print_module
from layoutproof.ir.script.reader import loads, loads_module

FILES = sorted(
    path for folder in ("operators", "seeds", "pairs") for path in (ROOT / "tests" / "data" / folder).glob("*.py")
)


def tokens(text: str) -> list[str]:
    """The text cut at its tokens, blanks kept, so that joining gives it back."""
    lines = text.splitlines(keepends=True)
    cuts = sorted({(t.start[0], t.start[1]) for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.string})
    flat = [sum(len(line) for line in lines[: row - 1]) + column for row, column in cuts]
    return [text[a:b] for a, b in zip([0, *flat], [*flat, len(text)], strict=True) if a < b]


def damaged(rng: Random, parts: list[str]) -> str:
    """The text with a few tokens left out, doubled, exchanged or replaced."""
    parts = list(parts)
    for _ in range(rng.randrange(1, 5)):
        k, other = rng.randrange(len(parts)), rng.randrange(len(parts))
        match rng.randrange(5):
            case 0:
                parts[k] = ""
            case 1:
                parts[k] += " " + parts[k]
            case 2:
                parts[k], parts[other] = parts[other], parts[k]
            case 3:
                parts[k] = parts[other]
            case _:
                parts[k] = rng.choice(
                    [
                        "0",
                        "-1",
                        "1.5",
                        "None",
                        "True",
                        "T",
                        "A",
                        "*",
                        "()",
                        "[:]",
                        "'x'",
                        "lambda: 0",
                        "T.undef()",
                        "{}",
                        "if ",
                    ]
                )
    return "".join(parts)


def survives(text: str) -> bool:
    """Whether the text is read; False where it is refused properly."""
    try:
        module = loads_module(text, "fuzz.py")
    except LayoutproofError as refusal:
        assert all(d.message and d.code for d in refusal.diagnostics)
        str(refusal).encode("utf-8")
        return False
    assert loads_module(print_module(module)) == module
    return True


@one_in(7)
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_damaged_files_are_read_or_refused(path: Path) -> None:
    """A file with random tokens damaged is read, or refused with a message; what is read round trips."""
    rng = Random(path.name)
    parts = tokens(path.read_text(encoding="utf-8"))
    assert "".join(parts) == path.read_text(encoding="utf-8")
    outcomes = [survives(damaged(rng, parts)) for _ in range(40)]
    assert not all(outcomes)


@one_in(9)
def test_damaged_random_programs_are_read_or_refused() -> None:
    """The same for programs that use every node."""
    for seed in range(150):
        rng = Random(seed)
        text = print_module(loads_module(_text_of(seed)), rng.choice(["current", "old"]))
        parts = tokens(text)
        for _ in range(5):
            survives(damaged(rng, parts))


def _text_of(seed: int) -> str:
    return print_func(RandomProgram(Random(seed)).function(depth=4))


@pytest.mark.campaign
def test_many_damaged_programs_are_read_or_refused() -> None:
    """A long run of the same."""
    for seed in range(1_000, 6_000):
        rng = Random(seed)
        parts = tokens(_text_of(seed) if seed % 2 else rng.choice(FILES).read_text(encoding="utf-8"))
        for _ in range(10):
            survives(damaged(rng, parts))


MAPS = [
    "lambda n, h, w, c: [n, c//4, h, AXIS_SEPARATOR, w, c%4]",
    "lambda i: [T.min(i, 3), select(i < 3 and i > 0, i, 2), i & 7]",
]


def condition(text: str) -> object:
    """A condition over nothing."""
    return parse_condition(text, {})


PARSERS: tuple[Callable[[str], object], ...] = (parse_index_map, parse_shape, condition)


@one_in(4)
def test_damaged_maps_are_read_or_refused() -> None:
    """A map, a shape or a condition with random tokens damaged is read, or refused with a message."""
    rng = Random(7)
    for _ in range(1_500):
        text = damaged(rng, tokens(rng.choice(MAPS)))
        for parse in PARSERS:
            try:
                parse(text)
            except LayoutproofError as refusal:
                assert refusal.diagnostics[0].span is not None, text


HEAD = '@T.prim_func\ndef main(A: T.Buffer((16,), "int32"), n: T.int32):\n'

KILLERS = {
    "lets_and_terms": HEAD + "".join(f"    x{k}: T.int32 = n\n" for k in range(95)) + f"    A[0] = n{' + n' * 190}\n",
    "parentheses": HEAD + f"    A[0] = {'(' * 1000}n{')' * 1000}\n",
    "minus": HEAD + f"    A[0] = {'-' * 5000}n\n",
    "not": HEAD + f"    if {'not ' * 1000}n:\n        pass\n",
    "sum": HEAD + f"    A[0] = n{' + n' * 100000}\n",
    "min_of_many": HEAD + f"    A[0] = min({', '.join(['n'] * 5000)})\n",
    "and": HEAD + f"    if {' and '.join(['n < 3'] * 5000)}:\n        pass\n",
    "comparison": HEAD + f"    if {' < '.join(['n'] * 5000)}:\n        pass\n",
    "loops": HEAD + "".join(f"{'    ' * (k + 1)}for i{k} in range(2):\n" for k in range(99)) + "    " * 100 + "pass\n",
    "grid": HEAD
    + f"    for {', '.join(f'i{k}' for k in range(2000))} in T.grid({', '.join(['2'] * 2000)}):\n        pass\n",
    "lets": HEAD + "".join(f"    x{k}: T.int32 = n\n" for k in range(20_001)),
    "elifs": HEAD
    + "    if n < 0:\n        pass\n"
    + "".join(f"    elif n < {k}:\n        pass\n" for k in range(2000)),
    "many_digits": HEAD + f"    A[0] = {'9' * 5000}\n",
    "power_tower": HEAD + "    A[0] = 9 ** 9 ** 9 ** 9\n",
    "huge_power": HEAD + "    A[0] = 10 ** 1000000\n",
    "two_to_the_70": HEAD + f"    A[0] = {2**70}\n",
    "huge_lanes": HEAD + "    T.evaluate(T.broadcast(n, 2**40))\n",
    "huge_dtype": HEAD + f"    T.evaluate(T.Cast('int32x{'9' * 30}', n))\n",
    "doubling_comparisons": HEAD + f"    A[0] = {'T.Select(0 < ' * 60}n{' < 3, 1, 2)' * 60}\n",
    "null_bytes": HEAD + "\0" * 100,
    "surrogate": HEAD + "    A[0] = '\ud800'\n",
    "form_feeds": HEAD + "\x0c    A[0] = k \x0c\n",
    "unicode_newline": HEAD + "    # \u2028 \x85\n    A[0] = k\n",
    "empty": "",
    "backslash_end": HEAD + "    A[0] = 1 \\",
    "one_megabyte_line": HEAD + f"    A[0] = kk  # {'x' * 1_000_000}\n",
}


DEEP = {
    "parentheses_180": HEAD + f"    A[0] = {'(' * 180}n{')' * 180}\n",
    "calls": HEAD + f"    A[0] = {'T.min(n, ' * 120}n{')' * 120}\n",
    "loops_tight": HEAD + "".join(f"{' ' * (k + 1)}for i{k} in range(2):\n" for k in range(98)) + " " * 99 + "pass\n",
    "subscripts": HEAD + f"    A[0] = {'A[' * 100}0{']' * 100}\n",
    "attribute_tower": HEAD + f"    T.func_attr({{'a': {'[' * 110}1{']' * 110}}})\n",
    "lets_and_terms": HEAD + "".join(f"    x{k}: T.int32 = n\n" for k in range(60)) + f"    A[0] = n{' + n' * 90}\n",
    "loops_and_calls": HEAD + f"    for {', '.join(f'i{k}' for k in range(60))} in T.grid({', '.join(['2'] * 60)}):\n"
    f"        T.evaluate({'T.exp(' * 90}T.float32(1){')' * 90})\n",
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_programs_are_read(name: str) -> None:
    """What stays under the limits is read, printed and compared, in one stack of the usual size."""
    assert survives(DEEP[name])


@one_in(14)
@pytest.mark.parametrize("name", KILLERS)
def test_killers_are_refused(name: str) -> None:
    """Texts made to break parsers are refused with a short message."""
    with pytest.raises(LayoutproofError) as caught:
        loads(KILLERS[name], "killer.py")
    assert len(str(caught.value)) < 2_000


@pytest.mark.parametrize("depth", [1, 50, 95])
def test_deep_but_reasonable_programs_are_read(depth: int) -> None:
    """Nesting that real programs have is read, and prints and compares without trouble."""
    text = HEAD + f"    A[0] = n{' + n' * depth}\n" + "".join(f"    x{k}: T.int32 = n\n" for k in range(depth - 1))
    assert survives(text)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_marks_change_nothing(newline: str, mark: str) -> None:
    """A text means the same with any line ends, and after a byte-order mark."""
    text = HEAD + "    for i in range(16):\n        A[i] = i\n"
    assert loads(mark + text.replace("\n", newline)) == loads(text)


@pytest.mark.parametrize(
    "text", ["é = 1; A[é + kk] = 0", "A[ \x0c kk] = 0", "\tA[kk] = 0", "# \u2028 \x85\n    A[kk] = 0"]
)
def test_columns_count_characters(text: str) -> None:
    """A message's column counts characters, not bytes, and its line only Python's own line ends."""
    with pytest.raises(LayoutproofError) as caught:
        loads(f"{HEAD}    {text}\n", "c.py")
    span = caught.value.diagnostics[0].span
    assert span is not None and span.text == "kk"

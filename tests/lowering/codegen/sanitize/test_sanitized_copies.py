"""Layout changes as generated C under the sanitizers: tiles, padding, crops, writes past the cache, on memory aligned
to elements alone.
"""

from pathlib import Path
from typing import Any

import pytest
from tests.lowering.codegen.sanitize.harness import Call, sanitize
from tests.shares import one_in

from layoutproof.lowering.kernels.relayout import relayout

NCHW4C = "lambda n, c, h, w: [n, c//4, h, w, c%4]"
TILES = "lambda i, j: [i//16, j//16, i%16, j%16]"
TRANSPOSED = "lambda i, j: [j, i]"

# Map, shape, type, sizes of the symbols: shapes that no tile divides, one element, none. What is symbolic may be large,
# and is written past the cache whatever it is in the end.
CASES: dict[str, tuple[str, tuple[int | str, ...], str, tuple[dict[str, int], ...]]] = {
    "channels": (NCHW4C, (2, 7, 5, 9), "float32", ({},)),
    "any_channels": (NCHW4C, (2, "c", 5, "w"), "float32", ({"c": 7, "w": 67}, {"c": 1, "w": 1}, {"c": 4, "w": 0})),
    "any_channels_of_bytes": (NCHW4C, (1, "c", 3, "w"), "int8", ({"c": 70, "w": 13}, {"c": 3, "w": 130})),
    "tiles": (TILES, (33, 47), "float64", ({},)),
    "any_tiles": (TILES, ("m", "n"), "float32", ({"m": 33, "n": 47}, {"m": 16, "n": 64}, {"m": 1, "n": 1})),
    "any_tiles_of_halves": (TILES, ("m", "n"), "float16", ({"m": 70, "n": 35}, {"m": 64, "n": 64})),
    "any_transposition": (
        TRANSPOSED,
        ("m", "n"),
        "float32",
        ({"m": 67, "n": 131}, {"m": 64, "n": 64}, {"m": 3, "n": 500}, {"m": 1, "n": 17}),
    ),
    "any_transposition_of_bytes": (TRANSPOSED, ("m", "n"), "uint8", ({"m": 67, "n": 131}, {"m": 128, "n": 128})),
    "any_copy": ("lambda i: [i]", ("n",), "float32", ({"n": 1000}, {"n": 3}, {"n": 0})),
    "any_offset": ("lambda i: [(i + 3)//8, (i + 3)%8]", ("n",), "int16", ({"n": 1001}, {"n": 5})),
}

QUICK = ("any_channels", "any_transposition")


def calls(name: str, inverse: bool) -> list[Call]:
    """A layout change in one direction at each of its sizes, on memory aligned as the allocator does it, and to
    elements alone.
    """
    text, shape, dtype, sizes = CASES[name]
    pad: Any = 7 if dtype.startswith(("int", "uint")) else 7.5
    kernel = relayout(text, shape, dtype, inverse=inverse, pad_value=pad, check=False)
    func = kernel.schedule.lower()
    return [
        Call(f"{name}_{k}_{int(shifted)}", func, symbols, shifted=shifted)
        for k, symbols in enumerate(sizes)
        for shifted in (False, True)
    ]


@one_in(4)
def test_writes_past_the_cache_are_among_them() -> None:
    """A copy of symbolic size, as it is tried above, has the writes that want alignment, whatever size it is called
    with.
    """
    assert "_mm_stream" in calls("any_transposition", False)[0].source.text


@one_in(56)
@pytest.mark.parametrize("inverse", [False, True], ids=["to", "back"])
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.campaign) for name in CASES]
)
def test_copies_are_clean(name: str, inverse: bool, tmp_path: Path) -> None:
    """There and back, with padding and crops: the sanitizers are silent and every cell is the interpreter's."""
    sanitize(calls(name, inverse), tmp_path)


@pytest.mark.campaign
@pytest.mark.parametrize(
    "flags", [("-O0",), ("-O3", "-march=native", "-fopenmp"), ("-O2", "-mno-sse4.1", "-fopenmp")], ids=" ".join
)
@pytest.mark.parametrize("inverse", [False, True], ids=["to", "back"])
@pytest.mark.parametrize("name", CASES)
def test_every_build_of_copies_is_clean(name: str, inverse: bool, flags: tuple[str, ...], tmp_path: Path) -> None:
    """The same without optimisation, with all of it, and in parallel."""
    sanitize(calls(name, inverse), tmp_path, *flags)

"""Generated C that is broken on its way to the compiler: the comparison that each build ends with catches it, and
nothing is returned.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.lowering.codegen.sanitize.schedules import scheduled
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.c import CSource, emit_c
from layoutproof.lowering.schedule.schedule import Schedule


@dataclass(frozen=True)
class Slip:
    """One slip of a code generator: in the C of which operator, under which schedule, what stands there instead of
    what.
    """

    operator: str
    schedule: str
    old: str
    new: str


SLIPS: dict[str, Slip] = {
    "a loop that ends early": Slip("row_sum", "plain", "k1 < 14", "k1 < 13"),
    "a loop that begins late": Slip("row_sum", "plain", "k1 = 0", "k1 = 1"),
    "a stride": Slip("row_sum", "plain", "ax0 * 14", "ax0 * 13"),
    "an offset": Slip("pad", "plain", " - 5]", " - 4]"),
    "an operator": Slip("row_sum", "plain", "A_red[ax0] + A[", "A_red[ax0] - A["),
    "a comparison": Slip("pad", "plain", "1 <= i2", "1 < i2"),
    "a connective": Slip("pad", "plain", "i2 < 5 &&", "i2 < 5 ||"),
    "a constant": Slip("relu_nhwc", "plain", "0.0f", "1.0f"),
    "the sign of a zero": Slip("pad", "plain", ": 0.0f", ": -0.0f"),
    "a store that is lost": Slip("row_sum", "plain", "A_red[ax0] = 0.0f;", ";"),
    "the other choice": Slip("max_axis1", "plain", "= lp_max_f32(", "= fminf("),
    "two axes exchanged": Slip(
        "transpose", "plain", "T_transpose[ax0 * 30 + ax1 * 5 + ax2]", "T_transpose[ax0 * 30 + ax2 * 6 + ax1]"
    ),
    "a tile of another width": Slip("row_sum", "tiled", "ax0 * 15", "ax0 * 14"),
    "a sum in a wider type": Slip(
        "row_sum", "plain", "A_red[ax0] + A[ax0 * 14 + k1]", "A_red[ax0] + 1.0000001 * A[ax0 * 14 + k1]"
    ),
    "an integer that wraps in less": Slip(
        "double_int", "plain", "= lp_mul_i32(A[i], 2)", "= (uint8_t)lp_mul_i32(A[i], 2)"
    ),
}


def spoilt(slip: Slip) -> Callable[..., CSource]:
    """`emit_c` with that slip, in all places where it could be made."""

    def emit(*arguments: Any, **options: Any) -> CSource:
        good = emit_c(*arguments, **options)
        head, mark, body = good.text.partition(f"int {good.entry}(")
        assert slip.old in body, body
        return replace(good, text=head + mark + body.replace(slip.old, slip.new))

    return emit


def copy_of(slip: Slip) -> Schedule:
    """The schedule that the slip is made in."""
    return scheduled(slip.operator, slip.schedule)


@one_in(14)
@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sound kernel is equal to the interpreter; the broken one is refused with the buffer, the cell and both
    values.
    """
    slip = SLIPS[name]
    assert copy_of(slip).build().report.self_check.startswith("equal to the interpreter")
    monkeypatch.setattr("layoutproof.lowering.runtime.build_c.emit_c", spoilt(slip))
    with pytest.raises(LayoutproofError, match=r"disagree: \w+\[[\d, ]*\] is .*the program's value is") as caught:
        copy_of(slip).build()
    assert caught.value.diagnostics[0].code == codes.SELF_CHECK


def test_a_broken_kernel_is_caught_from_the_cache_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """That a library was built before does not make it right: it is compared each time."""
    slip = SLIPS["a loop that ends early"]
    monkeypatch.setattr("layoutproof.lowering.runtime.build_c.emit_c", spoilt(slip))
    for _ in range(2):
        with pytest.raises(LayoutproofError, match="disagree"):
            copy_of(slip).build()
    assert copy_of(slip).build(check=False).report.reused


def test_switched_off_means_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """check=False builds what it is given, and the report says that nothing was compared."""
    monkeypatch.setattr("layoutproof.lowering.runtime.build_c.emit_c", spoilt(SLIPS["an operator"]))
    assert copy_of(SLIPS["an operator"]).build(check=False).report.self_check == "off"


TRESPASSES: dict[str, tuple[Slip, str]] = {
    "one element too far": (
        Slip("row_sum", "plain", "ax0 < 16", "ax0 <= 16"),
        "writes outside of A_red, 0 bytes behind its end",
    ),
    "one element too early": (
        Slip("relu_nhwc", "plain", "compute[i0 * ", "compute[-1 + i0 * "),
        "writes outside of compute, 1 bytes before its beginning",
    ),
    "padding that must stay unchanged": (Slip("pad", "tiled", "i3 < 6", "i3 <= 6"), r"disagree: PadInput\["),
    "one symbol for another": (Slip("sym_row_sum", "plain", "* m", "* n"), r"disagree: A_red\["),
}


@one_in(4)
@pytest.mark.parametrize("name", TRESPASSES)
def test_a_trespass_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes beside an array or into unchangeable padding are refused, and so is one extent taken for another."""
    slip, words = TRESPASSES[name]
    monkeypatch.setattr("layoutproof.lowering.runtime.build_c.emit_c", spoilt(slip))
    with pytest.raises(LayoutproofError, match=words) as caught:
        copy_of(slip).build()
    assert caught.value.diagnostics[0].code == codes.SELF_CHECK

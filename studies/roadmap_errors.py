"""Errors in the text of the padding roadmap, and errors that programs like its own have made, each shown by a run.

Those of the text are found by evaluating what it says at every point; those of programs are cells of the study.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from layoutproof.ir.evaluate import evaluate
from layoutproof.verify.maps.check_map import check_map

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class KnownError:
    """One error: where it is, what was said, what is shown instead, and the cell behind it, if any."""

    place: str
    said: str
    shown: str
    key: str | None = None


def _padding_of(index_map: str, extent: int) -> set[tuple[int, ...]]:
    """The cells of padding of a map of one axis, by its proved predicate."""
    report = check_map(index_map, (extent,)).require()
    box = [int(evaluate(e, {})) for e in report.physical_shape if e is not None]
    predicate = report.padding.predicate
    assert predicate is not None
    points = product(*map(range, box))
    return {p for p in points if evaluate(predicate, {f"p{axis}": number for axis, number in enumerate(p)})}


def _eighteen() -> KnownError:
    padding = _padding_of("lambda i: [(i + 2)//8, (i + 2)%8]", 18)
    said = {(io, ii) for io, ii in padding if (io == 0 and ii < 2) or (io == 2 and ii >= 6)}
    missed = sorted(padding - said)
    return KnownError(
        "implicit default, padding of 18", "padding where io == 2 and ii >= 6", f"also {', '.join(map(str, missed))}"
    )


def _de_morgan() -> KnownError:
    right: Sequence[Callable[[int, int], bool]] = (
        lambda ii, fi: not ii < 2 and not ii + fi < 2,
        lambda ii, fi: True,
        lambda ii, fi: not ii >= 2 and not ii + fi >= 4,
    )
    said: Sequence[Callable[[int, int], bool]] = (
        lambda ii, fi: ii >= 2 or ii + fi >= 2,
        lambda ii, fi: True,
        lambda ii, fi: ii < 2 or ii + fi < 4,
    )
    points = list(product(range(3), range(8), range(3)))
    wrong = [p for p in points if right[p[0]](p[1], p[2]) != said[p[0]](p[1], p[2])]
    shown = f"{len(wrong)} of {len(points)} points change, {wrong[0]} the first"
    return KnownError("guards rewritten for readability", "not a and not b is a or b", shown)


def _wrap_around() -> KnownError:
    cells = sorted(_padding_of("lambda i: [i//4, i%4]", 14))
    held = [(0, (io - 14) % 4) for io, _ in cells]
    told = ", ".join(f"{cell} holds {source}" for cell, source in zip(cells, held, strict=True))
    return KnownError("pad value B[0, (io - 14) % 4]", "padding wraps to the beginning of the array", told)


def _out_of_bounds() -> KnownError:
    points = product(range(4), range(4), range(3))
    outside = [(io, ii, f) for io, ii, f in points if io + (ii + f) // 4 >= 4]
    shown = f"reads row 4 of 4 at (io, ii, f) = {', '.join(map(str, outside))}"
    return KnownError("convolution with its branch removed", "the guard may go when padding is zero", shown)


def _implicit_indices() -> KnownError:
    points = [(b, f) for b, f in product(range(18), range(3))]
    wrong = [(b, f) for b, f in points if b - f != b - f + 2]
    shown = f"the rewritten indices read A[b - f]: {len(wrong)} of {len(points)} points read another element"
    return KnownError("implicit default, its definition", "B[b] sums A[b - f + 2] * F[f]", shown)


def _first_index() -> KnownError:
    report = check_map("lambda i: [i//4, i%4]", (14,)).require()
    last = 13 // 4
    extent = report.physical_shape[0]
    assert extent is not None
    shown = f"i ends at 13, and 13//4 is {last}; the extent is {int(evaluate(extent, {}))}"
    return KnownError("shape of 14 in fours", "the first index runs to 3 (14//4)", shown)


_TEXT = (_eighteen, _de_morgan, _wrap_around, _out_of_bounds, _implicit_indices, _first_index)
_CELLS: Sequence[tuple[str, str, Mapping[str, str]]] = (
    ("maximum, padding of zeros", "zero is harmless", {"operator": "max-new-first", "value": "0"}),
    ("softmax, padding of zeros", "zero is harmless", {"operator": "softmax", "value": "0"}),
    (
        "element-wise through the padding, before a sum",
        "zeros stay zeros",
        {"operator": "exp", "value": "0", "policy": "default-arises"},
    ),
    (
        "a bias, before a sum",
        "zeros stay zeros",
        {"operator": "add-one", "value": "0", "policy": "default-arises"},
    ),
)


def known_errors(records: Sequence[Record]) -> list[KnownError]:
    """All of them: those of the text, and those whose cells are among the records, as far as these refute them."""
    from layoutproof.studies.cells import Cell

    found = [error() for error in _TEXT]
    for place, said, wanted in _CELLS:
        where = {"policy": "producer-writes", "shape": "fixed", **wanted}
        for record in records:
            if record["verdict"] == "refuted" and all(record[name] == value for name, value in where.items()):
                reason = next(claim["reason"] for claim in record["claims"] if claim["verdict"] == "refuted")
                found.append(KnownError(place, said, str(reason).splitlines()[0], Cell.of(record).key))
                break
    return found

"""The text of a study: what its tables say, made of its data. Each sentence names the cells that it stands on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from layoutproof.studies.report.results import Results
from layoutproof.studies.report.tables import Record, key_of


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence, and the keys of the cells without which it would not stand."""

    sentence: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cells:
    """The records of a study, to be asked."""

    records: Sequence[Record]

    def where(self, **coordinates: str) -> list[Record]:
        """The records with these coordinates."""
        return [r for r in self.records if all(r[name] == value for name, value in coordinates.items())]

    def one(self, **coordinates: str) -> Record | None:
        """The only record with these coordinates; None if there is none, or several."""
        found = self.where(**coordinates)
        return found[0] if len(found) == 1 else None


def facts_of(records: Sequence[Record]) -> list[Fact]:
    """Every sentence that the data supports, in a fixed order."""
    cells = Cells(records)
    return [fact for rule in RULES for fact in rule(cells)]


def text_of(results: Results) -> str:
    """The text of a study as Markdown."""
    lines = [f"# {results.study.title}", "", results.study.about.strip(), ""]
    for fact in facts_of(results.records):
        lines += [f"* {fact.sentence} ({'; '.join(f'`{key}`' for key in fact.keys)})"]
    for table in results.tables:
        lines += ["", table.markdown()]
    for name in sorted(results.figures):
        lines += ["", f"![{name}]({name}.svg)"]
    undecided = [r for r in results.records if r["verdict"] in ("unknown", "vacuous")]
    if undecided:
        lines += ["", "Not decided:", ""]
        lines += [f"* `{key_of(r)}`: {_first_line(r['reason'])}" for r in undecided]
    return "\n".join(lines) + "\n"


def _first_line(text: object) -> str:
    return str(text).splitlines()[0] if text else "no reason given"


def _proved(record: Record | None, fast_math: tuple[str, ...] = ()) -> bool:
    return record is not None and record["verdict"] == "proved" and tuple(record["licences"]) == fast_math


def _refuted(record: Record | None) -> bool:
    return record is not None and record["verdict"] == "refuted"


def _keys(*records: Record | None) -> tuple[str, ...]:
    return tuple(key_of(record) for record in records if record is not None)


_T1: Mapping[str, str] = {"dtype": "float32", "shape": "fixed", "layout": "block4", "policy": "producer-writes"}


def _zeros(cells: Cells) -> Iterator[Fact]:
    minus, plus = (cells.one(operator="sum-from-first", value=v, **_T1) for v in ("-0", "0"))
    started = cells.one(operator="sum", value="0", **_T1)
    if _proved(minus) and _proved(plus, ("nsz",)):
        yield Fact(
            "-0.0 is an identity of float addition whatever the sum starts with; +0.0 needs `nsz`", _keys(minus, plus)
        )
    if _proved(started):
        yield Fact("a sum that starts at +0.0 is never -0.0, and then +0.0 needs nothing", _keys(started))


def _maxima(cells: Cells) -> Iterator[Fact]:
    for name, what in (
        ("max-acc-first", "`acc > v ? acc : v`"),
        ("max-new-first", "`v > acc ? v : acc`"),
        ("max-ieee", "IEEE's `maximum`"),
        ("max-c", "C's `fmax`"),
    ):
        low, least = (cells.one(operator=name, value=v, **_T1) for v in ("-inf", "lowest"))
        if low is not None and low["verdict"] == "proved":
            yield Fact(f"minus infinity is an identity of {what}{_under(low)}", _keys(low))
        if least is not None and least["verdict"] == "proved":
            yield Fact(f"the least finite value is one{_under(least)}", _keys(least))
        quiet = cells.one(operator=name, value="nan", **_T1)
        if _proved(quiet):
            yield Fact(f"NaN itself is an identity of {what}: it is never chosen", _keys(quiet))


def _under(record: Record) -> str:
    taken = " ".join(record["licences"])
    return f" under {taken}" if taken else ", bit for bit"


def _products(cells: Cells) -> Iterator[Fact]:
    shared, finite, both, one = (
        cells.one(operator=name, value="0", **_T1)
        for name in ("weighted-shared", "weighted-finite", "weighted-both", "weighted-one")
    )
    if shared is not None and shared["verdict"] == "proved" and shared["licences"] and _proved(finite):
        sentence = (
            f"a product with one padded operand takes {' '.join(shared['licences'])}, or a factor known to be finite"
        )
        yield Fact(sentence, _keys(shared, finite))
    if _proved(both) and _refuted(one):
        yield Fact("zeros in both operands need nothing; beside anything, zeros in one are refuted", _keys(both, one))


def _semantics(cells: Cells) -> Iterator[Fact]:
    by_policy = {
        policy: {(r["operator"], r["dtype"]): r for r in cells.where(policy=policy)}
        for policy in ("poison", "undef-each-use", "undef-once", "canary")
    }
    pairs: tuple[tuple[str, str, str], ...] = (
        ("undef-once", "poison", "undef with one value for each cell allows what poison forbids"),
        (
            "undef-once",
            "undef-each-use",
            "undef with one value for each cell allows what another value at each use forbids",
        ),
        ("undef-each-use", "poison", "even another value at each use allows what poison forbids"),
    )
    for more, less, sentence in pairs:
        for place, record in by_policy[more].items():
            other = by_policy[less].get(place)
            if record["verdict"] == "proved" and _refuted(other):
                yield Fact(f"{sentence}: {place[0]}, {place[1]}", _keys(record, other))
    for place, record in by_policy["canary"].items():
        other = by_policy["undef-once"].get(place)
        if record["verdict"] == "proved" and _refuted(other):
            sentence = f"a NaN canary is not seen by {place[0]}, {place[1]}: it may read padding, and no result tells"
            yield Fact(sentence, _keys(record, other))


def _opposites(cells: Cells) -> Iterator[Fact]:
    """What a scan and a sum allow is the opposite: one reads no padding before its end, the other keeps zeros."""
    for dtype in ("float32", "int32"):
        found = {
            (name, policy): cells.one(operator=name, dtype=dtype, policy=policy)
            for name in ("scan", "sum")
            for policy in ("poison", "zero")
        }
        keeps, allows = found["sum", "zero"], found["scan", "poison"]
        others = found["scan", "zero"], found["sum", "poison"]
        if _proved(keeps) and _proved(allows) and all(map(_refuted, others)):
            sentence = (
                "a scan allows poison at the end of its rows and cannot keep zeros there; a sum needs zeros and does "
                f"not allow poison ({dtype})"
            )
            yield Fact(sentence, _keys(allows, others[0], keeps, others[1]))


def _by_count(cells: Cells) -> Iterator[Fact]:
    """Values that are no identity, and change nothing in the number in which padding holds them."""
    for operator in ("parity", "sum", "product"):
        for record in cells.where(operator=operator, verdict="proved", layout="block4", shape="fixed"):
            if any(claim["engine"] == "repeated update" for claim in record["claims"]):
                sentence = (
                    f"{record['value']}, no identity of the {operator} of {record['dtype']}, leaves it as it is in the "
                    "number of cells that pad a row"
                )
                yield Fact(sentence, _keys(record))


def _halos(cells: Cells) -> Iterator[Fact]:
    counted = cells.one(operator="average-pool-with-halo", dtype="float32", value="0")
    without = cells.one(operator="average-pool-without-halo", dtype="float32", value="0")
    if counted is not None and counted["verdict"] == "proved" and _refuted(without):
        sentence = (
            "no pad value makes the count of an average without the halo branch-free; the average that counts it is"
        )
        yield Fact(sentence, _keys(counted, without))


def _ways(cells: Cells) -> Iterator[Fact]:
    for record in cells.where(policy="never-read", verdict="proved"):
        yield Fact(f"{record['operator']} needs no guard even where padding may not be read", _keys(record))
    for record in cells.where(policy="default-arises", verdict="proved", shape="fixed"):
        if any(claim["claim"].startswith("fill") for claim in record["claims"]):
            sentence = f"{record['value']} arises by itself in the output of {record['operator']}, so no store fills it"
            yield Fact(sentence, _keys(record))


RULES: Sequence[Callable[[Cells], Iterator[Fact]]] = (
    _zeros,
    _maxima,
    _products,
    _by_count,
    _halos,
    _opposites,
    _semantics,
    _ways,
)

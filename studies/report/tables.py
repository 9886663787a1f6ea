"""The tables of studies, made of cells: each entry names the cell, or the cells, that it stands for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from layoutproof.studies.cells import NO_VALUE, Cell
from layoutproof.studies.operators import library
from layoutproof.studies.policies import POLICIES, ROADMAP
from layoutproof.studies.roadmap_errors import known_errors

Record = Mapping[str, Any]

MARKS: Mapping[str, str] = {
    "proved": "yes",
    "refuted": "no",
    "unknown": "?",
    "vacuous": "?",
    "not applicable": "-",
}
"""What stands in a table for each verdict."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One place of a table: its text, the verdict it shows, and the key of the cell behind it (none for headings)."""

    text: str
    verdict: str = ""
    key: str | None = None
    tip: str = ""


BLANK = Entry("")


@dataclass(frozen=True, slots=True)
class Table:
    """A table with one heading for each row and column; `note` says how to read it."""

    name: str
    title: str
    note: str
    corner: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[tuple[str, ...], tuple[Entry, ...]], ...]
    keys: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """The table for a terminal, in columns."""
        lines = [[*self.corner, *self.columns]]
        lines += [[*heads, *(entry.text for entry in entries)] for heads, entries in self.rows]
        widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
        shown = [
            "  ".join(f"{word:<{width}}" for word, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        return "\n".join([self.title, "", *shown, ""])

    def markdown(self) -> str:
        """The table as Markdown, under its title and note."""
        heads = [*self.corner, *self.columns]
        lines = [[*names, *(entry.text for entry in entries)] for names, entries in self.rows]
        shown = [f"| {' | '.join(map(_cell_text, line))} |" for line in (heads, *lines)]
        rule = "|" + "---|" * len(heads)
        return "\n".join([f"## {self.title}", "", self.note, "", shown[0], rule, *shown[1:]])


def _cell_text(text: str) -> str:
    return text.replace("|", "\\|") if text else " "


def key_of(record: Record) -> str:
    """The key of a record's cell."""
    return Cell.of(record).key


def entry_of(record: Record, *, value: bool = False) -> Entry:
    """What a table shows of a cell: its mark, the assumptions that it takes, and on request the pad value."""
    verdict = record["verdict"]
    words = [MARKS[verdict], *record["licences"]]
    if value and record["value"] != NO_VALUE:
        words.insert(1, f"{record['value']}:" if record["licences"] else record["value"])
    return Entry(" ".join(words), verdict, key_of(record), _tip(record))


def _tip(record: Record) -> str:
    if record["verdict"] == "proved":
        taken = ", ".join(record["licences"])
        return f"proved under {taken}" if taken else "proved bit for bit"
    if record["reason"]:
        return str(record["reason"]).splitlines()[0]
    left = [claim for claim in record["claims"] if claim["verdict"] != "proved"]
    return f"{left[0]['claim']}: {str(left[0]['reason']).splitlines()[0]}" if left else ""


def pivot(
    records: Iterable[Record],
    row: Callable[[Record], tuple[str, ...]],
    column: Callable[[Record], str],
    entry: Callable[[Record], Entry] = entry_of,
) -> tuple[tuple[str, ...], tuple[tuple[tuple[str, ...], tuple[Entry, ...]], ...]]:
    """Columns and rows in the order in which the records name them; the first record of a place is shown."""
    columns: dict[str, None] = {}
    rows: dict[tuple[str, ...], dict[str, Entry]] = {}
    for record in records:
        name = column(record)
        columns[name] = None
        rows.setdefault(row(record), {}).setdefault(name, entry(record))
    return tuple(columns), tuple(
        (heads, tuple(found.get(name, BLANK) for name in columns)) for heads, found in rows.items()
    )


def values_table(records: Sequence[Record]) -> Table:
    """T1: operators by pad values."""
    chosen = [r for r in records if r["shape"] == "fixed" and r["layout"] in ("block4", "offset") and _is_t1(r)]
    columns, rows = pivot(chosen, lambda r: (r["operator"], r["dtype"]), lambda r: r["value"])
    note = (
        "yes: the guard may go, or an element-wise operator leaves the value in its output's padding; with the "
        "fast-math assumptions that this takes, none for bit for bit. no: a run shows a difference. ?: not decided. "
        "-: not applicable."
    )
    return Table(
        "T1", "T1. Operator by pad value: least fast-math assumptions", note, ("operator", "type"), columns, rows
    )


def _is_t1(record: Record) -> bool:
    halo = library()[record["operator"]].halo if record["operator"] in library() else False
    return bool((record["layout"] == "offset") == halo and record["policy"] in ("producer-writes", "default-arises"))


def layouts_table(records: Sequence[Record]) -> Table:
    """Operators and pad values by layouts."""
    names = {r["operator"] for r in records if r["layout"] not in ("block4", "offset")}
    chosen = [r for r in records if r["operator"] in names and r["shape"] == "fixed" and r["dtype"] == "float32"]
    columns, rows = pivot(chosen, lambda r: (r["operator"], r["value"]), lambda r: r["layout"])
    note = "The same question for other layouts of the input, float32."
    return Table("T1b", "T1b. The same by layout", note, ("operator", "value"), columns, rows)


def semantics_table(records: Sequence[Record]) -> Table:
    """T3: operators by semantics."""
    columns, rows = pivot(records, lambda r: (r["operator"], r["dtype"]), lambda r: r["policy"])
    note = "yes: every guard may go under this meaning of padding. " + " ".join(
        f"{name}: {POLICIES[name].about}." for name in columns if name in POLICIES
    )
    return Table("T3", "T3. Operator by semantics of padding", note, ("operator", "type"), columns, rows)


def decision_table(records: Sequence[Record]) -> Table:
    """T2: the roadmap's seven ways by operators, with the value that does best."""
    fixed = [r for r in records if r["shape"] == "fixed"]
    columns, rows = pivot(
        sorted(_best(fixed), key=lambda r: ROADMAP.index(r["policy"])),
        lambda r: (f"{ROADMAP.index(r['policy']) + 1}", r["policy"]),
        lambda r: r["operator"],
        lambda r: entry_of(r, value=True),
    )
    note = (
        "For each way and operator the pad value that does best: fewest guards left, then fewest assumptions. "
        + " ".join(f"{number}: {POLICIES[name].about}." for number, name in enumerate(ROADMAP, 1))
    )
    return Table("T2", "T2. The roadmap's seven ways as a decision table", note, ("way", "policy"), columns, rows)


def costs_table(records: Sequence[Record]) -> Table:
    """What each of the seven ways costs, as formulas."""
    chosen = [r for r in _best([r for r in records if r["shape"] == "symbolic"]) if r["costs"]]
    wanted = ("extra_stores", "extra_loads", "extra_operations", "padding_bytes")
    rows = tuple(
        (
            (r["policy"], r["operator"], r["value"]),
            (entry_of(r), *(Entry(str(r["costs"].get(name, ""))) for name in wanted)),
        )
        for r in sorted(chosen, key=lambda r: ROADMAP.index(r["policy"]))
    )
    note = (
        "What a call does more than the guarded program, and the bytes of padding, over rows m and columns n. A guard "
        "that cannot go costs its tests instead."
    )
    columns = ("guards go", "extra stores", "extra loads", "extra operations", "bytes of padding")
    return Table("T2b", "T2b. What the seven ways cost", note, ("policy", "operator", "value"), columns, rows)


def _best(records: Iterable[Record]) -> list[Record]:
    """The best record for each policy and operator."""
    order = ["proved", "refuted", "unknown", "vacuous", "not applicable"]
    found: dict[tuple[str, str], Record] = {}
    for record in records:
        place = (record["policy"], record["operator"])
        rank = (order.index(record["verdict"]), record["guards_left"], len(record["licences"]))
        known = found.get(place)
        if known is None or rank < (order.index(known["verdict"]), known["guards_left"], len(known["licences"])):
            found[place] = record
    return list(found.values())


def kinds_table(records: Sequence[Record]) -> Table:
    """Kinds of operators of networks by contracts."""
    columns, rows = pivot(
        records,
        lambda r: (r["operator"],),
        lambda r: "anything" if r["policy"] == "element-wise" else r["value"],
    )
    note = "yes: every guard of the operator may go with this in the padding of its channels."
    return Table("T4", "T4. Kind of operator by contract", note, ("operator",), columns, rows)


LADDER = ("bit for bit", "nsz", "ninf", "nnan", "nnan ninf", "nnan ninf nsz")


def ladder_table(records: Sequence[Record]) -> Table:
    """F4 as a table: how many pad values each operator allows under which assumptions."""
    chosen = [r for r in records if r["shape"] == "fixed" and r["dtype"] == "float32" and _is_t1(r)]
    names = tuple(dict.fromkeys(r["operator"] for r in chosen))
    rows = []
    for name in names:
        mine = [r for r in chosen if r["operator"] == name and r["verdict"] == "proved"]
        total = len([r for r in chosen if r["operator"] == name])
        counts = [sum(set(r["licences"]) <= _words(rung) for r in mine) for rung in LADDER]
        rows.append(((name, str(total)), tuple(Entry(str(count)) for count in counts)))
    note = "The number of pad values, of those tried, with which the guard may go under these assumptions or fewer."
    return Table(
        "F4", "F4. The ladder of fast-math assumptions, float32", note, ("operator", "tried"), LADDER, tuple(rows)
    )


def _words(rung: str) -> set[str]:
    return set() if rung == LADDER[0] else set(rung.split())


def errors_table(records: Sequence[Record]) -> Table:
    """The known errors, with what shows each."""
    rows = tuple(
        ((str(number), each.place), (Entry(each.said), Entry(each.shown, "refuted" if each.key else "", each.key)))
        for number, each in enumerate(known_errors(records), 1)
    )
    note = "Errors of the roadmap's text, evaluated at every point, and of programs like its own, each a cell."
    return Table(
        "errors", "Known errors, each with the run that shows it", note, ("", "where"), ("said", "shown"), rows
    )


MAKERS: Mapping[str, tuple[Callable[[Sequence[Record]], Table], ...]] = {
    "values": (values_table,),
    "layouts": (layouts_table,),
    "semantics": (semantics_table,),
    "decision": (decision_table, costs_table),
    "ladder": (ladder_table,),
    "errors": (errors_table,),
}


def tables_of(names: Iterable[str], records: Sequence[Record]) -> list[Table]:
    """The tables of a study that are made of its cells alone."""
    made = (maker(records) for name in names for maker in MAKERS.get(name, ()))
    return [table for table in made if table.rows]

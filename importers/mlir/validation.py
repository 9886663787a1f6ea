"""Whether one function of MLIR does what another does: the comparison of their programs, with what MLIR presupposes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from layoutproof.importers.mlir import codes
from layoutproof.importers.mlir.builder import Overflow
from layoutproof.importers.mlir.flags import Flags, deviations, left_open, loosened, must_not_overflow
from layoutproof.importers.mlir.model import Op, Shaped, Strided, Type, Value
from layoutproof.importers.mlir.translate import Function, Options, find_functions, read_module, translate
from layoutproof.ir.diagnostic import error
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import read_text
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import stores_in
from layoutproof.lowering.compare.compare_programs import compare
from layoutproof.lowering.compare.comparison import Comparison
from layoutproof.lowering.compare.stated_layouts import MapLike
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.faults.reads import prove_readable
from layoutproof.verify.faults.valid_sizes import valid_sizes
from layoutproof.verify.verdict.verdict import Status, Verdict


@dataclass(frozen=True)
class Pair:
    """Two functions ready to be compared: `layouts` says how arguments of the first are stored in the second, `where`
    what holds of sizes in every run of the first without a fault. `again` translates both, with the operations of these
    names deviating, or only those with flags.
    """

    before: Function
    after: Function
    layouts: Mapping[str, str]
    where: str | None
    flags: Flags
    new_flags: Flags
    again: Callable[[Collection[str], bool], tuple[PrimFunc, PrimFunc]]

    def compared(
        self,
        layouts: Mapping[str, MapLike] | None = None,
        where: str | None = None,
        pads: Mapping[str, Any] | None = None,
        match: Mapping[str, str] | None = None,
    ) -> Comparison:
        """The comparison, with what a caller says of layouts, padding, names and sizes, as `compare` takes it."""
        terms = [f"({text})" for text in (where, self.where) if text is not None]
        maps = {**self.layouts, **(layouts if layouts is not None else {})}
        known = " and ".join(terms) if terms else None
        old, new = self.before.program, self.after.program
        found = compare(old, new, layouts=maps, pads=pads, match=match, where=known)
        found = loosened(_defined(found, self.before.fresh), self.flags, self.new_flags)
        names = self.new_flags.deviating(found.strictness) if found.status is Status.PROVED else frozenset[str]()
        if not names:
            return found
        for only_flagged in (True, False):
            old, new = self.again(names, only_flagged)
            deviating = compare(old, new, layouts=maps, pads=pads, match=match, where=known)
            if deviating.status is Status.PROVED:
                return found
        return left_open(found, names)


def _defined(found: Comparison, fresh: frozenset[str]) -> Comparison:
    """The comparison, with no refutation by a cell of new memory that the program before does not store to: the
    program after may be more defined.
    """
    verdicts = tuple(_open(verdict) if _is_undefined(verdict, fresh) else verdict for verdict in found.verdicts)
    return found if verdicts == found.verdicts else replace(found, verdicts=verdicts)


def _is_undefined(verdict: Verdict, fresh: frozenset[str]) -> bool:
    example = verdict.counterexample or {}
    element = example.get("element")
    named = element.get("buffer") in fresh if isinstance(element, Mapping) else False
    return verdict.status is Status.REFUTED and named and "before_store" not in example


def _open(verdict: Verdict) -> Verdict:
    reason = f"a run differs where the program before leaves a result undefined: {verdict.reason}"
    return replace(verdict, status=Status.UNKNOWN, reason=reason, counterexample=None)


def paired(before: Op, after: Op, may_alias: bool = False) -> Pair:
    """Two functions of one name, translated.

    Of a tensor that becomes a memref only what is read of it counts. Raises LayoutproofError where their types do not
    correspond.
    """
    first, second = before.block().arguments, after.block().arguments
    if len(first) != len(second):
        message = f"{len(first)} arguments before, {len(second)} after"
        raise error(codes.MLIR_OPERATION, f"{after.attribute('sym_name')}: {message}", after.span)
    _check_types(before, after)
    private = frozenset(
        k
        for k, (one, other) in enumerate(zip(first, second, strict=True))
        if isinstance(one.type, Shaped) and isinstance(other.type, Shaped)
        if (one.type.kind, other.type.kind) == ("tensor", "memref")
    )
    old = translate(before, Options(may_alias))
    # Where nothing else is seen of a function, that it returns is.
    options = Options(may_alias, observe_return=not _is_observed(old.program), fill=_reads_fresh_memory(old.program))
    flags, new_flags = Flags.of(before), Flags.of(after)
    obliged = must_not_overflow(flags, new_flags)
    here, there = (Overflow.OF_STORED, Overflow.FAULT) if obliged else (Overflow.WRAPS, Overflow.WRAPS)
    old_options = replace(options, no_overflow=here)
    new_options = replace(options, private=private, no_overflow=there)
    old, new = translate(before, old_options), translate(after, new_options)

    def again(names: Collection[str], only_flagged: bool) -> tuple[PrimFunc, PrimFunc]:
        moved = deviations((before, after), names)
        first = replace(old_options, deviations=moved, only_flagged=only_flagged)
        second = replace(new_options, deviations=moved, only_flagged=only_flagged)
        return translate(before, first).program, translate(after, second).program

    names = {one.name: other.name for one, other in zip(old.program.buffers, new.program.buffers, strict=False)}
    layouts = {name: layout.lambda_text() for name, layout in old.layouts.items() if names.get(name) not in new.layouts}
    condition = valid_sizes(old.program)
    where = None if condition is None else expr_text(condition, Style.PLAIN)
    return Pair(old, new, layouts, where, flags, new_flags, again)


def _check_types(before: Op, after: Op) -> None:
    """Refuse functions that callers cannot call with the same values: their shapes are for `compare` to judge, and a
    layout map of an argument that the function after does not have is one to compare through.
    """
    for what in ("argument", "result"):
        first, second = ([value.type for value in _passed(function, what)] for function in (before, after))
        for k, (one, other) in enumerate(zip(first, second, strict=False)):
            is_through = what == "argument" and isinstance(one, Shaped) and not isinstance(one.layout, Strided | None)
            differ = _difference(one, other, through_map=is_through)
            if differ is not None:
                raise after.fail(f"{what} {k}: {differ} is not that of the function before")


def _passed(function: Op, what: str) -> Sequence[Value]:
    block = function.block()
    return block.arguments if what == "argument" else block.ops[-1].operands


def _difference(before: Type, after: Type, *, through_map: bool) -> str | None:
    """What of a type a caller of the function before would miss, in a word; None where there is nothing."""
    if not (isinstance(before, Shaped) and isinstance(after, Shaped)):
        return None if before == after else "its type"
    if before.kind != after.kind:
        return None if (before.kind, after.kind) == ("tensor", "memref") else "its kind of type"
    if before.inner != after.inner:
        return "the type of its elements"
    if before.space != after.space:
        return "its memory space"
    same = before.layout == after.layout or (through_map and after.layout is None)
    return None if same or _is_more_general(after, before) else "its layout"


def _is_more_general(after: Shaped, before: Shaped) -> bool:
    """Whether each stride and the offset is left open, or the one that it was."""
    new, old = _strides(after), _strides(before)
    if new is None or old is None or len(new.strides) != len(old.strides):
        return False
    pairs = zip((*new.strides, new.offset), (*old.strides, old.offset), strict=True)
    return all(one is None or one == other for one, other in pairs)


def _strides(kind: Shaped) -> Strided | None:
    """The strides of a layout, those of row-major memory if there is none; None for a map."""
    if kind.layout is not None:
        return kind.layout if isinstance(kind.layout, Strided) else None
    found: list[int | None] = [1] * min(kind.rank, 1)
    for extent in reversed(kind.shape[1:]):
        found.insert(0, None if extent is None or found[0] is None else found[0] * extent)
    return Strided(tuple(found), 0)


def _reads_fresh_memory(program: PrimFunc) -> bool:
    """Whether a read may find memory that nothing has been stored to."""
    return any(verdict.status is not Status.PROVED for verdict in prove_readable(Facts.of(program)))


def _is_observed(program: PrimFunc) -> bool:
    memories = {buffer.data for buffer in program.buffers}
    return any(store.buffer.data in memories for store in stores_in(program.body))


def pair_of_texts(
    files: tuple[tuple[str, str], tuple[str, str]], names: tuple[str, str], may_alias: bool = False
) -> Pair:
    """The functions of these names in two files, each with its path and text. Raises LayoutproofError."""
    found = []
    for (path, text), name in zip(files, names, strict=True):
        functions = functions_of_text(path, text)
        if name not in functions:
            raise error(codes.MLIR_OPERATION, f"{path} has no function @{name} with a body")
        found.append(functions[name])
    return paired(found[0], found[1], may_alias)


def compare_files(before: Path, after: Path, *, may_alias: bool = False) -> list[tuple[str, Comparison]]:
    """The comparison of each function that both files have, by name, in the order of the first.

    Raises LayoutproofError for files that cannot be read, functions without a counterpart, and operations without a
    translation.
    """
    found = []
    for name, (old, new) in functions_in_both(before, after).items():
        pair = paired(old, new, may_alias)
        found.append((name, pair.compared()))
    return found


def functions_in_both(before: Path, after: Path) -> dict[str, tuple[Op, Op]]:
    """The functions with a body of two files, by name. Raises LayoutproofError where one has no counterpart."""
    first, second = (functions_of_text(str(path), read_text(path)) for path in (before, after))
    for here, there, path in ((first, second, after), (second, first, before)):
        for name, op in here.items():
            if name not in there:
                raise error(codes.MLIR_OPERATION, f"{path} has no function @{name} with a body", op.span)
    return {name: (op, second[name]) for name, op in first.items()}


def functions_of_text(path: str, text: str) -> dict[str, Op]:
    """The functions with a body of a file, by name. Raises LayoutproofError where it has none, or two of one name."""
    found: dict[str, Op] = {}
    for op in find_functions(read_module(text, path), path):
        name = str(op.attribute("sym_name"))
        if name in found:
            raise error(codes.MLIR_TEXT, f"{path} has two functions @{name}", op.span)
        found[name] = op
    return found

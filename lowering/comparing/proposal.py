"""A comparison as a rewrite: the cells, layout records and assumptions that two programs, a witness and contracts make one of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from layoutproof.ir.expr import FALSE, Expr
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.layout_record import LayoutRecord, LayoutStep, layout_records, with_record
from layoutproof.ir.primfunc import APART, PrimFunc
from layoutproof.ir.rewrite import CellMap, InstanceMap, Rewrite, Witness
from layoutproof.lowering.comparing.contracts import Choice, assumed_contracts
from layoutproof.lowering.comparing.stated import Source, Term
from layoutproof.lowering.effects import data_written
from layoutproof.lowering.layout import padding_of
from layoutproof.lowering.pad_stage import with_assume_stage


@dataclass(frozen=True, slots=True)
class Moved:
    """A parameter that lies elsewhere in the new program, by a map that is known now. `padding` is where its padding is, None where that
    is not known; FALSE where there is none."""

    term: Term
    index_map: IndexMap
    padding: Expr | None

    @property
    def name(self) -> str:
        """Its name before."""
        return self.term.old.name

    @property
    def is_open(self) -> bool:
        """Whether its contract is to be found."""
        return self.term.source is not Source.RECORDED and not self.term.pad_given and self.padding != FALSE

    @property
    def has_padding(self) -> bool:
        """Whether there may be padding."""
        return self.padding != FALSE

    @property
    def cells(self) -> CellMap:
        """Where its cells went."""
        return CellMap(self.term.old.data.name, self.term.new.data.name, self.index_map)


def proposal(
    old: PrimFunc, new: PrimFunc, moved: Sequence[Moved], contracts: Mapping[str, Choice], instances: Sequence[InstanceMap]
) -> Rewrite:
    """The rewrite from `old` to `new`, which is over the names of `old`, with parameters moved and their padding under these contracts.

    The new program gets the layout records that say so; and, where it reads padding under a contract that is a value, and assumes nothing
    of it, the assumption that its callers keep the contract.
    """
    for place in moved:
        new = _recorded(old, new, place, contracts.get(place.name))
    for data, record in layout_records(old).items():
        if data not in layout_records(new) and any(b.data.name == data for b in new.buffers):
            new = replace(new, attrs=with_record(new, data, record))
    if moved and not old.noalias and len(old.buffers) > 1:
        # Two parameters in one memory cannot both have it their own way once one of them is stored differently.
        new = replace(new, attrs=new.attrs.with_value(APART, True))
    witness = Witness(tuple(instances), tuple(place.cells for place in moved), tuple(place.name for place in moved))
    return Rewrite(old, new, witness)


def _recorded(old: PrimFunc, new: PrimFunc, place: Moved, contract: Choice) -> PrimFunc:
    term = place.term
    if term.source is Source.RECORDED:
        return new
    contract = term.pad if term.pad_given else contract
    contract = None if place.padding == FALSE else contract
    data = term.new.data.name
    record = layout_records(old).get(data, LayoutRecord(term.old.shape))
    step = LayoutStep(place.index_map, term.new.shape, contract)
    new = replace(new, attrs=with_record(new, data, record.with_step(step)))
    return _assuming(new, place, contract)


def _assuming(new: PrimFunc, place: Moved, contract: Choice) -> PrimFunc:
    """The program, told what its input's padding holds where it does not say so itself."""
    buffer = place.term.new
    if contract is None or contract.is_undef or place.padding is None or buffer.dtype.lanes > 1:
        return new
    if buffer.data in data_written(new.body) or any(True for _ in assumed_contracts(new, buffer)):
        return new
    return with_assume_stage(new, padding_of(new, buffer, place.padding, contract))

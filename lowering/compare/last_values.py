"""The final state of a buffer's padding, from dataflow of the new program. A proposal: the checker asks again."""

from __future__ import annotations

from collections.abc import Sequence

from layoutproof.ir.expr import Expr
from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.rewrite import Rewrite
from layoutproof.lowering.compare.padding_contracts import LastStored, last_stored
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.flow.known_values import Knowledge
from layoutproof.verify.flow.models import NEW, RewriteModel
from layoutproof.verify.flow.observable import padding_of
from layoutproof.verify.flow.simulate import OPERATIONS
from layoutproof.verify.isl.encode import NotQuasiAffine
from layoutproof.verify.isl.instance_sets import links_of, only
from layoutproof.verify.isl.space import BudgetExceeded
from layoutproof.verify.program.statement import NotModelled


def endings(rewrite: Rewrite, where: Expr | None, names: Sequence[str]) -> dict[str, LastStored]:
    """The final values of the padding that the last steps of these parameters' records introduced; unknown ones are
    missing.
    """
    if not names:
        return {}
    try:
        rewrite_model = RewriteModel.of(
            rewrite, Facts.of(rewrite.old, where), Facts.of(rewrite.new, where, rewrite.old), OPERATIONS
        )
        with rewrite_model.workspace.limited():
            facts = Knowledge.of(rewrite_model, rewrite_model.after, rewrite_model.new, NEW)
            return {name: _ending(rewrite_model, facts, name) for name in names}
    except (NotModelled, NotQuasiAffine, BudgetExceeded):
        return {}


def _ending(rewrite_model: RewriteModel, facts: Knowledge, name: str) -> LastStored:
    buffer = next(b for b in rewrite_model.rewrite.new.buffers if b.name == name)
    record = layout_records(rewrite_model.rewrite.new)[buffer.data.name]
    data = rewrite_model.memory(rewrite_model.new, buffer.data.name)
    box = rewrite_model.cells_region(rewrite_model.after, data)
    if len(box.encoder.space.dims) != len(record.shape):
        return LastStored()
    region = box.within(padding_of(record, len(record.steps) - 1, box.encoder))
    if region.is_empty:
        return LastStored(None, untouched=True)
    tag = f"{NEW}out_{buffer.data.name}"
    flow = rewrite_model.after.final(data).intersect_domain(only(region.named(tag)))
    untouched = all(origin == f"{NEW}in_{buffer.data.name}" for origin, _ in links_of(flow, tag))
    return last_stored([known.value for known in facts.of_flow(flow, tag, region)], buffer, untouched)

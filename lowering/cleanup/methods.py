"""The methods of a schedule that clean up."""

from __future__ import annotations

from collections.abc import Sequence

from layoutproof.lowering.cleanup.hoist import ALL_BUT_THREADS, HoistExpression
from layoutproof.lowering.cleanup.no_op import RemoveNoOp
from layoutproof.lowering.layout import ROOT
from layoutproof.lowering.methods import Methods
from layoutproof.lowering.step import Step


class CleanupMethods(Methods):
    """Statements without effect taken out, conditions moved to where they are decided."""

    def remove_no_op(self) -> Step:
        """Take out stores that are overwritten unseen, or store what is there; and loops and branches that then hold nothing."""
        return self.apply(self.made(RemoveNoOp))

    def hoist_expression(self, block: str = ROOT, flags: Sequence[str] = ALL_BUT_THREADS) -> Step:
        """Move conditions and lets out of the loops that do not change them, in one block or everywhere.

        The flags are `if_else_stmt`, `if_else_expr`, `boolean_expression`, `using_block_var`, `required_by_conditional` and `let_stmt`.
        """
        return self.apply(self.made(HoistExpression, block=block, flags=tuple(flags)))

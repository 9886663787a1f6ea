"""The methods of a schedule that make vectors."""

from __future__ import annotations

from layoutproof.lowering.methods import Methods
from layoutproof.lowering.step import Step
from layoutproof.lowering.vectors.pointer_cast import RewriteRampAsPointerCast
from layoutproof.lowering.vectors.type_rewrite import VectorTypeRewrite
from layoutproof.lowering.vectors.vectorize import VectorizeLoop


class VectorMethods(Methods):
    """Lanes for vectorized loops, and vectors in memory."""

    def vectorize_loop(self, scalarize: bool = False) -> Step:
        """Make lanes of all vectorized loops; with `scalarize` a statement that has no form for all lanes runs lane after lane."""
        return self.apply(self.made(VectorizeLoop, scalarize=scalarize))

    def rewrite_ramp_as_pointer_cast(self, target: str = "c") -> Step:
        """Access whole vectors through views with vectors as elements, where memory is aligned and the target can cast pointers."""
        return self.apply(self.made(RewriteRampAsPointerCast, target=target))

    def vector_type_rewrite(self, target: str = "vulkan", scalarize: bool = False) -> Step:
        """Give buffers of which only whole vectors are accessed vectors as elements; with `scalarize` other vector accesses become loops
        over lanes.
        """
        return self.apply(self.made(VectorTypeRewrite, target=target, scalarize=scalarize))

"""How wrong options of caches and transforms of temporaries are refused; other refusals stand in
tests/programs/lowering/caching.py.
"""

from __future__ import annotations

import pytest

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.lowering.schedule.primitives import PASSES


@pytest.mark.parametrize(("primitive", "arguments", "words"), [
    ("cache_read", {"block": "second"}, "needs the argument 'buffer'"),
    ("cache_write", {"block": "first", "buffer": "B", "scope": ""}, "argument 'scope' is '', a name is expected"),
    ("reindex", {"block": "first", "buffer": "B", "axis": 0}, "has no argument 'axis'"),
    ("inject_double_buffer", {"block": "first", "buffer": "B", "loop": 1.5}, "argument 'loop' is 1.5"),
    ("pad_einsum", {"block": "first", "padding": [4, "4"]}, "argument 'padding' is"),
])  # fmt: skip
def test_wrong_options_are_named(primitive: str, arguments: dict[str, object], words: str) -> None:
    """A missing, unknown or ill-typed option is refused by name."""
    with pytest.raises(LayoutproofError, match=words):
        PASSES[primitive].from_arguments(arguments)

"""All operators by family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.oracle.topi import places, sums
from tests.oracle.topi.draw import Operator

FAMILIES: Mapping[str, Sequence[Operator]] = {**sums.FAMILIES, **places.FAMILIES}

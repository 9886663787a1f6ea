"""Reference schedules: operators with blocked layouts, register tiles and vectors, made of the schedule's own proved steps alone.

Each function gives a `Schedule`: the program as people write it, the trace that makes a fast kernel of it, and a verdict of each step.
`schedule.build()` is the kernel, `schedule.certificate` what others can check again.
"""

from __future__ import annotations

from layoutproof.lowering.reference.conv2d import conv2d
from layoutproof.lowering.reference.matmul import matmul
from layoutproof.lowering.reference.rows import row_max, row_sum

__all__ = ["conv2d", "matmul", "row_max", "row_sum"]

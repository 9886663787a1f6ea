"""What goes between the process that compares and the one that runs machine code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Arguments = Sequence[Array]


@dataclass(frozen=True)
class Job:
    """A function to run once for each list of arguments: its text for TVM, or the name it has in a library."""

    key: str
    function: str
    runs: Sequence[Arguments]


@dataclass(frozen=True)
class Request:
    """Jobs of one batch; without a library they are compiled by TVM, without its simplifier where `plain` is set."""

    jobs: Sequence[Job]
    library: str | None = None
    plain: bool = False


@dataclass(frozen=True)
class Reply:
    """What became of a job: `refused` with a message, `running` a run by number, `done` with all outputs; `end` after
    the last.
    """

    state: str
    key: str = ""
    message: str = ""
    run: int = 0
    outputs: Sequence[Arguments] = ()

"""A run as a process of its own, to be sent signals: `python -m tests.cli.gate.driver WORKERS SECONDS TEXT...`, one
item for each text.

WORKERS is a number, or the address of a fleet. It writes the name of each outcome as it comes, and keeps a file of its
own in the folder $TMPDIR while it runs.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace

from tests.cli.gate.judges import OPTIONS, item, judge

from layoutproof.cli.gate.run_control import Stopped, stop_on_signals
from layoutproof.cli.gate.workers.item_limits import Limits
from layoutproof.cli.gate.workers.pool import run_items


def main(workers: str, seconds: str, *texts: str) -> int:
    """Run, and return the exit code."""
    limits = Limits(1, float(seconds) if seconds != "-" else None, None, workers)
    if workers.isdigit():
        limits = replace(limits, workers=int(workers), dask=None)
    try:
        with stop_on_signals(), tempfile.NamedTemporaryFile():
            items = (item(number, text) for number, text in enumerate(texts))
            for outcome in run_items(items, judge, OPTIONS, limits):
                print(outcome.name, flush=True)
    except Stopped as stop:
        print(stop, file=sys.stderr)
        return stop.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""The end of a process that ran code of gate files: threads and exit handlers that those left behind change nothing of it."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import NoReturn

_GATES = "layoutproof_gates_"  # what modules of gate files are called: see `gate.loading`


def leave_with(code: int) -> None:
    """From now on the process ends with this exit code, however it ends; at once, where a thread would keep it for ever."""
    if not any(name.startswith(_GATES) for name in sys.modules):
        return
    process, end = os.getpid(), os._exit

    def told(status: int = 0) -> NoReturn:
        end(code if os.getpid() == process else status)

    os._exit = told
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        end(code)

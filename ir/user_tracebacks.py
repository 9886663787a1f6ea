"""Tracebacks of input errors: in a script they end at the line that called the package, not in the package.

Installed when the first such error is made. `LAYOUTPROOF_TRACEBACK=full` shows everything.
"""

from __future__ import annotations

import os
import sys
from types import TracebackType

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_REAL = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_ROOMS = ("cli", "graph", "importers", "ir", "lowering", "verify")
_HIDDEN = tuple(os.path.join(root, room) + os.sep for root in (_PACKAGE, _REAL) for room in _ROOMS)
_LIBRARY = os.path.dirname(os.__file__) + os.sep
_installed = False


def lines_for_users(problem: BaseException) -> list[str] | None:
    """The traceback of an error of ours without frames of the package; None where all of it is to be shown."""
    import traceback  # which takes a while to load, and most runs have no error

    frames, inside = [], False
    for frame in traceback.extract_tb(problem.__traceback__):
        name = frame.filename
        # What the package calls of Python's own library is hidden with it, and a user's function that it calls is not.
        inside = name.startswith(_HIDDEN) or (inside and name.startswith(_LIBRARY) and "site-packages" not in name)
        if not inside:
            frames.append(frame)
    if os.environ.get("LAYOUTPROOF_TRACEBACK") == "full" or not frames:
        return None
    shown = traceback.StackSummary.from_list(frames).format()
    return ["Traceback (most recent call last):\n", *shown, f"{type(problem).__name__}: {problem}\n"]


def all_lines(problem: BaseException) -> list[str]:
    """The traceback as Python prints it."""
    import traceback

    return "".join(traceback.format_exception(problem)).splitlines()


def install(kind: type[BaseException]) -> None:
    """Print uncaught errors of this kind so, and leave all others to who printed them before."""
    global _installed
    if _installed:
        return
    _installed = True
    earlier = sys.excepthook

    def hook(found: type[BaseException], problem: BaseException, place: TracebackType | None) -> None:
        lines = lines_for_users(problem) if isinstance(problem, kind) else None
        if lines is None:
            earlier(found, problem, place)
        else:
            sys.stderr.write("".join(lines))

    sys.excepthook = hook

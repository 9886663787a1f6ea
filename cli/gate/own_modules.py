"""What code of a gate file may do to the process that judges it, undone: modules of its folder, the working directory, an early end.

Gate files of several folders are run by one process. Each has its own `layouts.py`, and must not get that of another.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NoReturn

_OURS = "layoutproof"
_modules: dict[Path, dict[str, ModuleType]] = {}


@contextlib.contextmanager
def importable(folder: Path) -> Iterator[None]:
    """Let modules of a folder be imported meanwhile, before all others, as Python does for a script.

    Those that are, are there again when the folder is importable the next time, and are not there in between. Modules of other folders
    that are called like one of this folder, as tests may have imported them, are not there meanwhile.
    """
    own = _modules.setdefault(folder, {})
    others = set(_from_elsewhere(folder))
    hidden = {name: module for name, module in sys.modules.items() if name in own or name in others}
    for name in others:
        del sys.modules[name]
    before = set(sys.modules)
    sys.modules.update(own)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name not in before and _stands_in(name, folder)]:
            own[name] = sys.modules[name]
        for name in own:
            sys.modules.pop(name, None)
        sys.modules.update(hidden)


def _from_elsewhere(folder: Path) -> Iterator[str]:
    """The modules that are loaded, called like one of a folder, and not of it; what is installed, and Python's own, stays what it is."""
    with contextlib.suppress(OSError):
        names = {name.removesuffix(".py") for name in os.listdir(folder)} - sys.stdlib_module_names - {_OURS}
        for name in list(sys.modules):
            top = name.partition(".")[0]
            file = getattr(sys.modules.get(top), "__file__", None) if top in names else None
            if file is not None and "site-packages" not in Path(file).parts and not _stands_in(name, folder):
                yield name


def _stands_in(name: str, folder: Path) -> bool:
    """Whether a module is found in a folder: it is a file there, or in a package there."""
    top = name.partition(".")[0]
    if top == _OURS or top.startswith(f"{_OURS}_gates_"):
        return False
    file = getattr(sys.modules.get(top), "__file__", None)
    if file is not None:
        return Path(file).parent == folder or (Path(file).name.startswith("__init__.") and Path(file).parents[1] == folder)
    # A folder without `__init__.py` is a package without a file.
    return any(Path(place).parent == folder for place in getattr(sys.modules.get(top), "__path__", ()))


@contextlib.contextmanager
def staying() -> Iterator[None]:
    """Come back to the working directory, and let `os._exit` raise SystemExit meanwhile: with it the run would end, and pass.

    A process that was forked meanwhile and comes out of here would be the run a second time: it ends.
    """
    here, process, end = os.getcwd(), os.getpid(), os._exit

    def told(status: int = 0) -> NoReturn:
        if os.getpid() == process:
            raise SystemExit(status)
        end(status)  # a process that was started here is free to go

    os._exit = told
    try:
        yield
    finally:
        os._exit = end
        if os.getpid() != process:
            end(1)
        os.chdir(here)

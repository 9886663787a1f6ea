"""The cache of pocl, which compiles kernels to machine code and loads it from there: not from a folder that others may
write to.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import warnings
from functools import cache
from pathlib import Path

from layoutproof.lowering.owners import REMEDY, others_may_write

VARIABLE = "POCL_CACHE_DIR"


def driver_cache_folder() -> Path:
    """Where pocl keeps compiled kernels, by its own rules."""
    for variable, below in ((VARIABLE, ""), ("XDG_CACHE_HOME", "pocl/kcache"), ("HOME", ".cache/pocl/kcache")):
        named = os.environ.get(variable)
        if named:
            return Path(named) / below
    return Path("/tmp/pocl/kcache")


# The driver looks once, when the first device is asked for.
@cache
def use_private_driver_cache() -> None:
    """Give pocl an empty folder for this process where others may write to its cache, with a warning."""
    folder = driver_cache_folder()
    try:
        reason = others_may_write(folder)
    except OSError as problem:
        reason = str(problem)
    if reason is None:
        return
    private = tempfile.mkdtemp(prefix="layoutproof-pocl-")
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    os.environ[VARIABLE] = private
    warnings.warn(f"no kernel is loaded from pocl's cache folder {folder}: {reason}; {REMEDY}", RuntimeWarning, 2)

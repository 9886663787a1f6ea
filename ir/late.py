"""numpy, loaded when something of it is first used: reading a map and proving it by its symbols need none of it.

`np` stands for the module in files that also serve without it; type checkers see numpy itself.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final


class _NoSuchValue:
    """What no value is an instance of: the types of numpy's values while numpy is not loaded."""


class _Late:
    """The module's names. Each is kept once it was asked for, so that it is found like any attribute."""

    def __getattr__(self, name: str) -> object:
        if name in ("ndarray", "integer") and "numpy" not in sys.modules:
            return _NoSuchValue
        value: object = getattr(import_module("numpy"), name)
        setattr(self, name, value)
        return value


np: Final = _Late()

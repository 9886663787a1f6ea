"""What reports call the gates of a file, and where in it they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from layoutproof.cli import codes
from layoutproof.ir.diagnostic import error
from layoutproof.lowering.gates import Gate

_LOCAL = "<locals>."


def name_gates(path: str, made: Sequence[Gate], namespace: Mapping[str, object]) -> dict[str, Gate]:
    """The gates by name: that of the function, with its class; where several have one, that of the variable.

    Raises LayoutproofError for gates that cannot be told apart.
    """
    bound: dict[int, str] = {}
    for name, value in namespace.items():
        if isinstance(value, Gate):
            bound.setdefault(id(value), name)
    shared = Counter(_own_name(gate) for gate in made)
    found: dict[str, Gate] = {}
    for gate in made:
        own = _own_name(gate)
        unclear = shared[own] > 1 or not own.isprintable() or "<" in own
        name = bound.get(id(gate)) if unclear else own
        if name is None or found.get(name, gate) is not gate:
            raise error(
                codes.GATE_FILE,
                f"{path}: two gates are called {own}" if shared[own] > 1 else f"{path}: a gate has no name: {own}",
                help="name them apart, by a variable for each or `__name__` before `gate`, or make one with cases",
            )
        found[name] = gate
    return found


def line_in(gate: Gate, module: str) -> int:
    """The line of a gate in a module that made it: its `def`, or the call where the function is another module's."""
    if gate.function.__module__ == module or not gate.calls:
        return gate.line
    return gate.calls[-1][1]


def _own_name(gate: Gate) -> str:
    """The name of a gate's function, after those of the classes that it stands in."""
    whole = str(getattr(gate.function, "__qualname__", gate.name))
    return f"{whole.rpartition(_LOCAL)[2].rpartition('.')[0]}.{gate.name}".removeprefix(".")

"""Cells on a Dask cluster: the library is imported here only, when a cluster is asked for."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from importlib import import_module
from typing import Any

from layoutproof.ir.diagnostic import error
from layoutproof.studies import codes
from layoutproof.studies.cells import Cell

CONNECT_SECONDS = 10.0
WINDOW = 256


def run_on_dask(
    waiting: Sequence[tuple[int, Cell]], work: Callable[[tuple[int, Cell]], dict[str, Any]], address: str
) -> Generator[dict[str, Any], None, None]:
    """The results of cells in the order in which the cluster finishes them, a bounded number in flight.

    Raises LayoutproofError if the library is missing or no scheduler answers.
    """
    try:
        distributed: Any = import_module("distributed")
    except ImportError as problem:
        hint = "pip install 'layoutproof[cluster]'"
        raise error(codes.STUDY_FOLDER, "a study on Dask needs the package distributed", help=hint) from problem
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False, name="layoutproof study")
    except (OSError, ValueError) as problem:
        raise error(codes.STUDY_FOLDER, f"no Dask scheduler answers at {address}: {problem}") from problem
    try:
        left = iter(waiting)
        first = [client.submit(work, item, pure=False) for _, item in zip(range(WINDOW), left, strict=False)]
        running = distributed.as_completed(first)
        for future in running:
            yield future.result()
            following = next(left, None)
            if following is not None:
                running.add(client.submit(work, following, pure=False))
    finally:
        client.close()

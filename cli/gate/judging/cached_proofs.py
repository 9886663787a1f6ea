"""The proof cache in a run: opened once in each process, with hits counted."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import click

from layoutproof.cli.gate.check_items import Options
from layoutproof.ir.diagnostic import Diagnostic
from layoutproof.lowering.proof_cache.store import ProofStore, place_of
from layoutproof.verify.settings import Settings, within
from layoutproof.verify.values.fast_math import ALL, FastMathSet


class Counted:
    """A store that records whether every request was a hit."""

    def __init__(self, store: ProofStore | None) -> None:
        self.store = store
        self.hits = 0
        self.misses = 0

    @property
    def known_all(self) -> bool:
        """Whether there were requests, and all were hits."""
        return self.hits > 0 and self.misses == 0

    def get(self, table: str, key: str) -> dict[str, Any] | None:
        found = self.store.get(table, key) if self.store is not None else None
        self.hits += found is not None
        self.misses += found is None
        return found

    def put(self, table: str, key: str, value: dict[str, Any]) -> None:
        if self.store is not None:
            self.store.put(table, key, value)


@contextmanager
def remembered(options: Options, allowed: FastMathSet = ALL) -> Iterator[Counted]:
    """Within it, steps are looked up in the cache and stored there; budgets and `allowed` fast-math assumptions are
    those of the run.
    """
    store = store_of(options)
    counted = Counted(store)
    # Without a cache nothing is looked up, and no key is made.
    with within(Settings(options.budget_scale, allowed, counted if store is not None else None)):
        yield counted


def store_of(options: Options) -> ProofStore | None:
    """The proof cache of a run, opened once in each process; None if it uses none."""
    return None if options.cache is None else _opened(str(place_of(options.cache)))


@lru_cache(maxsize=4)
def _opened(place: str) -> ProofStore:
    return ProofStore.open(place, _say)


def _say(diagnostic: Diagnostic) -> None:
    """Report a problem with the cache on standard error; the run continues without it."""
    sys.stderr.write(f"{diagnostic.render()}\n")  # in one piece: workers write there at one time
    sys.stderr.flush()


def cache_place(cache: Path | None, no_cache: bool) -> str | None:
    """The place of the proof cache, None for no cache. Raises click.UsageError for contradicting options."""
    if cache is not None and no_cache:
        raise click.UsageError("--cache and --no-cache contradict each other.")
    return None if no_cache else str(place_of(None if cache is None else str(cache)))

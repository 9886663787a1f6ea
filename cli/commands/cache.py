"""`layoutproof cache`: inspect, clear and verify the proof cache."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from layoutproof.cli import codes
from layoutproof.cli.options import file_path, jobs_option, number_of_jobs, result_options, takes
from layoutproof.cli.output import answer_text, check_output, emit, say
from layoutproof.cli.render import cache_report as render
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, error
from layoutproof.lowering.codes import CACHE_ENTRY
from layoutproof.lowering.proof_cache.backend import TABLES
from layoutproof.lowering.proof_cache.store import Info, ProofStore, is_there, place_of
from layoutproof.lowering.proof_cache.versions import tool_digest

PROOF, REPORT = "proof", "report"
EXIT_WRONG, EXIT_UNCONFIRMED = 1, 3
_SEED = 0

place_option = click.option(
    "--cache",
    "place",
    type=file_path,
    metavar="PLACE",
    help="A file that ends in .sqlite, or a folder; by default the user's own cache.",
)


@click.group("cache")
def cache_command() -> None:
    """Look into the proof cache, clear it, or check all of it again.

    It is at $LAYOUTPROOF_PROOF_CACHE, else in the user's cache folder, unless --cache names another place.
    """


@dataclass(frozen=True, slots=True)
class ClearRequest:
    """Which entries of which cache to remove."""

    place: Path | None
    stale: bool
    reports: bool
    output_format: str
    output: Path | None


@dataclass(frozen=True, slots=True)
class VerifyRequest:
    """Which entries of which cache to check again, and how."""

    place: Path | None
    sample: int | None
    jobs: int | None
    seconds: float | None
    output_format: str
    output: Path | None


@cache_command.command("info")
@place_option
@result_options
def info_command(place: Path | None, output_format: str, output: Path | None) -> int:
    """Say where the cache is, how large it is, and what it holds."""
    path = _path(place)
    found = None
    if is_there(path):
        with _Opened(path) as store:
            found = store.there()
    _say(
        output_format, output, render.info_to_dict(path, found, tool_digest()), lambda: render.render_info(path, found)
    )
    return 0


@cache_command.command("clear")
@place_option
@click.option("--stale", is_flag=True, help="Only what other versions of the tool and its engines left.")
@click.option(
    "--reports", is_flag=True, help="Only reports on whole schedules and comparisons; the proofs of their steps stay."
)
@result_options
@takes(ClearRequest)
def clear_command(request: ClearRequest) -> int:
    """Remove what the cache holds. The place stays a cache; nothing else that is there is touched."""
    path = _path(request.place)
    removed, before, after = 0, 0, 0
    if is_there(path):
        with _Opened(path) as store:
            before = store.there().size
            gone = store.opened.clear(
                tool_digest() if request.stale else None, (REPORT,) if request.reports else TABLES
            )
            if gone is None:
                raise store.refused()
            removed, after = gone, store.there().size
    cleared = render.Cleared(path, request.stale, request.reports, removed, before, after)
    _say(request.output_format, request.output, render.cleared_to_dict(cleared), lambda: render.render_cleared(cleared))
    return 0


@cache_command.command("verify")
@place_option
@click.option(
    "--sample", type=click.IntRange(1), metavar="N", help="Only N entries, chosen at random, the same ones each time."
)
@jobs_option
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 3600),
    metavar="S",
    help="For each question, of each solver; by default 20.",
)
@result_options
@takes(VerifyRequest)
def verify_command(request: VerifyRequest) -> int:
    """Check every proof in the cache again: by the checker, the interpreter, and two solvers where two are installed.

    Reports on whole schedules and comparisons are judged again, with nothing taken from the cache.

    Exit codes: 0 all are right; 1 an entry is wrong or damaged, and was set aside; 2 there is no cache, or it cannot be
    used; 3 an entry could not be confirmed.
    """
    check_output(request.output)
    path = _path(request.place)
    if not is_there(path):
        raise error(
            codes.NO_CACHE,
            f"there is no proof cache at {path}",
            help="`layoutproof check` makes one unless told not to",
        )
    with _Opened(path) as store:
        found = _verified(store, request)
    _say(request.output_format, request.output, render.verified_to_dict(found), lambda: render.render_verified(found))
    if found.wrong or found.damaged or any(report.certain for report in found.reports.wrong):
        return EXIT_WRONG
    return EXIT_UNCONFIRMED if found.unconfirmed or found.reports.wrong else 0


def _path(place: Path | None) -> Path:
    return place_of(None if place is None else str(place))


def _verified(store: _Opened, request: VerifyRequest) -> render.Verified:
    # Solvers and the checker are loaded here, where they are needed, and not for `info` and `clear`.
    from layoutproof.cli.gate.judging.judge import check_reports, set_aside
    from layoutproof.cli.output import stages
    from layoutproof.lowering.proof_cache.verifying import Found, verify_entries
    from layoutproof.verify.certificate.recheck import SECONDS
    from layoutproof.verify.smt.engines import installed

    tool, cache = tool_digest(), store.opened
    keys = sorted(key for key, value in cache.entries(PROOF) if value.get("tool") == tool)
    chosen, jobs = _chosen(keys, request.sample), number_of_jobs(request.jobs)
    engines = installed()
    asked = engines if len(engines) > 1 else {}
    limit = SECONDS if request.seconds is None else request.seconds
    done = verify_entries(_entries(cache, chosen), asked, jobs=jobs, seconds=limit, watched=stages)
    wrong, unconfirmed = (
        [_named(cache, entry) for entry in done.of(found)] for found in (Found.WRONG, Found.UNCONFIRMED)
    )
    for named in wrong:
        named.aside = cache.set_aside(PROOF, named.checked.key, named.entry)
    forgotten = _forget_reports(cache) if wrong else 0
    with stages(1) as advance:
        reports = check_reports(
            cache, tool, lambda keys: _chosen(keys, request.sample), jobs, lambda: advance("judging again")
        )
    forgotten += set_aside(cache, reports.wrong)
    tables = store.there().tables
    stale = tables[PROOF].entries - (len(keys) - sum(named.aside is not None for named in wrong))
    return render.Verified(
        store.path, len(keys), stale, reports, done, tuple(engines), wrong, unconfirmed, cache.damaged, forgotten
    )


def _chosen(keys: Sequence[str], sample: int | None) -> Sequence[str]:
    """A reproducible choice of keys."""
    return keys if sample is None or sample >= len(keys) else random.Random(_SEED).sample(keys, sample)


def _entries(cache: ProofStore, keys: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for key in keys:
        entry = cache.get(PROOF, key)
        if entry is not None:
            yield key, entry


def _named(cache: ProofStore, checked: Any) -> render.Named:
    entry = cache.get(PROOF, checked.key)
    return render.Named(checked, entry if entry is not None else {})


def _forget_reports(cache: ProofStore) -> int:
    """Remove all reports, since they may rest on the proof that was wrong. Returns their number."""
    reports = [key for key, value in cache.entries(REPORT) if cache.set_aside(REPORT, key, value) is not None]
    return len(reports)


class _Opened:
    """An existing cache, opened for inspection: problems with it are errors here, where a run would continue without
    it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._said: list[Diagnostic] = []
        self.opened = ProofStore.open(str(path), self._hear, mend=False)
        if not self.opened.usable:
            raise self.refused()

    def __enter__(self) -> _Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.opened.close()

    def there(self) -> Info:
        found = self.opened.info(tool_digest())
        if found is None:
            raise self.refused()
        return found

    def refused(self) -> LayoutproofError:
        """The error of a cache that cannot be used."""
        said = self._said[-1] if self._said else None
        what = said.message if said is not None else f"the proof cache {self.path} cannot be used"
        return error(codes.CACHE_REFUSED, what, help=said.help if said is not None else None)

    def _hear(self, diagnostic: Diagnostic) -> None:
        self._said.append(diagnostic)
        if diagnostic.code == CACHE_ENTRY:
            say([diagnostic])


def _say(output_format: str, output: Path | None, data: dict[str, Any], text: Callable[[], str]) -> None:
    emit(answer_text(data) if output_format == "json" else text(), output)

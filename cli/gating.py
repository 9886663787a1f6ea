"""A run of the gate from its request to its exit code: items found, judged, counted, and reported in as many forms as were asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import click

from layoutproof.cli import codes
from layoutproof.cli.gate.bar import watched
from layoutproof.cli.gate.baseline import Baseline
from layoutproof.cli.gate.comparisons import recall as recall_compared
from layoutproof.cli.gate.discover import find_items
from layoutproof.cli.gate.items import Item, Options
from layoutproof.cli.gate.judge import judge
from layoutproof.cli.gate.known import store_of
from layoutproof.cli.gate.limits import Limits
from layoutproof.cli.gate.outcome import Outcome
from layoutproof.cli.gate.policy import Policy, read_codes
from layoutproof.cli.gate.pool import run_items
from layoutproof.cli.gate.recalling import run_recalling
from layoutproof.cli.gate.schedules import recall, timeless
from layoutproof.cli.gate.shard import Shard, parse_shard
from layoutproof.cli.gate.signals import Stopped, stop_on_signals
from layoutproof.cli.gate.spool import Spool
from layoutproof.cli.gate.summary import Summary
from layoutproof.cli.gate.targets import check_targets
from layoutproof.cli.output import writing
from layoutproof.cli.recheck import number_of_jobs
from layoutproof.cli.render.gate.json_lines import render_json
from layoutproof.cli.render.gate.text import STYLES, render_outcome, render_summary, render_text
from layoutproof.ir.diagnostic import counted, error
from layoutproof.lowering.proof_cache.places import place_of
from layoutproof.verify.values.licences import Licences

Renderer = Callable[[Iterable[Outcome], Summary, TextIO], None]

SECONDS = 600.0
_MEGABYTE = 1 << 20
_MOST_NOTES = 20  # on entries of a baseline that are needed no more
FORMATS = ("text", "json", "junit", "sarif", "github", "html")
_STREAMED = ("text", "json")  # printed while outcomes come in
_WHOLE = ("json", "html")  # which show every obligation
_ELSEWHERE = {
    "junit": ("layoutproof.cli.render.gate.junit", "render_junit"),
    "sarif": ("layoutproof.cli.render.gate.sarif", "render_sarif"),
    "github": ("layoutproof.cli.render.gate.github", "render_github"),
    "html": ("layoutproof.cli.render.gate.html", "render_html"),
}
_COLOURS: Mapping[str, Mapping[str, Any]] = {
    style: {"fg": style.split()[-1], "bold": style.startswith("bold")} for style in set(STYLES.values())
}


@dataclass(frozen=True, slots=True)
class Request:
    """What a run was asked for.

    `paths`, `traces` and `function` are as `find_items` takes them. `form` is the format of what is printed, or written to `output`;
    `reports` are further formats with their files. `stable` leaves out what differs between runs that find the same. `write_baseline` is
    where the findings of this run are to be written as known ones. `patient`: nobody has said how long an item may take. `items`, where
    they are given, are what is checked, and `paths` the files that they name.
    """

    paths: tuple[Path, ...]
    traces: tuple[Path, ...]
    function: str | None
    options: Options
    limits: Limits
    policy: Policy
    shard: Shard | None = None
    form: str = "text"
    output: Path | None = None
    reports: tuple[tuple[str, Path], ...] = ()
    stable: bool = False
    write_baseline: Path | None = None
    patient: bool = True
    items: tuple[Item, ...] | None = None

    @property
    def keeps_baseline(self) -> bool:
        """Whether a baseline is read or written, for which all outcomes are looked at once more."""
        return self.write_baseline is not None or self.policy.baseline is not None


def request_of(
    *,
    paths: Sequence[Path],
    traces: Sequence[Path],
    function: str | None,
    certificate: Path | None,
    allowed: Licences,
    budget: float,
    select: Sequence[str],
    ignore: Sequence[str],
    allow_unknown: bool,
    baseline: Path | None,
    write_baseline: Path | None,
    workers: int | None,
    shard: str | None,
    timeout: float | None,
    memory: int | None,
    dask: str | None,
    cache: Path | None,
    no_cache: bool,
    stable: bool,
    form: str,
    output: Path | None,
    reports: Sequence[tuple[str, Path]],
    items: tuple[Item, ...] | None = None,
    witness: Path | None = None,
) -> Request:
    """The request that the options of `layoutproof check` make, or, with `items`, those of `layoutproof compare`.

    Raises LayoutproofError or click.UsageError for options that make none.
    """
    if cache is not None and no_cache:
        raise click.UsageError("--cache and --no-cache contradict each other.")
    jobs = number_of_jobs(workers)
    known = Baseline.load(baseline) if baseline is not None else None
    options = Options(
        licences=tuple(sorted(allowed)),
        effort=budget,
        detail="html" in {form, *(kind for kind, _ in reports)},
        cache=None if no_cache else str(place_of(str(cache) if cache is not None else None)),
        certificate=str(certificate) if certificate is not None else None,
        witness=str(witness) if witness is not None else None,
    )
    return Request(
        tuple(paths),
        tuple(traces),
        function,
        options,
        Limits(jobs, timeout or None, memory * _MEGABYTE if memory is not None else None, dask),
        Policy(read_codes(select), read_codes(ignore), allow_unknown, known),
        parse_shard(shard) if shard is not None else None,
        form,
        output,
        tuple(reports),
        stable,
        write_baseline,
        patient=timeout is None,
        items=items,
    )


def run_gate(request: Request) -> int:
    """Do what is asked, and return the exit code. Raises LayoutproofError for a request that cannot be met."""
    try:
        os.getcwd()
    except FileNotFoundError as problem:
        raise error(codes.FILE_ACCESS, "the working directory is not there any more") from problem
    reports = ((f"--report {form}", path) for form, path in request.reports)
    made = ((f"--{name}", Path(path) if path is not None else None) for name, path in _made(request.options))
    targets = (("--output", request.output), *made, ("--write-baseline", request.write_baseline), *reports)
    baseline = request.policy.baseline
    check_targets(targets, (*request.paths, *request.traces), Path(baseline.path) if baseline is not None else None)
    try:
        with stop_on_signals(), Spool() as spool:
            return _run(request, spool)
    except Stopped as stopped:
        click.echo(f"{stopped}; what was proved is in the cache" if request.options.cache is not None else str(stopped), err=True)
        return stopped.exit_code


def _made(options: Options) -> tuple[tuple[str, str | None], ...]:
    """The files that judging an item makes, by their options."""
    return ("certificate", options.certificate), ("witness", options.witness)


def _run(request: Request, spool: Spool) -> int:
    summary = Summary()
    first = tuple(islice(_items(request), 2))
    alone = len(first) == 1
    if request.options.certificate is not None and len(first) > 1:
        raise error(codes.CERTIFICATE_OF_MANY, "a certificate is of one schedule, gate or rewrite; here are several")
    items = _items(request) if len(first) > 1 else iter(first)
    live = _Live(request, alone)
    # A bar and the report do not stand on one terminal at one time.
    held = live.form is not None and sys.stderr.isatty() and not alone
    kept_for_later = held or live.form is None or bool(request.reports) or request.keeps_baseline
    for outcome in _outcomes(request, items, alone):
        judged = request.policy.apply(outcome)
        kept = timeless(judged) if request.stable else judged
        summary.add(kept)
        if not held:
            live.tell(kept)
        if kept_for_later:
            spool.add(kept)
    for outcome in spool if held else ():
        live.tell(outcome)
    live.end(summary)
    _report(request, spool, summary, alone)
    return summary.exit_code


def _items(request: Request) -> Iterator[Item]:
    items = iter(request.items) if request.items is not None else find_items(request.paths, request.traces, request.function)
    return items if request.shard is None else request.shard.of(items)


def _outcomes(request: Request, items: Iterator[Item], alone: bool) -> Iterator[Outcome]:
    limits = replace(request.limits, workers=1) if alone else request.limits
    if request.patient and limits.workers > 1:
        limits = replace(limits, seconds=SECONDS)
    whole = alone or not {request.form, *(form for form, _ in request.reports)}.isdisjoint(_WHOLE)
    options = replace(request.options, brief=not whole)
    store = store_of(options)
    if store is not None and not store.usable and limits.dask is None:
        options = replace(options, cache=None)  # said once, and not by each worker
    # Counting reads the files once more, which is quick, and done only for who looks at the bar.
    total = None if not sys.stderr.isatty() else 1 if alone else sum(1 for _ in _items(request))
    known = partial(recall_compared if request.items is not None else recall, options=options)
    outcomes = run_recalling(items, known, lambda rest: run_items(rest, judge, options, limits))
    return watched(outcomes, total)


class _Live:
    """What is printed while outcomes come in: text and JSON, which need not wait for the end."""

    def __init__(self, request: Request, alone: bool) -> None:
        self.form = request.form if request.output is None and request.form in _STREAMED else None
        self.alone = alone

    def tell(self, outcome: Outcome) -> None:
        """Print one outcome."""
        if self.form == "text":
            # click leaves styles out where the stream is no terminal. A run of nothing but a mistake in the input tells that as such.
            wrong = self.alone and outcome.verdict is None
            click.echo(render_outcome(outcome, alone=self.alone, styled=_styled), nl=False, err=wrong)
        elif self.form == "json":
            render_json([outcome], Summary(), sys.stdout, lines=not self.alone)

    def end(self, summary: Summary) -> None:
        """Print the count."""
        if self.form == "text" and not self.alone:
            click.echo(render_summary(summary, _styled), nl=False)


def _styled(text: str, style: str) -> str:
    return click.style(text, **_COLOURS[style])


def _report(request: Request, spool: Spool, summary: Summary, alone: bool) -> None:
    printed = request.form in _STREAMED and request.output is None
    forms = [] if printed else [(request.form, request.output)]
    for form, path in (*forms, *request.reports):
        renderer = _renderer(form, alone)
        if path is None:
            renderer(spool, summary, sys.stdout)
        else:
            with writing(path) as file:
                renderer(spool, summary, file)
    baseline = request.policy.baseline
    if baseline is not None and request.shard is None and request.write_baseline is None:
        unneeded = baseline.stale(spool)
        for entry in unneeded[:_MOST_NOTES]:
            click.echo(f"note: the baseline's entry {entry.code} {entry.name} is needed no more", err=True)
        if len(unneeded) > _MOST_NOTES:
            click.echo(f"note: nor are {len(unneeded) - _MOST_NOTES:,} more; --write-baseline leaves them out", err=True)
    if request.write_baseline is not None:
        known = Baseline.of(spool)
        known.save(request.write_baseline)
        click.echo(f"{request.write_baseline}: {counted(len(known.entries), 'known finding', 'known findings')}", err=True)


def _renderer(form: str, alone: bool) -> Renderer:
    if form == "text":
        return lambda outcomes, summary, out: render_text(iter(outcomes), summary, out)
    if form == "json":
        return lambda outcomes, summary, out: render_json(outcomes, summary, out, lines=not alone)
    module, name = _ELSEWHERE[form]
    renderer: Renderer = getattr(import_module(module), name)
    return renderer


__all__ = ["FORMATS", "Request", "run_gate"]

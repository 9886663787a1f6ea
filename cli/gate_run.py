"""A run of the gate from its request to its exit code: items found, judged, counted and reported in each format."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

import click

from layoutproof.cli import codes
from layoutproof.cli.gate.check_items import Item, Options, Shard, find_items, parse_shard
from layoutproof.cli.gate.judging.cached_proofs import cache_place, store_of
from layoutproof.cli.gate.judging.comparisons import recall as recall_compared
from layoutproof.cli.gate.judging.judge import judge
from layoutproof.cli.gate.judging.schedules import recall, timeless
from layoutproof.cli.gate.outcomes import Finding, Kind, Outcome, Spool, Summary
from layoutproof.cli.gate.policy import Baseline, Policy, read_codes
from layoutproof.cli.gate.run_control import StepFile, Stopped, TimeIsUp, stop_on_signals, watched, within_seconds
from layoutproof.cli.gate.workers.item_limits import Limits, ended, judge_one
from layoutproof.cli.gate.workers.pool import run_items, run_recalling
from layoutproof.cli.options import GateOptions, number_of_jobs
from layoutproof.cli.output import STYLES, check_targets, on_one_line, writing
from layoutproof.cli.render.gate.text_json import render_json, render_outcome, render_summary, render_text
from layoutproof.ir.diagnostic import counted, error
from layoutproof.verify.workers.endings import Ending

Renderer = Callable[[Iterable[Outcome], Summary, TextIO], None]

SECONDS: float | None = 600.0  # for an item, by default
_MEGABYTE = 1 << 20
_MOST_NOTES = 20  # on entries of a baseline that are needed no more
_STREAMED = ("text", "json")  # printed while outcomes come in
_WHOLE = ("json", "html")  # which show every obligation
_RENDERERS = {
    "junit": ("layoutproof.cli.render.gate.junit", "render_junit"),
    "sarif": ("layoutproof.cli.render.gate.sarif", "render_sarif"),
    "github": ("layoutproof.cli.render.gate.github", "render_github"),
    "html": ("layoutproof.cli.render.gate.html", "render_html"),
}
_COLOURS: Mapping[str, Mapping[str, Any]] = {
    style: {"fg": style.split()[-1], "bold": style.startswith("bold")} for style in set(STYLES.values())
}


@dataclass(frozen=True, slots=True)
class Work:
    """What a run checks, and where.

    `paths`, `traces` and `function` are as `find_items` takes them. If `items` are given, these are checked, and
    `paths` are their files; `witness` is the file for the rewrite that a comparison finds. With `expect`, fewer items
    fail the run.
    """

    paths: tuple[Path, ...]
    traces: tuple[Path, ...] = ()
    function: str | None = None
    items: tuple[Item, ...] | None = None
    witness: Path | None = None
    workers: int | None = 1
    shard: str | None = None
    dask: str | None = None
    expect: int | None = None
    expected_by: str = "--expect"


@dataclass(frozen=True, slots=True)
class Request:
    """A run's options as given, its work, and how its items are judged, limited and counted."""

    asked: GateOptions
    work: Work
    options: Options
    limits: Limits
    policy: Policy
    shard: Shard | None


def request_of(asked: GateOptions, work: Work) -> Request:
    """The request of the options. Raises LayoutproofError or click.UsageError for wrong ones."""
    if asked.open_report and asked.html is None:
        raise click.UsageError("--open is for an HTML report in a file: --format html -o report.html")
    place = cache_place(asked.cache, asked.no_cache)
    known = Baseline.load(asked.baseline) if asked.baseline is not None else None
    options = Options(
        fast_math=tuple(sorted(asked.allowed)),
        budget_scale=asked.budget,
        detail="html" in asked.forms,
        cache=place,
        certificate=str(asked.certificate) if asked.certificate is not None else None,
        witness=str(work.witness) if work.witness is not None else None,
        trust=asked.trust,
    )
    memory = asked.memory * _MEGABYTE if asked.memory is not None else None
    limits = Limits(number_of_jobs(work.workers), asked.timeout or None, memory, work.dask)
    policy = Policy(read_codes(asked.select), read_codes(asked.ignore), asked.allow_unknown, known)
    return Request(asked, work, options, limits, policy, parse_shard(work.shard) if work.shard is not None else None)


def mend(asked: GateOptions, work: Work) -> None:
    """Apply hints to the schedules of a run, and print what was done. Raises LayoutproofError as `run_gate` does."""
    from layoutproof.cli.gate.mended_traces import mend_files

    options = request_of(asked, work).options
    data = asked.output_format != "text" or asked.output is not None
    for line in mend_files(find_items(work.paths, work.traces, work.function), options):
        click.echo(line, err=data)


def run_gate(asked: GateOptions, work: Work) -> int:
    """Run the request and return the exit code. Raises LayoutproofError or click.UsageError if that is impossible."""
    request = request_of(asked, work)
    try:
        os.getcwd()
    except FileNotFoundError as problem:
        raise error(codes.FILE_ACCESS, "the working directory is not there any more") from problem
    reports = ((f"--report {form}", path) for form, path in asked.reports)
    made = (
        ("--certificate", asked.certificate),
        ("--witness", work.witness),
        ("--write-baseline", asked.write_baseline),
    )
    check_targets((("--output", asked.output), *made, *reports), (*work.paths, *work.traces), asked.baseline)
    try:
        with stop_on_signals(), Spool() as spool:
            return _run(request, spool)
    except Stopped as stopped:
        click.echo(
            f"{stopped}; what was proved is in the cache" if request.options.cache is not None else str(stopped),
            err=True,
        )
        return stopped.exit_code


@dataclass(slots=True)
class Found:
    """What a search has found: names of items, those of other shards too, and remarks on what it passed over."""

    names: set[str] = field(default_factory=set)
    remarks: list[str] = field(default_factory=list)

    def begin(self) -> None:
        """Forget an earlier, shorter search."""
        self.names.clear()
        self.remarks.clear()

    def counting(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items, which are counted."""
        for item in items:
            self.names.add(item.name)
            yield item


def _run(request: Request, spool: Spool) -> int:
    summary, found = Summary(), Found()
    try:
        _judge_all(request, spool, summary, found)
    finally:
        for remark in found.remarks[:_MOST_NOTES]:
            click.echo(f"note: {on_one_line(remark)}", err=True)
        if len(found.remarks) > _MOST_NOTES:
            click.echo(f"note: and {len(found.remarks) - _MOST_NOTES:,} more files that were passed over", err=True)
    return summary.exit_code


def _judge_all(request: Request, spool: Spool, summary: Summary, found: Found) -> None:
    asked, first = request.asked, tuple(islice(_items(request, found), 2))
    alone = len(first) == 1
    if asked.certificate is not None and len(first) > 1:
        raise error(codes.CERTIFICATE_OF_MANY, "a certificate is of one schedule, gate or rewrite; here are several")
    if len(first) > 1:
        found.begin()
    items = _items(request, found) if len(first) > 1 else iter(first)
    live = _Live(request, alone)
    # A bar and the report do not stand on one terminal at one time.
    held = live.form is not None and sys.stderr.isatty() and not alone
    kept_for_later = held or live.form is None or bool(asked.reports or asked.baseline or asked.write_baseline)
    for outcome in chain(_outcomes(request, items, alone), _too_few(request, found)):
        judged = request.policy.apply(outcome)
        kept = timeless(judged) if asked.stable else judged
        summary.add(kept)
        if not held:
            live.tell(kept)
        if kept_for_later:
            spool.add(kept)
    for outcome in spool if held else ():
        live.tell(outcome)
    live.end(summary)
    _report(request, spool, summary)
    if asked.open_report and asked.html is not None:
        click.launch(asked.html.absolute().as_uri())


def _items(request: Request, found: Found) -> Iterator[Item]:
    work = request.work
    items = (
        iter(work.items)
        if work.items is not None
        else find_items(work.paths, work.traces, work.function, found.remarks)
    )
    counted_ones = found.counting(items)
    return counted_ones if request.shard is None else request.shard.of(counted_ones)


def _too_few(request: Request, found: Found) -> Iterator[Outcome]:
    """A failing outcome if fewer items were found than expected, once they are all there."""
    expected = request.work.expect
    if expected is not None and len(found.names) < expected:
        there = counted(len(found.names), "item was", "items were")
        message = f"{there} found, and at least {expected:,} are expected ({request.work.expected_by})"
        help_ = "find what is not there any more; if it was removed on purpose, lower the number"
        finding = Finding(codes.TOO_FEW, message, help=help_)
        yield Outcome(Kind.GATE, "items found", "items found", None, None, findings=(finding,))


def _outcomes(request: Request, items: Iterator[Item], alone: bool) -> Iterator[Outcome]:
    limits = replace(request.limits, workers=1) if alone else request.limits
    if request.asked.timeout is None and not alone:
        limits = replace(limits, seconds=SECONDS)
    options = replace(request.options, brief=not alone and request.asked.forms.isdisjoint(_WHOLE))
    store = store_of(options)
    if store is not None and not store.usable and limits.dask is None:
        options = replace(options, cache=None)  # reported once, not by each worker
    # Counting reads the files once more, which is quick, and needed for the bar only.
    total = None if not sys.stderr.isatty() else 1 if alone else sum(1 for _ in _items(request, Found()))
    known = partial(recall_compared if request.work.items is not None else recall, options=options)
    # One item with the default limit needs no process of its own, which would take longer to start than most take.
    here = alone and request.asked.timeout is None and not limits.need_a_process and limits.dask is None
    doing = StepFile() if alone and total is not None and limits.dask is None else None
    told = options if doing is None else replace(options, doing=doing.path)
    run = partial(_in_time, options=told) if here else partial(_in_processes, options=told, limits=limits)
    return watched(run_recalling(items, known, run), total, doing)


def _in_processes(items: Iterator[Item], options: Options, limits: Limits) -> Generator[Outcome, None, None]:
    return run_items(items, judge, options, limits)


def _in_time(items: Iterator[Item], options: Options) -> Generator[Outcome, None, None]:
    """The outcome of the only item, judged in this process."""
    for item in items:
        try:
            with within_seconds(SECONDS) if SECONDS is not None else nullcontext():
                outcome = judge_one(judge, options, item)
        except TimeIsUp:
            outcome = ended(Limits(seconds=SECONDS), item, Ending("time"))
        yield outcome


class _Live:
    """Output while outcomes come in: text and JSON."""

    def __init__(self, request: Request, alone: bool) -> None:
        form = request.asked.output_format
        self.form = form if request.asked.output is None and form in _STREAMED else None
        self.alone, self.quiet = alone, request.asked.quiet

    def tell(self, outcome: Outcome) -> None:
        """Print one outcome."""
        if self.form == "text" and self.quiet and not outcome.findings and outcome.passes:
            return
        if self.form == "text":
            # click leaves styles out where the stream is no terminal. A run of nothing but a mistake in the input tells
            # that as such.
            wrong = self.alone and outcome.verdict is None
            click.echo(render_outcome(outcome, alone=self.alone, styled=_styled), nl=False, err=wrong)
        elif self.form == "json":
            render_json([outcome], Summary(), sys.stdout)

    def end(self, summary: Summary) -> None:
        """Print the count."""
        if self.form == "text" and not self.alone:
            click.echo(render_summary(summary, _styled), nl=False)


def _styled(text: str, style: str) -> str:
    return click.style(text, **_COLOURS[style])


def _report(request: Request, spool: Spool, summary: Summary) -> None:
    asked = request.asked
    printed = asked.output_format in _STREAMED and asked.output is None
    forms = [] if printed else [(asked.output_format, asked.output)]
    for form, path in (*forms, *asked.reports):
        renderer = _renderer(form)
        if path is None:
            renderer(spool, summary, sys.stdout)
        else:
            with writing(path) as file:
                renderer(spool, summary, file)
    baseline = request.policy.baseline
    if baseline is not None and request.shard is None and asked.write_baseline is None:
        unneeded = baseline.stale(spool)
        for entry in unneeded[:_MOST_NOTES]:
            click.echo(f"note: the baseline's entry {entry.code} {on_one_line(entry.name)} is needed no more", err=True)
        if len(unneeded) > _MOST_NOTES:
            click.echo(
                f"note: nor are {len(unneeded) - _MOST_NOTES:,} more; --write-baseline leaves them out", err=True
            )
    if asked.write_baseline is not None:
        known = Baseline.of(spool)
        known.save(asked.write_baseline)
        click.echo(
            f"{on_one_line(str(asked.write_baseline))}: "
            f"{counted(len(known.entries), 'known finding', 'known findings')}",
            err=True,
        )


def _renderer(form: str) -> Renderer:
    if form == "text":
        return lambda outcomes, summary, out: render_text(iter(outcomes), summary, out)
    if form == "json":
        return render_json
    module, name = _RENDERERS[form]
    renderer: Renderer = getattr(import_module(module), name)
    return renderer

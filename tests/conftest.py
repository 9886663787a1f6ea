"""What every test may use: golden files, and the random test profiles.

The default profile draws the same cases on every run, so that a red run can be repeated; the campaign draws new ones.
"""

import difflib
import fcntl
import gc
import os
import re
import signal
import threading
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.shares import share_of_commit, share_out
from tests.tree import ROOT

# Tests call pytest as users do; the plugins that came with the client of the language server are not theirs.
os.environ.setdefault("PYTEST_ADDOPTS", "-p no:asyncio -p no:pytest-lsp")

# Collecting makes millions of objects, most of which stay. Python would look for cycles at every 700 new ones,
# a quarter of what it takes to compile a test file, and a tenth of what the tests take.
gc.set_threshold(50_000)

GOLDEN = Path(__file__).resolve().parent / "golden"

# Who starts the tests in the background has Ctrl-C ignored, and so would every command that they start and interrupt.
if threading.current_thread() is threading.main_thread():
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)

settings.register_profile(
    "default",
    max_examples=40,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "campaign", parent=settings.get_profile("default"), derandomize=False, max_examples=5_000, print_blob=True
)
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the files under tests/golden instead of comparing with them",
    )
    parser.addoption(
        "--share",
        type=int,
        help="which cases of the tests marked `one_in` are taken (default: follows from the commit)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """The share is known before workers are started, which are told it."""
    if config.option.share is None:
        config.option.share = share_of_commit(ROOT)
    if len(config.args) == 1 and os.environ.get("PYTEST_XDIST_WORKER", "gw0")[-1] in "13579":
        config.pluginmanager.register(Backwards())


class Backwards:
    """Every second worker begins with the last file: of two that compile the tests of a fresh clone, each finds half of
    them done by the other one.
    """

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """What lies in a folder, the last first."""
        report = yield
        if report.result and isinstance(collector, pytest.Directory):
            report.result.reverse()
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """The order of tests is that of the other workers."""
        files = [list(tests) for _, tests in groupby(items, lambda item: item.path)]
        items[:] = [item for tests in reversed(files) for item in tests]


def pytest_report_header(config: pytest.Config) -> str:
    """A run says which cases it takes."""
    return f"cases: share {config.option.share} of the slow tests (--share {config.option.share} takes the same)"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The mark `one_in` leaves most cases of a test to the campaign; golden files are written for all of them."""
    if not config.option.update_golden:
        share_out(items, config.option.share, config.args)


def pytest_collection_finish() -> None:
    """What was collected lives until the end: a twentieth of the run would go into looking whether it still does."""
    if not gc.get_freeze_count():  # a test may collect in its own process
        gc.collect()
        gc.freeze()


@dataclass(frozen=True)
class Golden:
    """Compares text with a file below `folder`, or rewrites that file."""

    folder: Path
    update: bool

    def __call__(self, name: str, text: str) -> None:
        """Fail unless the file `name` (a path below tests/golden) holds exactly `text`; the failure shows the
        difference.

        With --update-golden the file is written instead.
        """
        path = self.folder / name
        if not path.resolve().is_relative_to(self.folder.resolve()):
            raise ValueError(f"a golden file lies below {self.folder}: {name!r} does not")
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
            return
        if not path.is_file():
            pytest.fail(
                f"no golden file {path}; look at the text, then write it with --update-golden:\n{text}", pytrace=False
            )
        with path.open(encoding="utf-8", newline="") as file:
            _compare(f"tests/golden/{name}", file.read(), text)

    def entry(self, table: str, name: str, text: str, given: str = "") -> None:
        """Fail unless the file `table` has exactly `text` as its entry `name`, behind what was `given`; --update-golden
        writes it.
        """
        path = self.folder / table
        if given:
            text = f"> {given if len(given) <= 120 else f'{given[:120]}...'}\n{text}"
        with path.open("a+" if self.update else "r", encoding="utf-8", newline="") as file:
            if self.update:
                fcntl.flock(file, fcntl.LOCK_EX)
                file.seek(0)
            entries = dict(_ENTRY.findall(file.read()))
            if self.update:
                file.truncate(0)
                file.write("\n".join(f"----- {each}\n{said}" for each, said in {**entries, name: text}.items()))
            else:
                _compare(f"tests/golden/{table}, {name}", entries.get(name, ""), text)


_ENTRY = re.compile(r"^----- (\w+)\n(.*?)(?:\n(?=----- )|\Z)", re.DOTALL | re.MULTILINE)


def _compare(place: str, expected: str, text: str) -> None:
    """Fail with the difference, where there is one."""
    if text != expected:
        difference = difflib.unified_diff(
            expected.splitlines(keepends=True), text.splitlines(keepends=True), place, "what the test got"
        )
        lines = (line if line.endswith("\n") else f"{line}\n\\ no newline at the end\n" for line in difference)
        pytest.fail(f"differs from its golden file (rewrite it with --update-golden):\n{''.join(lines)}", pytrace=False)


@pytest.fixture(scope="session", autouse=True)
def own_proof_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Proofs are kept in a place of the run's own: none that was there before makes a test pass, and the user's stays
    as it is.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAYOUTPROOF_PROOF_CACHE", str(tmp_path_factory.mktemp("proof-cache") / "proofs.sqlite"))
        yield


@pytest.fixture(scope="session", autouse=True)
def own_kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Kernels that tests build go to a folder of the run, which its workers share, and not to the user's cache."""
    base = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "LAYOUTPROOF_CACHE", str((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "kernels")
        )
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """A function `golden(name, text)`: the text must equal the file tests/golden/name."""
    return Golden(GOLDEN, bool(request.config.getoption("--update-golden")))

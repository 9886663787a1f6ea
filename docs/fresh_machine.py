"""From a fresh machine to a gate in CI that refuses a wrong change: each command, in an empty environment, timed.

`python -m docs.fresh_machine` clones this repository into an empty folder, does everything there, and fails where a
command does not end as it should; `--write` puts what was run, and how long it took, into `docs/fresh-machine.md`.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "fresh-machine.md"
_PATH = "/usr/local/bin:/usr/bin:/bin"
_BEGIN, _END = "<!-- measured: begin -->", "<!-- measured: end -->"
_SECONDS = 1800


@dataclass(frozen=True, slots=True)
class Step:
    """A command, its exit code, and a text that it prints. `installs`: it makes the environment."""

    command: str
    says: str = ""
    code: int = 0
    installs: bool = False


STEPS: tuple[Step, ...] = (
    Step("git clone --quiet $REPOSITORY layoutproof"),
    Step("python3 -m venv venv", installs=True),
    Step("venv/bin/pip install --quiet ./layoutproof", installs=True),
    Step("export PATH=$PWD/venv/bin:$PATH", installs=True),
    Step("layoutproof --version", "layoutproof, version"),
    Step("layoutproof map 'NHWC->NCHW4c' --shape 16,64,64,126", "padding where"),
    Step("cp -r layoutproof/examples/gated-repo kernels && cd kernels && git init --quiet"),
    Step("git add --all && git commit --quiet --message 'Kernels, and gates for their layouts'"),
    Step("./ci.sh", "8 items: 1 unknown, 7 proved"),
    Step("./ci.sh", "from the cache"),
    Step("git apply broken/wrong_pad_value.patch && git commit --quiet --all --message 'Ones in the padding'"),
    Step("./ci.sh", "error[LP373]", 1),
    Step("layoutproof explain LP373", "What to do"),
    Step("git revert --no-edit HEAD", "Revert"),
    Step("./ci.sh", "8 items: 1 unknown, 7 proved"),
)


@dataclass(frozen=True, slots=True)
class Ran:
    """A step with what it took, in seconds, and what it printed."""

    step: Step
    seconds: float
    printed: str


class Wrong(Exception):
    """A command that did not end as it should."""


def run_all(folder: Path, path: str, installed: Path | None = None) -> Iterator[Ran]:
    """Run every step in a folder with nothing in the environment but HOME, PATH and a name for commits.

    With `installed`, a folder of programs, steps that make the environment are left out. Raises Wrong.
    """
    home = folder / "home"
    home.mkdir()
    name = {f"GIT_{who}_{what}": f"someone{at}" for who in ("AUTHOR", "COMMITTER") for what, at in _NAMES.items()}
    environment = {"HOME": str(home), "PATH": path, "REPOSITORY": str(ROOT), **name}
    if installed is not None:
        environment["PATH"] = f"{installed}:{path}"
    place = folder
    for step in STEPS:
        if not (step.installs and installed is not None):
            ran, place, environment = run_step(step, place, environment)
            yield ran


_NAMES = {"NAME": "", "EMAIL": "@example.org"}
_AFTERWARDS = 'code=$?; { pwd; echo "$PATH"; } > "$HOME/after"; exit $code'


def run_step(step: Step, place: Path, environment: Mapping[str, str]) -> tuple[Ran, Path, dict[str, str]]:
    """Run a step; returns the folder and the environment that it leaves. Raises Wrong."""
    begun = time.perf_counter()
    done = subprocess.run(
        ["bash", "-c", f"{step.command}\n{_AFTERWARDS}"],
        cwd=place,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    seconds = time.perf_counter() - begun
    if done.returncode != step.code or step.says not in done.stdout:
        raise Wrong(f"{step.command}\nended with {done.returncode}, and {step.code} is expected:\n{done.stdout}")
    where, path = Path(environment["HOME"], "after").read_text(encoding="utf-8").splitlines()
    return Ran(step, seconds, done.stdout), Path(where), {**environment, "PATH": path}


def table(ran: Sequence[Ran]) -> str:
    """The protocol as a table of Markdown."""
    lines = ["| seconds | exit code | command | prints |", "|---|---|---|---|"]
    for each in ran:
        says = f"`{each.step.says}`" if each.step.says else ""
        lines.append(f"| {each.seconds:.1f} | {each.step.code} | `{each.step.command}` | {says} |")
    total = sum(each.seconds for each in ran)
    return "\n".join([*lines, f"| {total:.1f} | | all | |"])


def commands_of(page: str) -> list[str]:
    """The commands of the table in a page."""
    between = page.partition(_BEGIN)[2].partition(_END)[0]
    return re.findall(r"^\| [0-9.]+ \| [0-9] \| `(.*?)` \|", between, re.MULTILINE)


def machine() -> str:
    """What the times were measured on."""
    return f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()}."


def main() -> int:
    """Run the protocol, print it, and keep it where asked."""
    parser = argparse.ArgumentParser(description="From a fresh machine to a gate in CI, each command timed.")
    parser.add_argument("--path", default=_PATH, help="where programs are looked for; git, python3 and cc are needed")
    parser.add_argument("--write", action="store_true", help=f"keep the protocol in {PAGE.relative_to(ROOT)}")
    given = parser.parse_args()
    ran: list[Ran] = []
    with tempfile.TemporaryDirectory(prefix="fresh-machine-") as folder:
        try:
            for each in run_all(Path(folder), given.path):
                print(f"{each.seconds:7.1f} s  {each.step.command}", flush=True)
                ran.append(each)
        except Wrong as problem:
            print(problem, file=sys.stderr)
            return 1
    if given.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(_BEGIN)
        after = rest.partition(_END)[2]
        PAGE.write_text(f"{before}{_BEGIN}\n{machine()}\n\n{table(ran)}\n{_END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The GitHub action: its form, and its scripts, run here as a runner runs them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tree import ROOT

ACTION: Mapping[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[Mapping[str, Any]] = ACTION["runs"]["steps"]
pytestmark = pytest.mark.pages

WORKFLOW = ROOT / "examples" / "gated-repo" / ".github" / "workflows" / "layouts.yml"
TRUSTED = {"actions/setup-python", "actions/cache/restore", "actions/cache/save", "github/codeql-action/upload-sarif"}

GOOD = """\
import layoutproof as lp


@lp.gate(cases=[4, 8])
def rows(width):
    print("::error::said by a gate")
    return lp.check_map(lambda i: [i // width, i % width], shape=(14,))
"""
BAD = GOOD.replace("i % width", "i % 2")

_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_NAME = re.compile(r"(?:inputs|steps|runner|github)\.[\w.-]+")


@dataclass
class Runner:
    """What a runner does with a composite action: scripts run, steps of others noted, outputs handed on, files named as
    on GitHub.
    """

    folder: Path
    inputs: Mapping[str, str]
    outputs: dict[str, str] = field(default_factory=dict)
    used: dict[str, Mapping[str, str]] = field(default_factory=dict)
    log: str = ""

    @property
    def workspace(self) -> Path:
        """The checkout."""
        return self.folder / "workspace"

    def run(self) -> int:
        """Run every step whose condition holds; the exit code of the first that fails, 0 where none does."""
        self.workspace.mkdir(exist_ok=True)
        code = 0
        for step in STEPS:
            condition = step.get("if", "")
            if (code and "always()" not in condition) or not self.holds(condition):
                continue
            if "uses" in step:
                self.used[step["uses"].partition("@")[0]] = {
                    key: self.text(value) for key, value in step["with"].items()
                }
            else:
                code = self.script(step) or code
        return code

    def script(self, step: Mapping[str, Any]) -> int:
        """Run the script of a step, as `shell: bash` does, and read its outputs."""
        assert step["shell"] == "bash"
        said, script = self.folder / "output.txt", self.folder / "script.sh"
        said.write_text("", encoding="utf-8")
        script.write_text(step["run"], encoding="utf-8")
        runner = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_OUTPUT": said,
            "GITHUB_WORKSPACE": self.workspace,
            "RUNNER_TEMP": self.folder / "temp",
        }
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "LAYOUTPROOF_"))
        }
        environment |= {name: str(value) for name, value in runner.items()} | {
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md")
        }
        environment |= {name: self.text(value) for name, value in step.get("env", {}).items()}
        environment["PATH"] = f"{self.folder / 'bin'}{os.pathsep}{environment['PATH']}"
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.workspace / self.text(step.get("working-directory", ".")),
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=240,
            check=False,
        )
        self.log += done.stdout
        for line in said.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            self.outputs[f"{step['id']}.{name}"] = value
        return done.returncode

    def value(self, name: str) -> str:
        """What a name of an expression stands for."""
        kind, _, rest = name.partition(".")
        if kind == "inputs":
            return self.inputs.get(rest, str(ACTION["inputs"][rest]["default"]))
        if kind == "steps":
            return self.outputs.get(rest.replace(".outputs.", "."), "")
        return {"runner.temp": str(self.folder / "temp"), "runner.os": "Linux", "github.action_path": str(ROOT)}[name]

    def text(self, template: str) -> str:
        """A text with its expressions replaced."""
        return _EXPRESSION.sub(lambda m: "files" if m[1].startswith("hashFiles(") else self.value(m[1]), template)

    def holds(self, condition: str) -> bool:
        """Whether a step is to run."""
        python = _NAME.sub(lambda m: repr(self.value(m[0])), condition).replace("&&", "and").replace("always()", "True")
        return bool(eval(python, {"__builtins__": {}})) if python else True


def runner(folder: Path, files: Mapping[str, str], **inputs: str) -> Runner:
    """A runner with a checkout. Its pip installs nothing: it notes what it was called with."""
    made = Runner(folder, {name.replace("_", "-"): value for name, value in inputs.items()})
    for name, text in files.items():
        (made.workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (made.workspace / name).write_text(text, encoding="utf-8")
    python = folder / "bin" / "python"
    python.parent.mkdir(exist_ok=True)
    # pip is loaded as it would be, and does nothing.
    real = f'exec {shlex.quote(sys.executable)} "$1" "$2" "$3" --version'
    written = f'printf "%s\\n" "$@" > {shlex.quote(str(folder / "pip.txt"))}'
    note = f'case " $* " in *" -m pip "*) {written}; {real};; esac'
    python.write_text(f'#!/bin/sh\n{note}\nexec {shlex.quote(sys.executable)} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    return made


@pytest.mark.parametrize(
    ("schema", "path"), [("vendor.github-actions", ROOT / "action.yml"), ("vendor.github-workflows", WORKFLOW)]
)
def test_it_has_the_form_that_github_wants(schema: str, path: Path) -> None:
    """The action, and the sample workflow that uses it, are valid by GitHub's schemas."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_input_is_part_of_a_script() -> None:
    """Scripts hold no expression, so that no input can be a command; every input is used, and every step of others is
    pinned.
    """
    assert [step["name"] for step in STEPS if "${{" in step.get("run", "")] == []
    used = {name for step in STEPS for name in re.findall(r"inputs\.([\w-]+)", str(step))}
    assert used == set(ACTION["inputs"])
    others = [step["uses"].partition("@") for step in STEPS if "uses" in step]
    assert {name for name, _, _ in others} <= TRUSTED
    assert all(re.fullmatch(r"v\d+", version) for _, _, version in others)


def test_the_sample_gives_inputs_that_there_are() -> None:
    """The sample workflow hands the action no input that it does not have."""
    steps = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]["prove"]["steps"]
    (given,) = (step["with"] for step in steps if "layoutproof" in step["uses"])
    assert set(given) <= set(ACTION["inputs"])


def test_a_good_repository_passes(tmp_path: Path) -> None:
    """All is counted, reported, summed up and kept; what a gate prints is no command to the runner."""
    ran = runner(
        tmp_path,
        {"layouts/my gates.py": GOOD, "gates.py": GOOD},
        paths="  gates.py\n\n  layouts/my gates.py  \n",
        workers="1",
    )
    assert ran.run() == 0, ran.log
    outputs = {name: ran.text(output["value"]) for name, output in ACTION["outputs"].items()}
    reports = outputs.pop("reports")
    assert outputs == {
        "exit-code": "0",
        "items": "4",
        "proved": "4",
        "refuted": "0",
        "unknown": "0",
        "vacuous": "0",
        "errors": "0",
    }
    assert {path.name for path in Path(reports).iterdir()} == {
        "check.jsonl",
        "check.sarif",
        "check.xml",
        "annotations.txt",
    }
    assert "proved   layouts/my gates.py::rows[8]" in ran.log
    stopped = re.search(r"^::stop-commands::(\w+)$(.*)^::\1::$", ran.log, re.MULTILINE | re.DOTALL)
    assert stopped is not None and "::error::said by a gate" in stopped[2]
    assert "::error" not in ran.log.replace(stopped[0], "") and "::notice title=layoutproof::" in ran.log
    assert "4" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert (tmp_path / "temp" / "layoutproof" / "cache" / "proofs.sqlite").is_file()
    assert (tmp_path / "pip.txt").read_text(encoding="utf-8").splitlines()[-1] == str(ROOT)
    key = ran.used["actions/cache/restore"]["key"]
    assert re.fullmatch(r"layoutproof-Linux-[0-9a-f]{16}-all-files", key)
    assert "actions/cache/save" in ran.used and "github/codeql-action/upload-sarif" not in ran.used


def test_a_bad_repository_fails(tmp_path: Path) -> None:
    """The job fails with the exit code, after proofs were kept and findings uploaded; files are named from the
    checkout's root.
    """
    inputs = {
        "working_directory": "sub",
        "paths": "gates.py",
        "upload_sarif": "true",
        "shard": "1/2",
        "workers": "1",
        "python_version": "",
    }
    ran = runner(tmp_path, {"sub/gates.py": BAD}, **inputs)
    assert ran.run() == 1, ran.log
    assert ran.outputs["check.exit-code"] == "1"
    assert (ran.outputs["check.items"], ran.outputs["check.refuted"]) == ("1", "1")
    assert re.search(r"^::error file=sub/gates\.py,line=5,.*title=LP210", ran.log, re.MULTILINE), ran.log
    assert ran.used["github/codeql-action/upload-sarif"]["sarif_file"].endswith("reports/check.sarif")
    assert "-1-2-" in ran.used["actions/cache/restore"]["key"]
    assert "actions/cache/save" in ran.used and "actions/setup-python" not in ran.used


def test_options_are_handed_on(tmp_path: Path) -> None:
    """What is ignored, and what the baseline knows, passes; without annotations there are none."""
    files = {"gates.py": BAD}
    ignored = runner(
        tmp_path,
        files,
        paths="gates.py",
        ignore="LP210",
        workers="1",
        annotations="false",
        cache="false",
        strictness="ieee",
    )
    assert ignored.run() == 0, ignored.log
    assert "::notice" not in ignored.log and "actions/cache/restore" not in ignored.used
    assert not (tmp_path / "temp" / "layoutproof" / "cache" / "proofs.sqlite").exists()
    again = runner(tmp_path, files, paths="gates.py", workers="1", baseline="none.json")
    assert again.run() == 2 and "the baseline none.json cannot be read" in again.log


def test_every_python_leaves_the_checkout_out() -> None:
    """Each call of Python in a script has -P, without which modules of the working directory come first."""
    calls = [call for step in STEPS for call in re.findall(r"python[\d.]*\b(?!-)(.*)", step.get("run", ""))]
    assert len(calls) == 5 and all(call.startswith(" -P ") for call in calls), calls


def test_modules_of_the_checkout_are_not_run(tmp_path: Path) -> None:
    """Files of the checkout that are called as modules that pip, Python or layoutproof import change nothing."""
    planted = "import pathlib\npathlib.Path(__file__).with_suffix('.pwned').touch()\nraise SystemExit('planted')\n"
    names = ("secrets", "json", "pip/__init__", "pip/__main__", "pathlib", "layoutproof/__init__", "z3", "islpy")
    files = {"all/gates.py": GOOD, **{f"{name}.py": planted for name in names}}
    ran = runner(tmp_path, files, paths="all", workers="2")
    assert ran.run() == 0, ran.log
    assert not list(tmp_path.rglob("*.pwned")) and "planted" not in ran.log
    assert ran.outputs["check.proved"] == "2"


@pytest.mark.parametrize(
    "package", ["layoutproof==0.1.0; touch pwned", "$(touch pwned)", "--index-url=http://127.0.0.1:9"]
)
def test_a_package_is_one_argument(package: str, tmp_path: Path) -> None:
    """What is to be installed comes to pip as one argument, which is no option."""
    ran = runner(tmp_path, {"gates.py": GOOD}, paths="gates.py", package=package, workers="1")
    assert ran.run() == 0, ran.log
    assert (tmp_path / "pip.txt").read_text(encoding="utf-8").splitlines()[-2:] == ["--", package]
    assert not list(tmp_path.rglob("pwned"))


HOSTILE = (
    '"; touch pwned #',
    "$(touch pwned)",
    "`touch pwned`",
    "' ; touch pwned ; '",
    "a\n$(touch pwned)",
    "-o pwned",
    "--output=pwned",
)


OTHER_INPUTS = ("strictness", "baseline", "select", "ignore", "workers", "shard", "timeout", "expect")


@pytest.mark.parametrize(
    "name",
    ["paths", "format", "allow-unknown", *(pytest.param(name, marks=pytest.mark.campaign) for name in OTHER_INPUTS)],
)
def test_inputs_are_no_commands(name: str, tmp_path: Path) -> None:
    """Whatever an input holds, nothing of it is run, and it is no option of its own: the run fails on it or passes as
    without it.
    """
    for number, text in enumerate(HOSTILE):
        folder = tmp_path / str(number)
        folder.mkdir()
        inputs = {"paths": "gates.py", "workers": "1", name.replace("-", "_"): text}
        ran = runner(folder, {"gates.py": GOOD}, **inputs)
        assert ran.run() == (0 if name == "allow-unknown" else 2), f"{text}: {ran.log}"
        assert not list(folder.rglob("pwned")) and "Traceback" not in ran.log


def test_a_run_that_cannot_begin_is_annotated(tmp_path: Path) -> None:
    """Where nothing could be checked there is still an annotation, the counts are zero, and the job fails."""
    ran = runner(tmp_path, {"readme.txt": "nothing"}, paths="none.py")
    assert ran.run() == 2
    assert re.search(r"^::error title=layoutproof::it ended with exit code 2", ran.log, re.MULTILINE)
    assert ran.outputs["check.items"] == "0" and "actions/cache/save" in ran.used

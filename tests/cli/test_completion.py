"""The shell completes commands, options and files: the scripts that click makes, in bash, zsh and fish."""

from __future__ import annotations

import os
import pty
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.shares import one_in

ASKED = {
    "layoutproof ch": {"check"},
    "layoutproof check --allow": {"--allow-unknown"},
    "layoutproof check --trust ": {"checker", "kernel"},
    "layoutproof cache ver": {"verify"},
    "layoutproof check --baseline ": {"files"},
    "layoutproof check ": {"files"},
}


def with_command(folder: Path) -> dict[str, str]:
    """The environment of a user whose PATH has the command."""
    command = folder / "bin" / "layoutproof"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m layoutproof "$@"\n')
    command.chmod(0o755)
    return {**os.environ, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}


@one_in(4)
def test_bash(tmp_path: Path) -> None:
    """The function that the script defines gives bash the words that fit, and leaves files to it."""
    environment = with_command(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.layoutproof]\nwrong = 1\n")  # no matter for a completion
    lines = ['eval "$(_LAYOUTPROOF_COMPLETE=bash_source layoutproof)"']
    lines.append('compopt() { [ "$2" = default ] && echo files; }')
    for line in ASKED:
        words = [*line.split(), *([""] if line.endswith(" ") else [])]
        lines.append(f"COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; COMPREPLY=()")
        lines.append('_layoutproof_completion layoutproof; echo "${COMPREPLY[@]}"; echo END')
    done = subprocess.run(
        ["bash", "--norc", "-c", "\n".join(lines)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    told = [set(part.split()) for part in done.stdout.split("END\n")]
    assert told[:-1] == list(ASKED.values())


def answers(shell: str, line: str, environment: dict[str, str]) -> set[str]:
    """What the command tells the script of a shell, in its form, for a line that ends in a word to complete."""
    asked = {"COMP_WORDS": line, "COMP_CWORD": line.rpartition(" ")[2] if shell == "fish" else str(line.count(" "))}
    instruction = {**asked, "_LAYOUTPROOF_COMPLETE": f"{shell}_complete"}
    done = subprocess.run(
        ["layoutproof"], env={**environment, **instruction}, capture_output=True, text=True, timeout=120, check=True
    )
    lines = done.stdout.splitlines()
    if shell == "zsh":
        return {"files" if kind == "file" else word for kind, word in zip(lines[::3], lines[1::3], strict=True)}
    told = (line.partition("\t")[0].split(",", 1) for line in lines)
    return {"files" if kind == "file" else word for kind, word in told}


@one_in(4)
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_told(shell: str, tmp_path: Path) -> None:
    """zsh and fish are told the same words in their forms; where fish is installed, it is asked itself."""
    environment = with_command(tmp_path)
    for line, words in ASKED.items():
        assert answers(shell, line, environment) == words, line
    if shell == "fish" and shutil.which(shell) is not None:
        script = "_LAYOUTPROOF_COMPLETE=fish_source layoutproof | source; complete -C 'layoutproof check --trust '"
        done = subprocess.run(
            ["fish", "--no-config", "-c", script],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        assert set(done.stdout.split()) == {"checker", "kernel"}


@one_in(4)
def test_zsh(tmp_path: Path) -> None:
    """The script loads in zsh, and, where zsh is installed, a tabulator at its prompt completes a line."""
    environment = {**with_command(tmp_path), "TERM": "dumb"}
    script = subprocess.run(
        ["layoutproof"],
        env={**environment, "_LAYOUTPROOF_COMPLETE": "zsh_source"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    assert script.startswith("#compdef layoutproof")
    if shutil.which("zsh") is None:
        return
    (tmp_path / "completion.zsh").write_text(script)
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(tmp_path)
        os.execvpe("zsh", ["zsh", "-f", "-i"], environment)
    try:
        type_in(terminal, "autoload -Uz compinit; compinit -u -D; source ./completion.zsh; echo ''loaded\n", "loaded\r")
        type_in(terminal, "layoutproof chec\t", "layoutproof check ")
        type_in(terminal, "--allow\t", "--allow-unknown")
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(terminal)


def type_in(terminal: int, keys: str, expected: str) -> None:
    """Type, and wait for what the terminal is to show."""
    os.write(terminal, keys.encode())
    shown, end = "", time.monotonic() + 120
    while expected not in shown:
        assert time.monotonic() < end, shown
        if select.select([terminal], [], [], 0.5)[0]:
            shown += os.read(terminal, 65536).decode(errors="replace")

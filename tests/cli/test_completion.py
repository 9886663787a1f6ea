"""The shell completes commands, options and files: the script that click makes, loaded and asked in bash."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

ASKED = {
    "layoutproof ch": {"check"},
    "layoutproof check --allow": {"--allow-unknown"},
    "layoutproof check --trust ": {"checker", "kernel"},
    "layoutproof cache ver": {"verify"},
    "layoutproof check --baseline ": {"files"},
    "layoutproof check ": {"files"},
}


def test_bash(tmp_path: Path) -> None:
    """The function that the script defines gives bash the words that fit, and leaves files to it."""
    command = tmp_path / "bin" / "layoutproof"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m layoutproof "$@"\n')
    command.chmod(0o755)
    (tmp_path / "pyproject.toml").write_text("[tool.layoutproof]\nwrong = 1\n")  # no matter for a completion
    lines = ['eval "$(_LAYOUTPROOF_COMPLETE=bash_source layoutproof)"']
    lines.append('compopt() { [ "$2" = default ] && echo files; }')
    for line in ASKED:
        words = [*line.split(), *([""] if line.endswith(" ") else [])]
        lines.append(f"COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; COMPREPLY=()")
        lines.append('_layoutproof_completion layoutproof; echo "${COMPREPLY[@]}"; echo END')
    environment = {**os.environ, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}"}
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

"""How documents of a folder are checked: as `layoutproof check` does, with the table `[tool.layoutproof]` that holds
there.
"""

from __future__ import annotations

from pathlib import Path

import click

from layoutproof.cli.configuration import read_configuration
from layoutproof.cli.editor.work import Rules
from layoutproof.cli.gate.check_items import Options
from layoutproof.cli.gate.policy import Baseline, Policy, read_codes
from layoutproof.verify.values.fast_math import parse_licences


def rules_of(root: Path, check: click.Command) -> Rules:
    """The rules of a folder; `check` is the command whose options a configuration has. Raises LayoutproofError or
    click.UsageError for a wrong configuration.
    """
    values = read_configuration(root, check, click.Context(check, info_name="check")).values
    options = Options(
        licences=tuple(sorted(parse_licences(values.get("allowed", "reals")))),
        budget_scale=float(values.get("budget", 1.0)),
        cache=values.get("cache", ""),
        trust=values.get("trust", "checker"),
    )
    baseline = Baseline.load(Path(root, values["baseline"])) if "baseline" in values else None
    select, ignore = (read_codes(values.get(key, ())) for key in ("select", "ignore"))
    return Rules(str(root), options, Policy(select, ignore, bool(values.get("allow_unknown", False)), baseline))

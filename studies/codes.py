"""The codes of everything that can be wrong with a study, with what each means."""

from __future__ import annotations

from collections.abc import Mapping

STUDY_FILE = "LP701"
STUDY_FOLDER = "LP702"
OPERATOR = "LP703"

MEANINGS: Mapping[str, str] = {
    STUDY_FILE: "A study file has a key, a type or a value that is not expected.",
    STUDY_FOLDER: "A folder cannot hold the results of this study.",
    OPERATOR: "A program cannot be an operator of a study.",
}

"""What kind of claim an obligation is, read off its text, so that what is refuted has a code that people can look up, select and ignore.

The words of claims are the checker's; a test over all rewrites of the repository sees that each claim has a kind. Nothing is decided here.
"""

from __future__ import annotations

import re

from layoutproof.verify import codes
from layoutproof.verify.verdict import Status

_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (code, re.compile(form, re.DOTALL))
    for code, form in (
        (codes.CELLS, r"no two logical indices of .* share a physical cell|the cells of .* lie within .*|no two memories become one"),
        (codes.CELLS, r"the cell map of .*"),
        (codes.INTERFACE, r"parameters keep their order.*|.* is only read"),
        (codes.RECORDS, r"(the )?layout records? .*"),
        (codes.ASSUMED, r"the assumption .* (may be made|was made before)"),
        (codes.WITNESS, r"the witness .*"),
        (codes.PADDING_TOUCHED, r".* stays off padding.*"),
        (codes.OUTSIDE, r".* stays (within|inside|in its domain).*"),
        (codes.UNDEFINED_READ, r".* finds a value.*"),
        (codes.OVERFLOW, r".* fits? (?!its types).*|index arithmetic fits its types"),
        (codes.NO_RESULT, r".* has a result.*"),
        (codes.RACE, r"no two (iterations|lanes|parts|work items) .*"),
        (codes.OTHER_VALUE, r".* computes what it computed before.*|the store to .* writes what it wrote before.*"),
        (codes.OTHER_VALUE, r"both programs (are the same, up to names|do the same things.*)|every value has the source that it had"),
        (codes.OTHER_VALUE, r"the store to .* reaches nothing that the old program has"),
        (codes.OTHER_VALUE, r"the updates of .* may be done in another order"),
        (codes.OTHER_END, r".*: every observable cell ends with the value that it had|every (extra|dropped) instance of .*"),
        (codes.PADDING_OWED, r".*: padding ends with .*"),
        (codes.VACUOUS, r"the program runs"),
    )
)


def code_of_claim(claim: str) -> str:
    """The code of a claim's kind; `codes.UNPROVED` for a claim of no kind."""
    return next((code for code, form in _KINDS if form.fullmatch(claim)), codes.UNPROVED)


def code_of(status: Status, claim: str) -> str:
    """The code of what is not proved: by its kind where it is refuted, one of their own for what is unknown and for what is vacuous."""
    if status is Status.UNKNOWN:
        return codes.UNDECIDED
    return codes.VACUOUS if status is Status.VACUOUS else code_of_claim(claim)

"""The clauses of the checker, by name: each closes a hole through which a wrong program would be accepted.

Every clause has a program in `proofs/refuted` that is refused because of it. Tests put an answer that always accepts in the place of
the functions that check a clause (`tests/clauses.py`), to see that program accepted.
"""

from __future__ import annotations

from enum import StrEnum


class Clause(StrEnum):
    """One clause of the conditions under which a rewrite is accepted."""

    CELLS_INJECTIVE = "cells-injective"  # no two cells of one memory become one
    CELLS_INSIDE = "cells-inside"  # every cell gets a place in the new memory
    CELLS_APART = "cells-apart"  # no two memories become one
    INTERFACE = "interface"  # parameters keep their order, types and, declared changes aside, shapes and cells
    INPUTS_KEPT = "inputs-kept"  # a parameter that the old program never writes is never written
    RECORDS = "records"  # layout records go on where they were, and a changed interface is recorded
    FAULTS = "faults"  # bounds, index arithmetic, traps, readability, forbidden padding
    CONTENTS = "contents"  # what data decides is in bounds only where the old program certainly uses the same element so
    RACES = "races"  # iterations of parallel and vector loops do not meet
    OPAQUE = "opaque"  # opaque calls run as often, with the same arguments, in the same order
    ORDER = "order"  # every read has the source that its counterpart has
    LOST_SOURCE = "lost-source"  # a source without an image is a refusal, not a pair dropped
    NO_OPS = "no-ops"  # an extra instance is deleted only when it stores the value that is there
    LAST_WRITER = "last-writer"  # a fact serves a read only if its origin is that read's last writer
    INVARIANT_START = "invariant-start"  # an invariant holds of entry values that may be read
    INVARIANT_KEPT = "invariant-kept"  # every write, extra ones included, preserves an invariant
    INLINED_SOURCES = "inlined-sources"  # what stands for a load has the sources that it had when it was stored
    INLINED_PARTS = "inlined-parts"  # what stands for a load is, on each part, what that load finds there
    INLINED_UNDEFINED = "inlined-undefined"  # an undefined value that was stored once does not stand for several loads
    INLINED_LICENCES = "inlined-licences"  # what an operation may choose it chooses once, for all loads of what was stored
    VALUES = "values"  # matched instances compute the same value
    LICENCE_SCOPE = "licence-scope"  # licences restrict only values that the old program computes
    ZERO_SIGN = "zero-sign"  # what is equal but for the sign of a zero is not read by what tells the two apart
    REDUCTION_FORM = "reduction-form"  # only `acc (+) e` with `e` independent of `acc` is regrouped
    REDUCTION_LAW = "reduction-law"  # only operators that regroup under the licences in force
    CONTRIBUTIONS = "contributions"  # every reader of a reduction sees the same multiset of contributions
    ASSUMPTIONS = "assumptions"  # a new assumption follows from old ones, or speaks of a parameter's padding only
    OWED_PADDING = "owed-padding"  # padding whose contract is a value holds it at the end
    OBSERVABLE = "observable"  # every observable cell ends with the value that it had
    VACUITY = "vacuity"  # some input satisfies all assumptions, and on it the old program runs and stores something observable

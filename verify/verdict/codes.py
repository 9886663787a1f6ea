"""The codes of what is refuted or stays unproved of an index map or a rewrite, and of what is wrong with certificates and
counterexamples, with what each means.
"""

from __future__ import annotations

from collections.abc import Mapping

IMAGE_UNKNOWN = "LP201"
CELLS = "LP210"
INTERFACE = "LP211"
RECORDS = "LP212"
ASSUMED = "LP213"
WITNESS = "LP214"
OUTSIDE = "LP215"
UNDEFINED_READ = "LP216"
PADDING_TOUCHED = "LP217"
OVERFLOW = "LP218"
NO_RESULT = "LP219"
RACE = "LP220"
OTHER_VALUE = "LP221"
OTHER_END = "LP222"
PADDING_OWED = "LP223"
UNPROVED = "LP226"
UNDECIDED = "LP230"
VACUOUS = "LP231"
CERTIFICATE_FORM = "LP240"
CERTIFICATE_CHANGED = "LP241"
CERTIFICATE_DIFFERS = "LP242"
CERTIFICATE_WRITE = "LP243"
COUNTEREXAMPLE = "LP250"

MEANINGS: Mapping[str, str] = {
    IMAGE_UNKNOWN: "Nobody could show that the map stays at or above 0, or never divides by zero, at every index of the shape.",
    CELLS: "Two elements would lie in one cell, or one outside of its buffer: the map of a buffer's cells loses something.",
    INTERFACE: "A parameter looks other to callers, and that is not declared: its order, type or shape, or that it is read only.",
    RECORDS: "The record of how a parameter is laid out no longer says what the program does.",
    ASSUMED: "The rewrite takes something for granted that the program before it does not establish.",
    WITNESS: "The witness does not say, for each store, what it computes of the program before.",
    OUTSIDE: "An access leaves its buffer, or a block's variable its domain.",
    UNDEFINED_READ: "A read finds a cell that nothing has written, or padding whose content nobody states.",
    PADDING_TOUCHED: "A store writes padding that has no contract, which nobody may touch.",
    OVERFLOW: "An index or a size does not fit the type that computes it.",
    NO_RESULT: "An operation has no result for some values: a division by zero, a shift too far, a cast out of range.",
    RACE: "Two iterations that may run at one time touch one cell, and one of them writes.",
    OTHER_VALUE: "A store computes another value than its counterpart did before the step.",
    OTHER_END: "A cell that a caller can see ends with another value than it did before the step.",
    PADDING_OWED: "Padding does not end with the value that its contract says.",
    UNPROVED: "A claim about the step is refuted; the report has the claim and the counterexample.",
    UNDECIDED: "A claim was neither proved nor refuted: a budget ran out, or it cannot be expressed. The reason says which.",
    VACUOUS: "The assumptions cannot all hold, every run faults, or nothing is stored that callers see, so that a proof would say nothing.",
    CERTIFICATE_FORM: "The file is no certificate, or one of a form that this version does not read.",
    CERTIFICATE_CHANGED: "The file is not as it was written: its hashes, which cover every byte, are other ones.",
    CERTIFICATE_DIFFERS: "The checker, run on the programs in the file, has other obligations, or asks other questions, than it lists.",
    CERTIFICATE_WRITE: "A certificate could not be written where it was to go.",
    COUNTEREXAMPLE: "A counterexample holds numbers for the symbols and an array for each parameter, floats as hexadecimal text.",
}

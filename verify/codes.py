"""The codes of what stays unproved of an index map although an answer needs it, and of what is wrong with certificates and
counterexamples, with what each means.
"""

from __future__ import annotations

from collections.abc import Mapping

IMAGE_UNKNOWN = "LP201"
CERTIFICATE_FORM = "LP240"
CERTIFICATE_CHANGED = "LP241"
CERTIFICATE_DIFFERS = "LP242"
CERTIFICATE_WRITE = "LP243"
COUNTEREXAMPLE = "LP250"

MEANINGS: Mapping[str, str] = {
    IMAGE_UNKNOWN: "Nobody could show that the map stays at or above 0, or never divides by zero, at every index of the shape.",
    CERTIFICATE_FORM: "The file is no certificate, or one of a form that this version does not read.",
    CERTIFICATE_CHANGED: "The file is not as it was written: its hashes, which cover every byte, are other ones.",
    CERTIFICATE_DIFFERS: "The checker, run on the programs in the file, has other obligations, or asks other questions, than it lists.",
    CERTIFICATE_WRITE: "A certificate could not be written where it was to go.",
    COUNTEREXAMPLE: "A counterexample holds numbers for the symbols and an array for each parameter, floats as hexadecimal text.",
}

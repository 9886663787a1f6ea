"""The codes of everything that can be wrong with a text, with what each means."""

from __future__ import annotations

from collections.abc import Mapping

SYNTAX = "LP110"
EMPTY = "LP111"
UNDECODABLE = "LP112"
TOO_DEEP = "LP113"
UNREADABLE_FILE = "LP114"
NUMBER_RANGE = "LP115"
UNDEFINED_NAME = "LP116"
UNSUPPORTED = "LP117"
UNKNOWN_FUNCTION = "LP118"
WRONG_TYPE = "LP119"
WRONG_ARGUMENTS = "LP120"
NOT_A_MAP = "LP121"
LAYOUT_STRING = "LP122"
EXTENT = "LP123"
BOUND_TWICE = "LP124"
MISPLACED = "LP125"
FUNCTIONS = "LP126"
BUFFER_USE = "LP127"
ASSERTION = "LP128"
INIT_GUARDED = "LP129"
UPSTREAM_DIFFERS = "LP133"

MEANINGS: Mapping[str, str] = {
    SYNTAX: "The text is not Python syntax. Programs and maps are read with Python's grammar; nothing in them is executed.",
    EMPTY: "There is no text, or nothing but blanks and comments in it.",
    UNDECODABLE: "The text holds null bytes or is not UTF-8: most likely a binary file.",
    TOO_DEEP: "Expressions or statements are nested deeper than any program needs. Name parts of the expression with a let.",
    UNREADABLE_FILE: "The file does not exist, is a directory, or may not be read.",
    NUMBER_RANGE: "A number does not fit the type that its place asks for, or 64 bits.",
    UNDEFINED_NAME: "A name is used that no parameter, loop, block axis or declaration before it introduces.",
    UNSUPPORTED: "Python syntax that has no meaning in a program or map here. It is refused rather than skipped.",
    UNKNOWN_FUNCTION: "A function or intrinsic that is not known. Calls are never kept without being known by name.",
    WRONG_TYPE: "An operand has a type that its operation does not take: a truth value in arithmetic, a float as an index, unlike lanes.",
    WRONG_ARGUMENTS: "A call has too many, too few, repeated or unknown arguments, or one of the wrong sort.",
    NOT_A_MAP: "An index map is a lambda of named indices that gives a list of integer expressions.",
    LAYOUT_STRING: "A layout string such as NCHW4c names each axis once in upper case, and its tiles in lower case with their sizes.",
    EXTENT: "An extent of a shape must be an integer of at least 1, or an expression over named extents.",
    BOUND_TWICE: "A name is bound again where its first meaning still holds. Two loops side by side may share a name, nested ones not.",
    MISPLACED: "A statement stands where it has no meaning: T.init outside its block, T.reads after the block's first statement.",
    FUNCTIONS: "The text should hold one function decorated with T.prim_func, or a class of them decorated with I.ir_module.",
    BUFFER_USE: "A buffer is used in a way that does not fit it: without indices, with too many, or matched to no parameter.",
    ASSERTION: "An assertion about a type in the text is false.",
    INIT_GUARDED: "A block's init may not run, as its guard excludes the first step or the reduction is empty, or may come late.",
    UPSTREAM_DIFFERS: "TVM 0.27 computes something else of this: it simplifies floats, keeps bfloat16 wide, or reads past a guard.",
}

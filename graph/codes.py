"""The codes of errors in graphs, in layout flow, in plans and in models, with what each means."""

from __future__ import annotations

from collections.abc import Mapping

TWO_VALUES = "LP601"
NO_VALUE = "LP602"
OPERANDS = "LP603"
OPERAND_TYPE = "LP604"
RESULT_TYPE = "LP605"
FUNCTION_FORM = "LP606"
NO_OUTPUT = "LP607"
TRANSFORM_MAP = "LP608"
PAD_WIDTHS = "LP609"
CROP_BOX = "LP610"
PAD_SCALAR = "LP611"
CONSTANT_DATA = "LP612"
OPERATOR_ARGUMENT = "LP613"
GRAPH_TEXT = "LP614"
GRAPH_NAME = "LP615"
RUN_INPUT = "LP616"
TWO_FUNCTIONS = "LP617"
VALUE_NAME = "LP618"
GRAPH_WRITE = "LP619"
NO_FLOW = "LP621"
NOT_A_COPY = "LP622"
FOLD_INTO = "LP623"
LAYOUT_NAMES = "LP631"
NO_PLAN = "LP632"
COST_TABLE = "LP633"
LAYOUT_FILE = "LP634"
MODEL_FILE = "LP641"
MODEL_OPERATOR = "LP642"
MODEL_SHAPE = "LP643"
MODEL_RUNTIME = "LP644"

MEANINGS: Mapping[str, str] = {
    TWO_VALUES: "Every value of a graph is made in one place and has a unique name.",
    NO_VALUE: "A call of a graph uses a value that no call before it makes.",
    OPERANDS: (
        "A call has one operand for each array that the function only reads, and one result for each array that it "
        "writes."
    ),
    OPERAND_TYPE: "An operand must have the shape and the data type of the function's parameter.",
    RESULT_TYPE: "The result of a call has another shape or data type than declared.",
    FUNCTION_FORM: (
        "A graph calls functions over whole arrays of known extents that are either only read or freshly written."
    ),
    NO_OUTPUT: "A graph has at least one output, and each is a value of the graph.",
    TRANSFORM_MAP: (
        "A layout_transform moves every element to a cell of its own and leaves no cell empty: its map is a bijection."
    ),
    PAD_WIDTHS: "A pad has for each axis the number of cells before and after, neither of them negative.",
    CROP_BOX: "A crop keeps a box inside its operand: a start and a size for each axis.",
    PAD_SCALAR: "Pad values and cropped values are one number of the operand's data type, or undef.",
    CONSTANT_DATA: "A constant's array is missing, or is not the one in the graph's text.",
    OPERATOR_ARGUMENT: "An operator's shapes and attributes do not fit together.",
    GRAPH_TEXT: (
        "A graph's text is a function of assignments, one for each call, and a return; nothing in it is executed."
    ),
    GRAPH_NAME: "A graph's text calls a function or an operator that does not exist.",
    RUN_INPUT: "A graph is run on one array for each input, of the input's shape and data type.",
    TWO_FUNCTIONS: "Different functions of a graph must have different names in its text.",
    VALUE_NAME: "The name of a value must be an identifier of Python, and not a keyword.",
    GRAPH_WRITE: "A graph's text and arrays are written whole, both or neither, into an existing, writable folder.",
    NO_FLOW: "A layout does not pass through an operator: some access would no longer be a simple image of the layout.",
    NOT_A_COPY: "A function does more than move elements, so it is not a layout rewrite.",
    FOLD_INTO: (
        "A layout transform can be folded into the only call that uses its result, or that makes its operand for it "
        "alone."
    ),
    LAYOUT_NAMES: "A layout is given by an operator's name and one map for each of its arrays.",
    NO_PLAN: "No assignment of layouts satisfies all that is frozen.",
    COST_TABLE: "A cost table has a cost, not negative, for every rewrite that a plan may need.",
    LAYOUT_FILE: (
        "A file of layouts is TOML or JSON: tables of operators, of calls, and of inputs and outputs, each with "
        "layouts."
    ),
    MODEL_FILE: "The file is not a model that can be read, or the reader for it is not installed.",
    MODEL_OPERATOR: "The model has an operator, or a use of one, that is not supported.",
    MODEL_SHAPE: (
        "The model leaves an extent open without a given size, or a size is given for an extent that is not open."
    ),
    MODEL_RUNTIME: "onnxruntime, with which a model is compared, is not installed, or does not run it.",
}

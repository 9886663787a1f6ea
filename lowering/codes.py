"""The codes of everything that can be wrong with a transform, a trace or a compute definition, with what each means."""

from __future__ import annotations

from collections.abc import Mapping

NO_BUFFER = "LP301"
TWO_BUFFERS = "LP302"
NO_BLOCK = "LP303"
TWO_BLOCKS = "LP304"
PAD_TYPE = "LP305"
PAD_LOADS = "LP306"
PAD_UNDEF = "LP307"
NOT_IN_BLOCK = "LP308"
MAP_ARITY = "LP309"
PAD_OF_VECTORS = "LP310"
UNKNOWN_ARGUMENT = "LP311"
MISSING_ARGUMENT = "LP312"
ARGUMENT_TYPE = "LP313"
NOT_INJECTIVE = "LP314"
ALIASES = "LP315"
STRIDES = "LP316"
POINTER_USE = "LP317"
VECTOR_INDEX = "LP318"
FIXED_INTERFACE = "LP319"
NOT_PROVED = "LP320"
SEPARATORS = "LP321"
PADDING_UNKNOWN = "LP322"
PAD_REFERENCE = "LP325"
RECORD_MAP = "LP329"
INDEX_TYPE = "LP330"
SEPARATOR_ATTRIBUTE = "LP323"
TRANSFORM_ATTRIBUTE = "LP324"
TRACE_FORM = "LP326"
UNKNOWN_PRIMITIVE = "LP327"
TRACE_JSON = "LP328"
MATCHED_REGION = "LP331"
INIT_PLACE = "LP332"
BINDING_CHANGES = "LP333"
NO_LOOP = "LP334"
TWO_LOOPS = "LP335"
LOOP_KIND = "LP336"
SPLIT_FACTORS = "LP337"
LOOP_NEST = "LP338"
NO_ORDER = "LP339"
NO_GUARD = "LP340"
BLOCKS_FIRST = "LP341"
STRIDES_AND_SEPARATORS = "LP342"
THREAD_AXIS = "LP343"
NO_PLACE = "LP344"
NO_STEP = "LP349"
UNDEF_IN_CONTROL = "LP351"
SEVERAL_ACCESSES = "LP352"
NO_ITERATORS = "LP353"
NOT_TEMPORARY = "LP354"
LOOP_OUTSIDE = "LP355"
NO_PADS = "LP356"
NO_EINSUM = "LP357"
LANES = "LP361"
EXPANSION = "LP362"
NOT_ADJACENT = "LP363"
BLOCK_MAP = "LP364"
PARTITION = "LP365"
NO_PADDING = "LP371"
NO_LAYOUT_STEP = "LP372"
NO_LANES = "LP381"
POINTER_CASTS = "LP382"
VECTOR_TARGET = "LP383"
HOIST_FLAG = "LP387"
LET_INSIDE = "LP388"
HOIST_COPIES = "LP389"
PAD_VALUE = "LP373"
BRANCH_NEEDED = "LP374"
GATE_FORM = "LP345"
GATE_RESULT = "LP346"
CACHE_DAMAGED = "LP366"
CACHE_UNUSABLE = "LP367"
CACHE_FOREIGN = "LP368"
CACHE_ENTRY = "LP369"
COMPARED_PARAMETERS = "LP375"
COMPARED_ORDER = "LP376"
COMPARED_MATCH = "LP377"
COMPARED_LAYOUT = "LP378"
COMPARED_SYMBOL = "LP379"
COMPARED_RECORD = "LP380"
TE_SHAPE = "LP390"
TE_DTYPE = "LP391"
TE_NAME = "LP392"
TE_INDEX = "LP393"
TE_FUNCTION = "LP394"
TE_VALUE = "LP395"
TE_REDUCTION = "LP396"
TE_PARAMETERS = "LP397"
TE_STAGE = "LP398"
TE_PADDING = "LP399"

MEANINGS: Mapping[str, str] = {
    NO_BUFFER: "The function has no buffer of that name, neither as a parameter nor in its body.",
    TWO_BUFFERS: "Two buffers have that name, so it is ambiguous. Rename one of them.",
    NO_BLOCK: "The function has no block of that name. The body itself is called root.",
    TWO_BLOCKS: "Two blocks have that name, so it is ambiguous. Rename one of them.",
    PAD_TYPE: (
        "A pad value is one value of the buffer's type, or a function of as many indices as the physical box has axes."
    ),
    PAD_LOADS: (
        "A pad value loads from the transformed buffer itself or from nothing: no contract depends on another buffer."
    ),
    PAD_UNDEF: (
        "undef is a pad value by itself. In an index, a condition or a larger value it would make the contract "
        "undefined."
    ),
    NOT_IN_BLOCK: "The block in the step does not access the buffer; one of the two names is probably wrong.",
    MAP_ARITY: "An index map takes one index for each axis of the buffer.",
    PAD_OF_VECTORS: (
        "A padding contract is assumed element by element; an assumption is one boolean, not one for each lane."
    ),
    UNKNOWN_ARGUMENT: "A step has an argument that its primitive does not have.",
    MISSING_ARGUMENT: "A step lacks an argument that its primitive needs.",
    ARGUMENT_TYPE: "An argument of a step has another type than its primitive takes.",
    NOT_INJECTIVE: (
        "Two elements would be stored in one cell, or this could not be excluded. A map that is not injective loses "
        "data."
    ),
    ALIASES: "Other buffers share the memory. If one view changes its layout, the others read wrong cells.",
    STRIDES: "The buffer has strides or an offset, which already define where its cells are stored.",
    POINTER_USE: "The buffer's memory is used by its address, so its layout cannot be changed.",
    VECTOR_INDEX: "A vector access needs adjacent elements; in the new layout they may not be adjacent.",
    FIXED_INTERFACE: "The schedule was made with a fixed interface, so the layout of a parameter may not change.",
    NOT_PROVED: (
        "A condition of textures was not proved, so the kernel is not built. The report has the claim and the "
        "counterexample."
    ),
    SEPARATORS: "Axis separators are increasing indices of axes before the last.",
    PAD_REFERENCE: "A pad value may load elements of the buffer, but not padding.",
    RECORD_MAP: "A layout record must have maps that are injective and stay in their boxes, and this must be proved.",
    INDEX_TYPE: (
        "The index arithmetic of a layout is signed; this access has another type, or an extent does not fit it."
    ),
    PADDING_UNKNOWN: "No predicate was found for the cells without an element, so they cannot be filled.",
    SEPARATOR_ATTRIBUTE: "The attribute buffer_axis_separators maps data variables to lists of integers.",
    TRANSFORM_ATTRIBUTE: (
        "The attribute buffer_layout_transformations maps data variables of the function to lists of index maps."
    ),
    TRACE_FORM: "A trace is a list of steps, each a list of two: a primitive's name, and an object with its arguments.",
    UNKNOWN_PRIMITIVE: "A trace names a primitive that does not exist.",
    TRACE_JSON: "The file is not standard JSON (which has no NaN and Infinity).",
    MATCHED_REGION: (
        "A block views a region of another buffer under a name of its own. Such blocks are kept, but not lowered."
    ),
    INIT_PLACE: "The block's init runs once for each result, and no place among the loops is known for that.",
    BINDING_CHANGES: (
        "A block's variable is bound to what is in memory when the block is entered; the block itself changes that "
        "memory."
    ),
    NO_LOOP: (
        "There is no such loop around the block. A loop is named by its variable, or by its position from the outside."
    ),
    TWO_LOOPS: "Two loops have that variable, so it is ambiguous. Name the loop by its position.",
    LOOP_KIND: "The loop runs on a hardware thread axis, whose extent is part of how the kernel is launched.",
    SPLIT_FACTORS: "The loops made by a split must cover the old one; one factor may be null and is then computed.",
    LOOP_NEST: (
        "Loops can be exchanged only if nothing but loops and branches is between them, and no range depends on the "
        "other."
    ),
    NO_ORDER: "The loops cannot follow the buffer: its index must be an invertible function of them.",
    NO_GUARD: "The block has no such guard: no condition in it or around it that could be removed.",
    BLOCKS_FIRST: "The transform needs loops and accesses without blocks; lower the blocks first.",
    STRIDES_AND_SEPARATORS: "Memory with more than one physical axis has no strides and no offset.",
    NO_PADDING: "The block accesses no padding, so it has no iterations that could be skipped.",
    NO_LAYOUT_STEP: "Pad values are tried in the step that changed the buffer's layout; the schedule has no such step.",
    THREAD_AXIS: "A loop is bound to an axis that there is, whose loops in one kernel agree in their length.",
    NO_PLACE: "The block cannot be moved there: a block that it needs or that needs it stands in the way.",
    NO_STEP: "A schedule without steps has none to undo.",
    SEVERAL_ACCESSES: (
        "A buffer over the iterators of a block has one cell for each instance, so the block may access one place only."
    ),
    NO_ITERATORS: "An access that is indexed by a block's iterators must depend on these alone.",
    NOT_TEMPORARY: "Only a buffer that the function allocates can change its extent.",
    LOOP_OUTSIDE: "A double buffer is allocated outside the loop, and accessed only inside it.",
    NO_PADS: "The block does not pad: it must store a selection between a value inside and a constant outside.",
    NO_EINSUM: "Iterators are padded if each has a loop of its own, and each index of a buffer is a single iterator.",
    UNDEF_IN_CONTROL: "An index, a range or a condition is undefined, which is undefined behaviour.",
    LANES: "A vectorised loop needs a constant number of iterations, and must not be inside another one.",
    EXPANSION: "Only a loop with a constant and small number of iterations can be unrolled.",
    NO_LANES: "A vectorised loop needs a constant number of lanes, and statements that all lanes execute together.",
    POINTER_CASTS: (
        "The target cannot view memory with another number of lanes; make vectors the elements of the buffers instead."
    ),
    VECTOR_TARGET: "There is no such target; the vector features of targets are in a table.",
    HOIST_FLAG: "Flags select what may be hoisted, and there is none of that name.",
    LET_INSIDE: (
        "The condition needs a value that is bound inside the loop, and the flags do not permit hoisting the let."
    ),
    HOIST_COPIES: "A condition with two branches copies its loop; so many of them would make the program too large.",
    NOT_ADJACENT: (
        "Two loops can be merged if the second directly follows the first, has as many iterations, and counts in the "
        "same type."
    ),
    BLOCK_MAP: (
        "A block runs over new loops if its variables are its loops, and new ones are functions of old ones of one "
        "kind."
    ),
    PAD_VALUE: "With this pad value a branch cannot be removed: the iterations that it skips change an output.",
    BRANCH_NEEDED: (
        "A branch cannot be removed: the iterations that it skips change an output, and no padding contract prevents "
        "it."
    ),
    GATE_FORM: (
        "A gate is a function that takes the arguments of each of its cases, by name or in order, and nothing else."
    ),
    GATE_RESULT: "A gate returns what it proved: a schedule, a comparison, the report of a map, or a list of these.",
    PARTITION: "A loop is partitioned between two of its iterations, and nothing in it runs once for all of them.",
    CACHE_DAMAGED: (
        "The proof cache was damaged. It was moved aside under a name that says so, and a new one was created."
    ),
    CACHE_UNUSABLE: (
        "The proof cache cannot be read or written, so the run continues without it: verdicts are the same, but take "
        "longer."
    ),
    CACHE_FOREIGN: "The place of the proof cache is taken by something else. It was not changed.",
    CACHE_ENTRY: "An entry of the proof cache was changed. It was moved aside, and is proved again.",
    COMPARED_PARAMETERS: (
        "A parameter of one program cannot be passed to the other: their number, kind or type differs."
    ),
    COMPARED_ORDER: "A parameter of both programs is in another position, so its position and its name disagree.",
    COMPARED_MATCH: (
        "A pair of parameters is one name after and one name before, each of a parameter, and each used once."
    ),
    COMPARED_LAYOUT: (
        "A layout or a pad value belongs to a parameter of the program before, and fits its shapes before and after."
    ),
    COMPARED_SYMBOL: (
        "Each symbol of the program after must be known in the program before: by its position in a shape, or by its "
        "name."
    ),
    COMPARED_RECORD: (
        "If the program after records the layout of a parameter, the record must start with the layout in the program "
        "before."
    ),
    TE_SHAPE: "A tensor's shape and a reduction's range are integers, none negative, or expressions of integer "
    "variables.",
    TE_DTYPE: "A tensor's elements have one of the data types, such as float32, int8 or bool.",
    TE_NAME: "A tensor, a variable and an axis have names that a program can use, and tensors of a program have unique "
    "ones.",
    TE_INDEX: "A tensor is read at one element, with one integer index for each axis.",
    TE_FUNCTION: "A compute takes a function of as many named indices as its shape has axes, or of `*indices`.",
    TE_VALUE: "What a compute's function returns is the value of one element: an expression, a number, or a reduction "
    "of one.",
    TE_REDUCTION: "A reduction runs over axes made by reduce_axis, and is the whole value of its compute.",
    TE_PARAMETERS: "The parameters of a function are tensors and variables, and include every input of the "
    "computation.",
    TE_STAGE: "A stage is scheduled by its present axes, and through tensors that belong to the schedule.",
    TE_PADDING: "The map leaves cells without an element, and loops over all cells of the transformed tensor access "
    "them.",
}

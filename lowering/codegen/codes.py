"""The codes of errors in code generation, devices, building kernels and calling them, with their sentences."""

from __future__ import annotations

from collections.abc import Mapping

RANK = "LP401"
NOT_LOWERED = "LP402"
UNSUPPORTED = "LP403"
TOO_DEEP = "LP404"
TEXEL = "LP405"
NO_COMPILER = "LP410"
COMPILER_FAILED = "LP411"
NOT_LOADED = "LP412"
NOWHERE_TO_BUILD = "LP413"
ARGUMENTS = "LP420"
ARGUMENT_SHAPE = "LP421"
ARGUMENT_TYPE = "LP422"
ARGUMENT_MEMORY = "LP423"
READ_ONLY = "LP424"
OVERLAP = "LP425"
SYMBOLS = "LP426"
DID_NOT_RUN = "LP427"
SELF_CHECK = "LP428"
NOT_AN_ARRAY = "LP429"
PAD_FILLING = "LP430"
ASSUMPTION = "LP431"
OTHER_MEMORY = "LP432"
NO_PYOPENCL = "LP440"
NO_DEVICE = "LP441"
WHICH_DEVICE = "LP442"
PROFILE = "LP443"
IMAGE_SIZE = "LP444"
LACKING = "LP445"
NOT_COMPILED = "LP446"
DEVICE_MEMORY = "LP447"

MEANINGS: Mapping[str, str] = {
    RANK: "A target addresses memory with as many indices as it has axes: C has one, an image of OpenCL two or three. "
    "A buffer is flattened to as many first; axis separators say which of its axes go together.",
    NOT_LOWERED: "Blocks, assumptions and undefined values are for proofs; they are lowered before code is generated.",
    UNSUPPORTED: "The target has no such type, memory, thread or function. The message says which, and what to use "
    "instead.",
    TOO_DEEP: "The program's expressions or statements are nested deeper than code generation can follow.",
    TEXEL: "An image is written a texel at a time. A texel of four channels is four elements of a buffer: they are "
    "stored together, by a vector of 4 lanes or by an innermost loop over them.",
    NO_COMPILER: "Kernels are compiled by a C compiler. CC names one, else cc, gcc, clang and the ziglang package are "
    "tried.",
    COMPILER_FAILED: "The C compiler did not accept the generated source, or is no C compiler. Its message, the "
    "command and the source's path are given; generated source that a sound compiler refuses is an error of "
    "layoutproof.",
    NOT_LOADED: "The compiled library exists but cannot be loaded, for example because its folder is mounted noexec.",
    NOWHERE_TO_BUILD: "Neither the cache folder nor the system's temporary folder can be written.",
    ARGUMENTS: "A kernel takes its inputs, or all its parameters, in order or by name.",
    ARGUMENT_SHAPE: "An array's shape is not the one that the program declares. A call takes logical shapes, raw() "
    "physical ones.",
    ARGUMENT_TYPE: "An array or number has another type or byte order than the program declares; nothing is converted "
    "silently.",
    ARGUMENT_MEMORY: "Kernels read and write memory in row-major order without gaps, each element at a multiple of its "
    "size.",
    READ_ONLY: "The kernel writes to a parameter whose array is read-only.",
    OVERLAP: "The function was proved for parameters that do not overlap (noalias). Two arrays share memory, and one "
    "is written.",
    SYMBOLS: "A symbol in the shapes has no value, two values, or one outside the bounds that the kernel was built "
    "for.",
    DID_NOT_RUN: "The compiled function refused to run, most likely because memory for its intermediate buffers ran "
    "out.",
    SELF_CHECK: "Every kernel is compared with the reference interpreter when it is built. This one differs: the C "
    "compiler or layoutproof is at fault. Nothing was returned.",
    NOT_AN_ARRAY: "A kernel takes numpy arrays, and objects with the array interface or DLPack.",
    OTHER_MEMORY: "An array is in the memory of another device; nothing is copied silently.",
    ASSUMPTION: "The kernel's proofs rest on assumptions on its symbols: those that the program states, extents of at "
    "least 0, and index arithmetic of symbols alone that fits its type. They are checked at every call; for these "
    "symbols one does not hold.",
    PAD_FILLING: "Before a call, padding is filled by its contract; this contract's value cannot be computed there.",
    NO_PYOPENCL: "OpenCL needs the package pyopencl, which the extra `opencl` installs together with a loader of "
    "drivers.",
    NO_DEVICE: "No OpenCL platform offers a device. The extra `opencl` installs pocl, which runs on every processor.",
    WHICH_DEVICE: "A device is given by a part of its name or its platform's, which must match exactly one device.",
    PROFILE: "A profile of a device is the width and the height of its largest image in texels, such as 16384x16384.",
    IMAGE_SIZE: "A texture is an image of the device, which limits its width, its height and its number of layers.",
    LACKING: "The device has no images, no such format of images, no such type or no such work group. The message says "
    "which.",
    NOT_COMPILED: "The device's own compiler did not accept the generated text, or did not end with a program. Its "
    "message is given.",
    DEVICE_MEMORY: "A buffer is larger than the device allocates at once, or all of them together are larger than its "
    "memory.",
}

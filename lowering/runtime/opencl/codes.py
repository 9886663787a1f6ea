"""The codes of errors with OpenCL devices and kernels for them, with their sentences."""

from __future__ import annotations

from collections.abc import Mapping

NO_PYOPENCL = "LP440"
NO_DEVICE = "LP441"
WHICH_DEVICE = "LP442"
PROFILE = "LP443"
IMAGE_SIZE = "LP444"
LACKING = "LP445"
NOT_COMPILED = "LP446"
DEVICE_MEMORY = "LP447"

MEANINGS: Mapping[str, str] = {
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

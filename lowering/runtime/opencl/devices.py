"""The OpenCL devices of this machine: what each can do, and which one is used; the limits of a device or a profile,
checked before compilation and, for symbolic shapes, before anything runs.

pyopencl is an optional extra and loads a driver for every platform: it is imported when a device is asked for, never
before.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import free_variables
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.opencl.cl_helpers import (
    READ_WRITE_IMAGES,
    Image,
    KernelArgument,
    Launch,
    OpenCLSource,
)
from layoutproof.lowering.runtime.opencl.driver_cache import use_private_driver_cache

if TYPE_CHECKING:
    import pyopencl


VARIABLE = "LAYOUTPROOF_OPENCL_DEVICE"
"""The environment variable that names the device where a call does not."""

INSTALL = "pip install 'layoutproof[opencl]'"

_POCL = "Portable Computing Language"

# Bits of CL_DEVICE_..._FP_CONFIG.
_SUBNORMALS, _CORRECT_DIVISION = 1 << 0, 1 << 7

_READ_WRITE = "__opencl_c_read_write_images"


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """The largest image of a device in texels, and the most layers of an array of images."""

    width: int
    height: int
    layers: int


@dataclass(frozen=True, slots=True)
class Device:
    """One device of one platform.

    `images` is None where it has none. `subnormals` and `correct_division` are those of float32: without them, the
    device takes subnormals for zero, and its `/` and `sqrt` are not correctly rounded. Sizes are in bytes.
    """

    platform: str
    name: str
    version: str
    driver: str
    images: ImageLimits | None
    read_write_images: bool
    fp16: bool
    fp64: bool
    subnormals: bool
    correct_division: bool
    extensions: frozenset[str]
    memory: int
    largest_buffer: int
    local_memory: int
    largest_group: int
    group_sizes: tuple[int, ...]
    is_pocl: bool
    handle: pyopencl.Device = field(repr=False, compare=False)

    @property
    def title(self) -> str:
        """The device and its platform."""
        return f"{self.name} ({self.platform})"

    @property
    def version_number(self) -> tuple[int, int]:
        """The version of OpenCL, such as (3, 0), from the driver's `OpenCL 3.0 ...`."""
        major, _, minor = self.version.split(" ")[1].partition(".")
        return int(major), int(minor)


def devices() -> tuple[Device, ...]:
    """Every device of every platform, in the system's order; platforms without devices are skipped.

    Raises LayoutproofError (LP440) where pyopencl is missing or does not load.
    """
    cl = _pyopencl()
    try:
        platforms = cl.get_platforms()
    except cl.LogicError:
        # What the loader says where it knows no platform.
        return ()
    return tuple(_examined(cl, platform, handle) for platform in platforms for handle in _handles(cl, platform))


def find_device(name: str | None = None) -> Device:
    """The device whose name or platform contains `name`, else the one that `$LAYOUTPROOF_OPENCL_DEVICE` names, else
    pocl, else the first.

    Of several devices of pocl, the first that compiles a kernel is taken.

    Raises LayoutproofError: LP440 where pyopencl is missing, LP441 where there is no device, LP442 where the name fits
    none or several.
    """
    found = devices()
    if not found:
        raise error(
            codes.NO_DEVICE,
            "there is no OpenCL device on this machine",
            help=f"{INSTALL} installs pocl, which runs on the processor; a graphics card needs its vendor's driver",
        )
    if name is not None:
        return _named(name, found, f"the OpenCL device {name!r}")
    wanted = os.environ.get(VARIABLE, "").strip()
    if wanted:
        return _named(wanted, found, f"the OpenCL device that the environment variable {VARIABLE} names, {wanted!r},")
    return _first_that_builds([device for device in found if device.is_pocl] or [found[0]])


def _first_that_builds(found: Sequence[Device]) -> Device:
    """The first device that compiles a kernel, of several: a version of pocl may not know the processor."""
    return next((device for device in found if len(found) > 1 and _builds(device.handle)), found[0])


# Each program that is built or run asks; the answer takes a compilation and is the same while the driver is loaded.
@cache
def _builds(handle: pyopencl.Device) -> bool:
    cl = _pyopencl()
    try:
        cl.Program(cl.Context([handle]), "__kernel void probe(__global float *a) { a[0] = 1.0f; }").build(
            cache_dir=False
        )
    except cl.Error:
        return False
    return True


def _named(name: str, found: Sequence[Device], what: str) -> Device:
    """The one device that fits; of several with one name on one platform, the first."""
    wanted = name.strip().casefold()
    exact = [d for d in found if wanted in (d.name.casefold(), d.title.casefold())]
    fitting = (
        exact
        if exact
        else [d for d in found if wanted and (wanted in d.title.casefold() or (wanted == "pocl" and d.is_pocl))]
    )
    titles = list(dict.fromkeys(d.title for d in fitting))
    if len(titles) == 1:
        return _first_that_builds(fitting)
    working = [d for d in fitting if _builds(d.handle)] if all(d.is_pocl for d in fitting) else []
    if working:
        return working[0]
    there = "; ".join(dict.fromkeys(d.title for d in found))
    if titles:
        raise error(
            codes.WHICH_DEVICE,
            f"{what} could be any of {len(titles)}: {'; '.join(titles)}",
            help="say more of its name",
        )
    raise error(codes.WHICH_DEVICE, f"{what} is not there", help=f"there are: {there}")


def _pyopencl() -> Any:
    use_private_driver_cache()
    try:
        import pyopencl
    except ModuleNotFoundError as problem:
        if problem.name != "pyopencl":
            raise _does_not_load(problem) from problem
        raise error(
            codes.NO_PYOPENCL, "the OpenCL target needs the package pyopencl, which is not installed", help=INSTALL
        ) from problem
    except (ImportError, OSError) as problem:
        raise _does_not_load(problem) from problem
    return pyopencl


def _does_not_load(problem: Exception) -> LayoutproofError:
    return error(
        codes.NO_PYOPENCL, f"the package pyopencl does not load: {problem}", help=f"{INSTALL} in a fresh environment"
    )


def _handles(cl: Any, platform: Any) -> Iterator[Any]:
    try:
        yield from platform.get_devices()
    except cl.Error as problem:
        # A platform whose hardware is not there says so in this way; any other failure is told.
        if problem.code != cl.status_code.DEVICE_NOT_FOUND:
            raise error(
                codes.NO_DEVICE, f"the OpenCL platform {platform.name} does not list its devices: {problem}"
            ) from problem


def _examined(cl: Any, platform: Any, handle: Any) -> Device:
    try:
        return _device(cl, platform, handle)
    except cl.Error as problem:
        message = f"a device of the OpenCL platform {platform.name} does not say what it can do: {problem}"
        raise error(
            codes.NO_DEVICE, message, help="its driver is at fault: another version of it, or none, would do"
        ) from problem


def _device(cl: Any, platform: Any, handle: Any) -> Device:
    extensions = frozenset(handle.extensions.split())
    version = str(handle.version).strip()
    single = int(handle.single_fp_config)
    limits = None
    if handle.image_support:
        limits = ImageLimits(
            int(handle.image2d_max_width), int(handle.image2d_max_height), int(handle.image_max_array_size)
        )
    return Device(
        platform=str(platform.name).strip(),
        name=str(handle.name).strip(),
        version=version,
        driver=str(handle.driver_version).strip(),
        images=limits,
        read_write_images=limits is not None and _has_read_write(cl, handle, version),
        fp16="cl_khr_fp16" in extensions,
        # Drivers of OpenCL 1.1 do not know the question after doubles that later ones answer.
        fp64="cl_khr_fp64" in extensions or (not version.startswith("OpenCL 1.") and bool(handle.double_fp_config)),
        subnormals=bool(single & _SUBNORMALS),
        correct_division=bool(single & _CORRECT_DIVISION),
        extensions=extensions,
        memory=int(handle.global_mem_size),
        largest_buffer=int(handle.max_mem_alloc_size),
        local_memory=int(handle.local_mem_size),
        largest_group=int(handle.max_work_group_size),
        group_sizes=tuple(int(size) for size in handle.max_work_item_sizes),
        is_pocl=_POCL in str(platform.name),
        handle=handle,
    )


def _has_read_write(cl: Any, handle: Any, version: str) -> bool:
    """Whether one kernel may read and write an image: a part of OpenCL 2, an option of OpenCL 3."""
    if version.startswith("OpenCL 2"):
        return True
    if version.startswith("OpenCL 1"):
        return False
    try:
        return any(feature.name == _READ_WRITE for feature in handle.opencl_c_features)
    except cl.Error:
        return False


_PROFILE = re.compile(r"([1-9][0-9]{0,8})x([1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True)
class Profile:
    """The largest image, in texels, of the devices that a kernel shall run on: `16384x16384`."""

    width: int
    height: int

    def __str__(self) -> str:
        return f"{self.width}x{self.height}"


def parse_profile(text: str) -> Profile:
    """A profile from its text. Raises LayoutproofError (LP443)."""
    match = _PROFILE.fullmatch(text.strip())
    if match is None:
        message = f"the device profile {text!r} is not understood"
        raise error(
            codes.PROFILE, message, help="WIDTHxHEIGHT of its largest image in texels, such as 16384x16384 or 4096x4096"
        )
    return Profile(int(match[1]), int(match[2]))


@dataclass(frozen=True, slots=True)
class Texture:
    """An image of a kernel, named by its parameter or temporary."""

    name: str
    image: Image

    @property
    def sizes(self) -> tuple[Expr, ...]:
        """Width, height and, of an array of images, layers: in texels."""
        return (self.image.width, self.image.height, *(() if self.image.layers is None else (self.image.layers,)))

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols in its sizes."""
        return tuple(dict.fromkeys(v.name for size in self.sizes for v in free_variables(size)))

    @property
    def words(self) -> str:
        """The image in words: `an image of RGBA texels of HALF_FLOAT`."""
        form = "an array of images" if self.image.layers is not None else "an image"
        return f"{form} of {self.image.channel_order} texels of {self.image.channel_type}"


def textures_of(source: OpenCLSource) -> tuple[Texture, ...]:
    """Every image of some kernel, once."""
    found: dict[str, Texture] = {}
    for launch in source.launches:
        for argument in launch.arguments:
            if isinstance(argument, KernelArgument) and argument.image is not None:
                found.setdefault(argument.name, Texture(argument.name, argument.image))
    return tuple(found.values())


def check_capabilities(source: OpenCLSource, device: Device) -> None:
    """Raise LayoutproofError (LP445) with every feature that a program needs and the device lacks."""
    problems = list(_lacking(source, device))
    if problems:
        raise LayoutproofError([d for problem in problems for d in problem.diagnostics])


def _lacking(source: OpenCLSource, device: Device) -> Iterator[LayoutproofError]:
    textures = textures_of(source)
    for texture in textures if device.images is None else ():
        message = f"{device.title} has no images, and {texture.name} is one"
        yield error(
            codes.LACKING, message, texture.image.buffer.span, help="memory of scope global runs on every device"
        )
    for extension in source.extensions:
        if not _has(extension, device):
            message = (
                f"{device.title} has not what the program needs: {_NEEDS.get(extension, f'the extension {extension}')}"
            )
            yield error(codes.LACKING, message, help=f"`layoutproof devices` tells what each device has ({extension})")
    for launch in source.launches:
        yield from _shares_too_much(launch, device, {})
        yield from _too_large(launch, device, {})


def _shares_too_much(launch: Launch, device: Device, known: Mapping[str, int]) -> Iterator[LayoutproofError]:
    """Memory of a group that a device has not; what depends on more than what is known is taken to be empty."""
    size = sum(bytes_of(buffer, known) for buffer in launch.shared)
    if size > device.local_memory:
        bytes_ = expr_text(launch.local_bytes, "plain")
        formula = f" ({bytes_})" if known and free_variables(launch.local_bytes) else ""
        message = (
            f"the work items of a group of {launch.name} share {size:,} bytes{formula}; {device.title} has "
            f"{device.local_memory:,} bytes of local memory"
        )
        yield error(codes.LACKING, message, help="smaller tiles take less shared memory")


def _too_large(launch: Launch, device: Device, known: Mapping[str, int]) -> Iterator[LayoutproofError]:
    """Work groups that a device does not take; none where their size depends on more than what is known."""
    extents = launch.local_size if launch.local_size is not None else ()
    if any(v.name not in known for extent in extents for v in free_variables(extent)):
        return
    local = [int(evaluate(extent, known)) for extent in extents]
    if local and not _fits_group(local, device):
        most = f"{device.largest_group} in all and {list(device.group_sizes)} by axis"
        message = (
            f"{device.title} takes work groups of at most {most}; the loops of {launch.name} are bound to {list(local)}"
        )
        yield error(codes.LACKING, message, help="split the loops that are bound to work items by smaller factors")


def check_groups(source: OpenCLSource, device: Device, known: Mapping[str, int]) -> None:
    """Raise LayoutproofError (LP445) for work groups, of known sizes, that a device does not take, and for memory that
    they share.
    """
    for launch in source.launches:
        for problem in (*_shares_too_much(launch, device, known), *_too_large(launch, device, known)):
            raise problem


_NEEDS: Mapping[str, str] = {
    "cl_khr_fp16": "arithmetic in float16",
    "cl_khr_fp64": "arithmetic in float64",
    READ_WRITE_IMAGES: "images that one kernel both reads and writes",
}


def _has(extension: str, device: Device) -> bool:
    match extension:
        case "cl_khr_fp64":
            return device.fp64
        case _ if extension == READ_WRITE_IMAGES:
            return device.read_write_images
        case _:
            return extension in device.extensions


def _fits_group(local: Sequence[int], device: Device) -> bool:
    by_axis = all(size <= most for size, most in zip(local, device.group_sizes, strict=False))
    return len(local) <= len(device.group_sizes) and by_axis and prod(local) <= device.largest_group


def check_images(
    textures: Sequence[Texture], device: Device | None, profile: Profile | None, known: Mapping[str, int]
) -> None:
    """Raise LayoutproofError (LP444) for the first image that the device or the profile does not accept.

    Those whose sizes depend on unknown symbols are checked at each call.
    """
    for texture in textures:
        if all(name in known for name in texture.symbols):
            check_image(texture, [int(evaluate(size, known)) for size in texture.sizes], device, profile)


def check_image(texture: Texture, sizes: Sequence[int], device: Device | None, profile: Profile | None) -> None:
    """Raise LayoutproofError (LP444) for an image that is too large for the device or the profile."""
    words = ("texels wide", "texels high", "layers deep")
    limits: list[tuple[str, tuple[int, ...]]] = []
    if device is not None and device.images is not None:
        limits.append((device.title, (device.images.width, device.images.height, device.images.layers)))
    if profile is not None:
        limits.append((f"the profile {profile}", (profile.width, profile.height)))
    for whose, most in limits:
        for size, limit, word, extent in zip(sizes, most, words, texture.sizes, strict=False):
            if size > limit:
                said = f" ({expr_text(extent, 'plain')})" if free_variables(extent) else ""
                message = f"{texture.name} is {texture.words} {size}{said} {word}; {whose} takes {limit}"
                help_text = "other axis separators or another index map give it another width and height"
                raise error(codes.IMAGE_SIZE, message, texture.image.buffer.span, help=help_text)


def check_memory(sizes: Mapping[str, int], device: Device) -> None:
    """Raise LayoutproofError (LP447) where memory of these sizes, in bytes by name, exceeds the device's."""
    for name, size in sizes.items():
        if size > device.largest_buffer:
            message = (
                f"{name} takes {_megabytes(size)}; {device.title} allocates {_megabytes(device.largest_buffer)} at once"
            )
            raise error(codes.DEVICE_MEMORY, message)
    total = sum(sizes.values())
    if total > device.memory:
        message = f"the arrays and temporaries take {_megabytes(total)}; {device.title} has {_megabytes(device.memory)}"
        raise error(codes.DEVICE_MEMORY, message)


def bytes_of(buffer: Buffer, known: Mapping[str, int]) -> int:
    """The size of a buffer for known symbols; 0 if it depends on more."""
    if any(v.name not in known for extent in buffer.shape for v in free_variables(extent)):
        return 0
    return prod(max(int(evaluate(extent, known)), 0) for extent in buffer.shape) * buffer.dtype.bytes


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MB"

"""The OpenCL devices of this machine: what each can do, which one is used, and where pocl, the driver for processors,
keeps compiled kernels: not in a folder that others may write to.

pyopencl is an optional extra and loads a driver for every platform: it is imported when a device is asked for, never
before.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.owners import REMEDY, others_may_write

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


POCL_VARIABLE = "POCL_CACHE_DIR"


def driver_cache_folder() -> Path:
    """Where pocl keeps compiled kernels, by its own rules."""
    for variable, below in ((POCL_VARIABLE, ""), ("XDG_CACHE_HOME", "pocl/kcache"), ("HOME", ".cache/pocl/kcache")):
        named = os.environ.get(variable)
        if named:
            return Path(named) / below
    return Path("/tmp/pocl/kcache")


# The driver looks once, when the first device is asked for.
@cache
def use_private_driver_cache() -> None:
    """Give pocl an empty folder for this process where others may write to its cache, with a warning."""
    folder = driver_cache_folder()
    try:
        reason = others_may_write(folder)
    except OSError as problem:
        reason = str(problem)
    if reason is None:
        return
    private = tempfile.mkdtemp(prefix="layoutproof-pocl-")
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    os.environ[POCL_VARIABLE] = private
    warnings.warn(f"no kernel is loaded from pocl's cache folder {folder}: {reason}; {REMEDY}", RuntimeWarning, 2)

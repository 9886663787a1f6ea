"""What a program asks of an OpenCL device: its limits and those of a profile, checked before compilation and, where
sizes are symbolic, before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

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
from layoutproof.lowering.runtime.opencl.devices import Device, Profile


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

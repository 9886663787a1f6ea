"""Which memory of a lowered program is a texture, how large it is in texels, and where in it each access goes.

The last physical axis counts the channels of texels, row-major: texel `x` of a row holds elements `4*x` to `4*x + 3` where the text of
the extent shows a multiple of 4, else it is one element. The axis before it counts rows; of three axes the first counts the layers of
an array.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import counted
from layoutproof.ir.expr import Expr, IntImm, Var
from layoutproof.verify.claim import Claim, ClaimKind
from layoutproof.verify.facts import Facts, proved, refuted
from layoutproof.verify.instances import Access, AccessKind
from layoutproof.verify.radix import Polynomial
from layoutproof.verify.verdict import Verdict

TEXTURE = "global.texture"
RGBA = 4
STRUCTURE = "structure"
_LOOKS = (AccessKind.READ, AccessKind.WRITE)
_Axis = frozenset[tuple[tuple[Expr, ...], int]]


@dataclass(frozen=True, slots=True, eq=False)
class Texture:
    """An image that kernels access: its memory, the view of it by physical axes, and what is done with it.

    `view.shape` counts elements of `view.dtype`, which may have lanes. `unit` is the number of scalars that the coarsest access
    touches at once, a texel at least.
    """

    data: Var
    name: str
    view: Buffer
    channels: int
    accesses: tuple[Access, ...]
    unit: int

    @property
    def sizes(self) -> tuple[tuple[str, Expr], ...]:
        """How many texels it has in each direction, by the direction's name: expressions over the symbols and over the integers."""
        *outer, last = (Polynomial.of(extent) for extent in self.view.shape)
        scalars = last.times(Polynomial({(): self.view.dtype.lanes}))
        across = scalars.divided(Polynomial({(): self.channels}))[0]
        named = zip(("width", "height", "layers")[: self.view.rank], (across, *reversed(outer)), strict=True)
        return tuple((name, texels.to_expr()) for name, texels in named)

    def of_kind(self, kind: AccessKind) -> tuple[Access, ...]:
        """The reads, or the writes, in the order of the text."""
        return tuple(access for access in self.accesses if access.kind is kind)


def is_texture(buffer: Buffer) -> bool:
    """Whether a buffer is declared as texture memory."""
    return buffer.scope.startswith(TEXTURE)


def channels_of(buffer: Buffer) -> int:
    """4 where the last axis holds a multiple of 4 scalars whatever the symbols are, which is a question of its text; else 1."""
    scalars = Polynomial.of(buffer.shape[-1]).times(Polynomial({(): buffer.dtype.lanes}))
    return RGBA if all(coefficient % RGBA == 0 for coefficient in scalars.terms.values()) else 1


def find_textures(facts: Facts) -> tuple[tuple[Texture, ...], tuple[Verdict, ...]]:
    """The textures that the program accesses, and one verdict each that an image can be what the text makes of them.

    Of those that cannot, the verdict alone is given.
    """
    found: list[Texture] = []
    verdicts: list[Verdict] = []
    accesses: dict[Var, list[Access]] = {}
    for access in facts.program.accesses:
        if access.kind in _LOOKS:
            accesses.setdefault(access.data, []).append(access)
    for data, touching in accesses.items():
        owner = facts.program.allocation(data)
        if not is_texture(owner if owner is not None else touching[0].buffer) and not any(is_texture(a.buffer) for a in touching):
            continue
        watch = facts.watch()
        name = owner.name if owner is not None else touching[0].buffer.name
        claim = Claim(ClaimKind.OTHER, f"texture {name} is an image of two axes, or an array of them of three, that every view sees alike")
        problem = next(_problems(name, owner, touching), None)
        if problem is not None:
            reason, shown = problem
            verdicts.append(refuted(claim, STRUCTURE, {"buffer": name, **shown}, reason, watch))
            continue
        verdicts.append(proved(claim, STRUCTURE, watch))
        view = touching[0].buffer
        channels = channels_of(view)
        unit = max(channels, *(access.buffer.dtype.lanes for access in touching))
        found.append(Texture(data, name, view, channels, tuple(touching), unit))
    return tuple(found), tuple(verdicts)


def _problems(name: str, owner: Buffer | None, accesses: list[Access]) -> Iterator[tuple[str, dict[str, object]]]:
    """Why memory is no image: in words, and as data."""
    first = accesses[0].buffer
    if first.rank not in (2, 3):
        axes, given = first.rank, first.rank if owner is None else owner.rank
        physical = counted(axes, "physical axis", "physical axes")
        made = f", made of {counted(given, 'axis', 'axes')}" if given != axes else ""
        hint = f"set_axis_separators({name!r}, ...) says after which axes a new one begins"
        yield f"{name} has {physical}{made}; an image has 2, an array of images 3: {hint}", {"axes": axes}
    for access in accesses:
        view = access.buffer
        if not is_texture(view):
            yield f"{access.text} ({access.place}) sees it in scope {view.scope}", {"view": view.name, "scope": view.scope}
        if view.strides or view.elem_offset != IntImm(0, view.elem_offset.dtype):
            yield f"the view {view.name} has strides or an offset, and images have none", {"view": view.name}
        if view.dtype.element != first.dtype.element:
            yield f"the view {view.name} holds {view.dtype}, not {first.dtype}: an image has one type", {"view": view.name}
        if view.rank != first.rank or axes_of(view) != axes_of(first):
            yield f"the views {first.name} and {view.name} have other extents: an image has one shape", {"view": view.name}
        if view.rank in (2, 3) and not _fills(view, accesses):
            yield f"elements of {view.dtype.lanes} lanes do not fill texels", {"view": view.name}
        if access.scene.allocations.get(access.data, 0) > 0:
            loops = [dim.var.name for dim in access.scene.dims[: access.scene.allocations[access.data]]]
            yield f"{name} is allocated inside the loops {', '.join(loops)}; an image is made before the kernel runs", {"loops": loops}


def axes_of(view: Buffer) -> tuple[_Axis, ...]:
    """How many scalars each axis counts, in a form that is equal where the polynomials are."""
    *outer, last = (Polynomial.of(extent) for extent in view.shape)
    scalars = last.times(Polynomial({(): view.dtype.lanes}))
    return tuple(frozenset(extent.terms.items()) for extent in (*outer, scalars))


def _fills(view: Buffer, accesses: list[Access]) -> bool:
    """Whether elements begin where units do."""
    unit = max(channels_of(view), *(access.buffer.dtype.lanes for access in accesses))
    return all(unit % access.buffer.dtype.lanes == 0 for access in accesses) and unit % channels_of(view) == 0

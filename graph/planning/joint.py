"""Variants of one call: the layouts of its arrays flow through it, one alone, and several together where none says anything of another's.

A convolution whose image comes in blocks may leave its result plain, and one whose result goes in blocks may take a plain image: that it
may also take and make blocks follows from neither alone. Of an element-wise operator the layout of one array says what the others' are;
another one would be a rewrite in the operator, with accesses that are spread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from layoutproof.graph.flow import Layouts, NoFlow
from layoutproof.graph.planning.layouts import Layout, map_of_layout, plain
from layoutproof.graph.planning.problem import Variant
from layoutproof.graph.signature import signature_of
from layoutproof.ir.primfunc import PrimFunc

Given = frozenset[tuple[str, Layout]]
"""Layouts of some arrays of a function, by name."""


@dataclass(slots=True)
class Flows:
    """What flowed through one call so far. `ask` gives the variant that follows from some layouts, or raises NoFlow.

    `has_room` says whether the call may get more variants; where it has none, layouts are no longer tried together, and `left_out` counts
    those that would have been.
    """

    function: PrimFunc
    ask: Callable[[Layouts], Variant]
    has_room: Callable[[], bool]
    left_out: int = 0
    arrived: dict[tuple[str, Layout], None] = field(default_factory=lambda: dict[tuple[str, Layout], None]())
    tried: set[Given] = field(default_factory=lambda: set[Given]())
    found: dict[Given, Variant] = field(default_factory=lambda: dict[Given, Variant]())

    def arrive(self, array: str, layout: Layout) -> Iterator[tuple[Given, Variant | NoFlow]]:
        """What follows now that an array may have a layout: for each set of layouts that is new, its variant, or why there is none.

        Why several layouts do not go together is not told.
        """
        item = (array, layout)
        if item in self.arrived:
            return
        self.arrived[item] = None
        work = [frozenset({item})]
        while work:
            given = work.pop(0)
            if given in self.tried:
                continue
            if len(given) > 1 and not self.has_room():
                self.left_out += 1
                continue
            self.tried.add(given)
            try:
                variant = self.ask({name: map_of_layout(each) for name, each in given})
            except NoFlow as stop:
                if len(given) == 1:
                    yield given, stop
                continue
            self.found[given] = variant
            yield given, variant
            if len(given) == 1:
                work += [known | given for known in self.found if self.go_together(known, item)]
            else:
                work += [given | {other} for other in self.arrived if self.go_together(given, other)]

    def go_together(self, given: Given, item: tuple[str, Layout]) -> bool:
        """Whether no layout among these says anything of another's array, a further one included."""
        return all(self.says_nothing(one, item[0]) and self.says_nothing(item, one[0]) for one in given)

    def says_nothing(self, item: tuple[str, Layout], array: str) -> bool:
        """Whether a layout flows by itself, and leaves an array as it is."""
        variant = self.found.get(frozenset({item}))
        return (
            variant is not None
            and item[0] != array
            and item[1] != self.plain(item[0])
            and self.layouts(variant)[array] == self.plain(array)
        )

    def layouts(self, variant: Variant) -> Mapping[str, Layout]:
        """The layouts of a variant, by arrays."""
        signature = signature_of(self.function)
        names = [buffer.name for buffer in (*signature.operands, *signature.results)]
        return dict(zip(names, (*variant.operands, *variant.results), strict=True))

    def plain(self, array: str) -> Layout:
        """The plain layout of an array."""
        return next(plain(buffer.rank) for buffer in self.function.buffers if buffer.name == array)

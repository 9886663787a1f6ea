"""Recursion with a stack of its own: what follows an allocation or a let stands inside it, so that a program is nested
as deeply as it is long, and Python's stack is not that deep.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from types import GeneratorType
from typing import Any, TypeVar, overload

T = TypeVar("T")
R = TypeVar("R")

Steps = Generator[T, R, R]
"""A recursive function that yields the arguments of its recursive calls, and is sent their results."""


@overload
def trampoline(step: Callable[[T], Steps[T, R]], first: T) -> R: ...
@overload
def trampoline(step: Callable[[T], R | Steps[T, R]], first: T) -> R: ...
def trampoline(step: Callable[[Any], Any], first: Any) -> Any:
    """`step(first)`, where a step is a result, or a generator that yields what it needs the result of. A step's
    exception is raised where it was yielded.
    """
    found = step(first)
    if not isinstance(found, GeneratorType):
        return found
    stack = [found]
    value: Any = None
    problem: BaseException | None = None
    while stack:
        try:
            asked = stack[-1].send(value) if problem is None else stack[-1].throw(problem)
        except StopIteration as end:
            stack.pop()
            value, problem = end.value, None
            continue
        except BaseException as raised:
            stack.pop()
            if not stack:
                raise
            problem = raised
            continue
        value, problem = None, None
        try:
            found = step(asked)
        except BaseException as raised:  # noqa: BLE001  # it is raised again, where the generator asked
            problem = raised
            continue
        if isinstance(found, GeneratorType):
            stack.append(found)
        else:
            value = found
    return value

"""The one exception of the kernel: without it, every public function of the kernel has accepted what it was given."""


class Rejected(Exception):
    """The kernel does not accept the evidence; the text is one sentence that says why."""


# A fault of the kernel accepts nothing either.
FAILURES = (
    Rejected, ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RecursionError, TypeError,
    ValueError,
)  # fmt: skip


def reason_of(problem: BaseException) -> str:
    """Why something is not accepted."""
    return str(problem) if isinstance(problem, Rejected) else f"the kernel failed, with {problem!r}"

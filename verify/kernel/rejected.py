"""The one exception of the kernel: without it, every public function of the kernel has accepted what it was given."""


class Rejected(Exception):
    """The kernel does not accept the evidence; the text is one sentence that says why."""

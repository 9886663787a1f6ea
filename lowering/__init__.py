"""Passes that propose rewrites, the schedule that keeps the proved ones, and the way from a program to a running
kernel.
"""

if __name__ != "layoutproof.lowering":
    raise ImportError(
        f"this folder is the package layoutproof.lowering, imported here as {__name__!r}; "
        "write 'import layoutproof.lowering' (imported under two names, every class in it would exist twice)"
    )

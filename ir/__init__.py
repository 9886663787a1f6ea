"""What programs and layouts are and mean: nodes, index maps, semantics, reading and printing. No solver, no files, no
processes.
"""

if __name__ != "layoutproof.ir":
    raise ImportError(
        f"this folder is the package layoutproof.ir, imported here as {__name__!r}; write 'import layoutproof.ir' "
        "(imported under two names, every class in it would exist twice)"
    )

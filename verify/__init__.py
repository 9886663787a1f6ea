"""What is true of programs and layouts: verdicts, the engines that decide them, and the conditions of each claim."""

if __name__ != "layoutproof.verify":
    raise ImportError(
        f"this folder is the package layoutproof.verify, imported here as {__name__!r}; write 'import "
        "layoutproof.verify' (imported under two names, every class in it would exist twice)"
    )

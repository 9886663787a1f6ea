"""The command line: one file per command, and one renderer per output format."""

if __name__ != "layoutproof.cli":
    raise ImportError(
        f"this folder is the package layoutproof.cli, imported here as {__name__!r}; write 'import layoutproof.cli' "
        "(imported under two names, every class in it would exist twice)"
    )

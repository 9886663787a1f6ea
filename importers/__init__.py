"""Other systems' models as graphs, and their programs as programs."""

if __name__ != "layoutproof.importers":
    raise ImportError(
        f"this folder is the package layoutproof.importers, imported here as {__name__!r}; "
        "write 'import layoutproof.importers' (imported under two names, every class in it would exist twice)"
    )

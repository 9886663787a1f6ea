"""Studies of padding: grids of operators, layouts, policies and values, each cell a proof or a counterexample."""

if __name__ != "layoutproof.studies":
    raise ImportError(
        f"this folder is the package layoutproof.studies, imported here as {__name__!r}; "
        "write 'import layoutproof.studies' (imported under two names, every class in it would exist twice)"
    )

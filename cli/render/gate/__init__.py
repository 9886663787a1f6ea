"""Reports of a gate's run: one file per format."""

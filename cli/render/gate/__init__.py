"""Reports of a gate's run to output: one file per format."""

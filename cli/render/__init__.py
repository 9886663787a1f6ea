"""Reports to output: one file per format."""

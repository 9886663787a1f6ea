"""The operator library: one plain function over logical arrays for each operator, for given extents and attributes."""

"""The operators as people write them: one plain function over logical arrays for each, for given extents and
attributes.
"""

"""Programs as text: reading both dialects of TVM's script syntax (`reader`), and printing (`printer`).

Nothing is imported here: readers of one expression, such as layout records, do not load the reader of programs.
"""

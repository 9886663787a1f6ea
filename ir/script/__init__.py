"""Programs as text: reading both dialects of TVM's script syntax (`reader`), and printing (`printer`).

No names stand here: whoever reads one expression, as layout records and contracts do, loads no reader of programs.
"""

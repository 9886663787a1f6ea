"""Transforms that leave less to do, or say the same in fewer words: no-ops out, conditions merged and hoisted, known
values used.
"""

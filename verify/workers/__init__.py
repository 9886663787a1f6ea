"""Work in processes of their own: what hangs, crashes or grows there costs one item its result, and nothing else
anything.
"""

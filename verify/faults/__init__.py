"""What is proved of one program: that it does not fault (bounds, reads, races, overflow, traps), and that it runs at
all.
"""

"""Values: whether two expressions are equal, bit for bit or under float licences, and what is always true of a buffer's
contents.
"""

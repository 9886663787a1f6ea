"""Whether a rewritten graph is equal to the graph: the proof, the search for a witness of two given graphs, and
certificates.
"""

"""Many items judged at a time: worker processes on this machine, or on a Dask cluster, with limits on time and
memory.
"""

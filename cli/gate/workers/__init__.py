"""Many items judged in parallel: worker processes on this machine or a Dask cluster, with limits on time and memory."""

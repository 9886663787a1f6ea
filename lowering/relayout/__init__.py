"""Pure layout changes as kernels: the plain copy program of an index map, and the best proved schedule of it for a CPU."""

"""OpenCL C from lowered, flattened functions: kernels, images, and how they are launched."""

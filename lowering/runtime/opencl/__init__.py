"""Generated OpenCL to something that can be called on numpy arrays: devices, programs, and memory there and back."""

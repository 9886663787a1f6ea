"""The request, the work and the result of `plan`."""

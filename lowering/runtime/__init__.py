"""Generated source to something that can be called on numpy arrays."""

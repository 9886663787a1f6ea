"""Uses of padding: guards around it, and values for it."""

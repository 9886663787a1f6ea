"""What padding is for: guards around it, and values for it."""

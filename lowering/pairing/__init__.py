"""The search for a witness: which instance of a given program computes which of another one, found from the two texts alone."""

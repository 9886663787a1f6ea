"""How the layout of one array of a function determines the others'."""

"""Plans: a layout for every array of every call, so that the layout rewrites that are left cost least."""

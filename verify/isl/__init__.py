"""Integer sets: the only folder that imports islpy."""

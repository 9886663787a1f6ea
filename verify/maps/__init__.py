"""Index maps: injective, surjective, physical box, padding, inverse, equality."""

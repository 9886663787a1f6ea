"""What is true of one index map: injective, surjective, its box, its padding, its inverse."""

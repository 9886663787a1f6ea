"""What a graph is: values and steps, well-formedness, layout maps, the witness of a rewrite, and how a graph runs."""

"""The compute front end: tensors by formulas, made into a function and a schedule. Nothing is proved here."""

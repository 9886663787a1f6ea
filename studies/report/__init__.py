"""What the data of a study comes out as: files, tables, figures and text."""

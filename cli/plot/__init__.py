"""Pictures of layouts and of graphs: what they show and where, and its drawing."""

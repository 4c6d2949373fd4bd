"""Studies: many runs from one file, made by workers that may die at any moment, and one table of them."""

"""Published datasets, read from their original files or from a package that includes them."""

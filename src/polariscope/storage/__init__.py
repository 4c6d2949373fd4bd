"""Files of a run and of a sizing search: the only room that names them."""

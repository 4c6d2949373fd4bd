"""Functions shared by the estimators of dimension."""

"""Studies: many runs described by one file, trained by workers that can be killed at any time, and their table."""

"""Code shared by figures: grouping and averaging of runs, and drawing."""

"""What figures share: how runs are grouped and summarised, and how they are drawn."""

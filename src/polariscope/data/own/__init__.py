"""Data of the user: arrays and folders of images."""

"""The routes pane: who may ask whom, as a matrix and as a list, and how to change it."""

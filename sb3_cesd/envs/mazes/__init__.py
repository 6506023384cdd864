"""Mazes for a point, as Gymnasium environments and as a vectorized environment."""

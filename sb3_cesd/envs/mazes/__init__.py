"""Point mazes, as Gymnasium environments and as a vectorized environment."""

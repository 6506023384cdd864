"""Ids of the mazes, and the length of their episodes."""

#: Length of an episode, in steps
HORIZON = 50

#: Id -> name of the layout
MAZES: dict[str, str] = {
    "MazeSquareA-v0": "square_a",
    "MazeSquareB-v0": "square_b",
    "MazeSquareC-v0": "square_c",
    "MazeSquareD-v0": "square_d",
    "MazeTree-v0": "tree",
    "MazeBottleneck-v0": "bottleneck",
    "MazeCorridor-v0": "corridor",
}

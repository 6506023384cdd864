import numpy as np
import torch as th


def nearest_neighbors(
    queries: np.ndarray, points: np.ndarray, k: int, chunk_size: int = 1024
) -> tuple[np.ndarray, np.ndarray]:
    """
    Find the nearest points to queries.

    :param queries: shape ``(n_queries, d)``
    :param points: shape ``(n_points, d)``
    :param k: number of neighbours
    :param chunk_size: number of queries that are compared with all points at a time, which limits memory
    :return: Euclidean distances to the k nearest points, in ascending order, and their indices, both of shape
        ``(n_queries, k)``
    :raises ValueError: if there are fewer than k points
    """
    if len(points) < k:
        raise ValueError(f"k={k} is more than the number of states, {len(points)}: record more states, or pass a smaller k.")
    tensor = th.as_tensor(points, dtype=th.float32, device="cpu")
    nearest = [
        # The inner-product expansion is inaccurate near distance zero
        th.cdist(chunk, tensor, compute_mode="donot_use_mm_for_euclid_dist").topk(k, largest=False)
        for chunk in th.as_tensor(queries, dtype=th.float32, device="cpu").split(chunk_size)
    ]
    return th.cat([found.values for found in nearest]).numpy(), th.cat([found.indices for found in nearest]).numpy()

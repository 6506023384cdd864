import torch as th

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.choices import Count
from sb3_cesd.common.progress import has_come
from sb3_cesd.common.tensors import one_hot


class ClusterConstraint:
    """
    The constraint reward ``1 / (count_i + lambda)`` of cluster i, high when skills stay in their own clusters (eq. 9 of the
    CeSD paper).

    :param lambda_: added to the count
    :param start: when the constraint starts; until then skills explore without it. Up to 1 a fraction of the training budget,
        above 1 a number of environment steps. Once started, it stays on if training is continued
    :param count: ``"paper"`` counts the states that skill i collected outside cluster i, ``|S_pe_i - S_clu_i|``;
        ``"released"`` the members of cluster i that another skill collected, ``|S_clu_i - S_pe_i|`` (the released code)
    :param freeze_clusters: whether encoder and prototypes stop learning when the constraint starts. Clusters then stay those
        of the explored states; otherwise they follow what skills do in them
    :raises ValueError: if clusters are to be frozen before they have learned
    """

    def __init__(
        self, lambda_: float = 1.0, count: Count = "paper", start: float = 0.8, freeze_clusters: bool = False
    ) -> None:
        check_arguments("ClusterConstraint", locals())
        if freeze_clusters and start == 0:
            raise ValueError(
                "freeze_clusters=True with start=0 leaves no time to learn clusters: set start above 0, or freeze_clusters to "
                "False."
            )
        self.lambda_ = lambda_
        self.count = count
        self.start = start
        self.freeze_clusters = freeze_clusters

    def is_on(self, progress_remaining: float, num_timesteps: int) -> bool:
        """
        Return whether the constraint has started.

        :param progress_remaining: from 1 (start of training) to 0 (end)
        :param num_timesteps: environment steps of the training so far
        :return: whether skills are already constrained to their clusters
        """
        return has_come(self.start, progress_remaining, num_timesteps)

    def __call__(self, clusters: th.Tensor, skills: th.Tensor, n_skills: int) -> th.Tensor:
        """
        Compute the constraint reward of each cluster.

        :param clusters: cluster of each state, shape ``(batch_size,)``
        :param skills: skill that collected each state, shape ``(batch_size,)``
        :param n_skills: number of skills (and clusters)
        :return: constraint reward of each cluster, float32, shape ``(n_skills,)``
        """
        counted = clusters if self.count == "released" else skills
        foreign = (clusters != skills).float()[:, None]  # (batch_size, 1)
        counts = (one_hot(counted, n_skills, th.float32) * foreign).sum(dim=0)
        return 1.0 / (counts + self.lambda_)

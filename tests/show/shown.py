"""Models to show, made once for all tests of a process."""

import functools
import sys

from small import make_small

from sb3_cesd import METHODS
from sb3_cesd.show import __main__ as command

#: Metrics of any environment, of places in addition, and of models with clusters
EVERYWHERE = {"knn_accuracy", "particle_entropy"}
PLACES = {"policy_coverage", "mutual_information"}
CLUSTERS = {"on_cluster_share", "cluster_size_entropy"}
#: Arguments with which it takes little time, without metrics, and those of the command
QUICK = {"n_steps": 6, "n_rollouts": 2, "n_untrained": 0, "n_frames": 0, "video": False}
NOT_MEASURED = {**QUICK, "n_rollouts": 0}
COMMAND = ["--steps", "6", "--rollouts", "0", "--untrained", "0", "--frames", "0", "--video", "none"]


@functools.cache
def model(env_id="Pendulum-v1", method="cesd"):
    """A small model that has not learned."""
    return make_small(METHODS[method], env_id)


def show(monkeypatch, *arguments):
    """Run the command in this process."""
    monkeypatch.setattr(sys, "argv", ["show", *map(str, arguments)])
    command.main()

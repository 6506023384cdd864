"""Models to show, made once for all tests of a process."""

import functools
import sys
import tempfile
from pathlib import Path

from small import make_small

from sb3_cesd import METHODS
from sb3_cesd.show import __main__ as command

FOLDER = tempfile.TemporaryDirectory(prefix="sb3_cesd_show_")
#: Metrics of any environment, of places in addition, and of models with clusters
EVERYWHERE = {"knn_accuracy", "particle_entropy"}
PLACES = {"policy_coverage", "mutual_information", "knn_accuracy_places", "particle_entropy_places"}
CLUSTERS = {"on_cluster_share", "cluster_size_entropy"}
#: Arguments of the command with which it takes little time
QUICK = ["--steps", "6", "--rollouts", "2", "--untrained", "0", "--frames", "0", "--video", "none"]
LABELS = ["0", "1", "2", "3"]


@functools.cache
def model(env_id, method="cesd"):
    """A small model that has not learned."""
    return make_small(METHODS[method], env_id)


@functools.cache
def saved(env_id, method="cesd"):
    """File of a small model, in the folders of RL Zoo."""
    path = Path(FOLDER.name) / method / f"{env_id}_1" / f"{env_id}.zip"
    model(env_id, method).save(path)
    return path


def show(monkeypatch, *arguments):
    """Run the command in this process."""
    monkeypatch.setattr(sys, "argv", ["show", *map(str, arguments)])
    command.main()

"""A Ray cluster of two nodes on this machine, one of which is killed."""

import os
import sys
import threading
import time
from pathlib import Path

import pytest
from runs import run_missing

FOLDER = Path(__file__).parents[2] / "benchmarks"


def test_without_ray_the_remedy_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SystemExit, match=r"sb3_cesd\[cluster\]"):
        run_missing([{"seed": 0}], pytest.fail, tmp_path / "runs.csv", 1, address="local")


@pytest.mark.slow
def test_a_node_is_killed_and_nothing_is_lost(tmp_path, monkeypatch):
    import ray
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FOLDER), os.environ.get("PYTHONPATH", "")]))
    # A node that is gone is noticed after seconds instead of a minute
    noticed_soon = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000, "health_check_failure_threshold": 5}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "_system_config": noticed_soon})

    def do(run, folder=str(tmp_path), head=cluster.head_node.node_id):
        import time
        from pathlib import Path

        import ray

        node = ray.get_runtime_context().get_node_id()
        (Path(folder) / f"started_{run['seed']}_{node}_{time.time_ns()}").touch()
        # What runs on the second node does not end before the node does
        time.sleep(1 if node == head else 120)
        return {"score": 2.0 * run["seed"], "node": node}

    try:
        second = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()

        def kill_the_second_when_it_is_at_work():
            while len({file.name.split("_")[2] for file in tmp_path.glob("started_*")}) < 2:
                time.sleep(0.2)
            cluster.remove_node(second, allow_graceful=False)

        killer = threading.Thread(target=kill_the_second_when_it_is_at_work, daemon=True)
        killer.start()
        rows = run_missing([{"seed": n} for n in range(6)], do, tmp_path / "runs.csv", n_jobs=2, address=cluster.address)
        killer.join(timeout=20)
        assert not killer.is_alive(), "the second node never worked"
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert sorted(rows.seed) == list(range(6)) and (rows.score == 2.0 * rows.seed).all()
    assert len(list(tmp_path.glob("started_*"))) > 6, "what the second node did is done again"

"""A Ray cluster of two nodes on this machine, one of which is killed."""

import os
import sys
import threading
import time
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def scripts_on_the_path_of_workers(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FOLDER), os.environ.get("PYTHONPATH", "")]))


def test_without_ray_the_remedy_is_named(monkeypatch):
    from cluster import use_backend

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SystemExit, match=r"pip install 'sb3_cesd\[cluster\]', or pass --backend loky"), use_backend("ray"):
        pass


@pytest.mark.slow
def test_a_node_is_killed_and_nothing_is_lost(tmp_path):
    import ray
    from cluster import use_backend
    from ray.cluster_utils import Cluster
    from runs import run_missing

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
            # Both are at work
            while len({file.name.split("_")[2] for file in tmp_path.glob("started_*")}) < 2:
                time.sleep(0.2)
            cluster.remove_node(second, allow_graceful=False)

        killer = threading.Thread(target=kill_the_second_when_it_is_at_work, daemon=True)
        killer.start()
        with use_backend("ray", cluster.address):
            rows = run_missing([{"seed": seed} for seed in range(6)], do, tmp_path / "runs.csv", n_jobs=2)
        killer.join(timeout=20)
        assert not killer.is_alive(), "the second node never worked"
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert sorted(rows.seed) == list(range(6)) and (rows.score == 2.0 * rows.seed).all()
    assert second.node_id not in set(rows.node[rows.seed == rows.seed.iloc[-1]])
    assert len(list(tmp_path.glob("started_*"))) > 6, "what the second node did is done again"

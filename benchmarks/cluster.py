"""Run jobs in processes of this machine, or on a Ray cluster."""

from collections.abc import Iterator
from contextlib import contextmanager

import joblib

#: Workers are spread over all machines. If a machine is lost, its workers restart on another one with their runs; to leave
#: room for that, a worker only reserves half a core. A run that kills its worker is not repeated forever.
RAY_WORKERS = {"num_cpus": 0.5, "scheduling_strategy": "SPREAD", "max_restarts": -1, "max_task_retries": 10}


@contextmanager
def use_backend(backend: str, address: str | None = None) -> Iterator[None]:
    """
    Select the backend of joblib.

    :param backend: ``"loky"`` (processes) or ``"ray"``
    :param address: address of a running Ray cluster, e.g. ``"auto"``; ``None`` starts one on this machine
    :raises SystemExit: if Ray is not installed
    """
    if backend == "ray":
        try:
            import ray
            from ray.util.joblib import register_ray
        except ImportError:
            raise SystemExit("Ray is not installed: pip install 'sb3_cesd[cluster]', or pass --backend loky.") from None
        ray.init(address=address, log_to_driver=False)
        register_ray()
        config = joblib.parallel_config(backend=backend, ray_remote_args=RAY_WORKERS)
    else:
        config = joblib.parallel_config(backend=backend)
    with config:
        yield

"""Where runs are done: in processes of this machine, or on a Ray cluster."""

from collections.abc import Iterator
from contextlib import contextmanager

import joblib

#: Workers are spread over all machines. One whose machine is lost starts again on another, with the run it had; for that it
#: must find room there, so it takes half of a core on paper. A run that kills its worker is not repeated for ever.
RAY_WORKERS = {"num_cpus": 0.5, "scheduling_strategy": "SPREAD", "max_restarts": -1, "max_task_retries": 10}


@contextmanager
def use_backend(backend: str, address: str | None = None) -> Iterator[None]:
    """
    Let joblib do its work there.

    :param backend: ``"loky"`` (processes) or ``"ray"``
    :param address: address of a running Ray cluster, e.g. ``"auto"``; ``None`` starts one on this machine
    :raises SystemExit: if Ray is not installed
    """
    if backend == "ray":
        try:
            import ray
            from ray.util.joblib import register_ray
        except ImportError:
            raise SystemExit("There is no Ray: pip install 'sb3_cesd[cluster]', or pass --backend loky.") from None
        ray.init(address=address, log_to_driver=False)
        register_ray()
        config = joblib.parallel_config(backend=backend, ray_remote_args=RAY_WORKERS)
    else:
        config = joblib.parallel_config(backend=backend)
    with config:
        yield

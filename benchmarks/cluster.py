"""Where runs are done: in processes of this machine, or on a Ray cluster."""

from collections.abc import Iterator
from contextlib import contextmanager

import joblib


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
    with joblib.parallel_config(backend=backend):
        yield

"""Time of a whole update (sampling, encoder, clusters, rewards, critic, actor, prototypes, Polyak), and of its critic."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch as th
from dense_reference import DenseCeSD, ReleasedCeSD
from entries import read_entry
from gymnasium import spaces
from stable_baselines3.common.logger import configure
from timing import Figure, figures_of_times, interleaved_medians

from sb3_cesd import CeSD
from sb3_cesd.cesd.reward import CeSDReward
from sb3_cesd.common.utils import frozen, polyak_update

# Observation and action size of the robots
ROBOTS = {"walker": (24, 6), "quadruped": (78, 12)}
SIZES = {
    "published": {"n_skills": 16, "batch_size": 1024, "width": 1024},
    "small": {"n_skills": 8, "batch_size": 256, "width": 256},
}


class Form(NamedTuple):
    """
    A way to compute an update.

    :param model_class: the algorithm
    :param kwargs: arguments of the constructor
    :param released: whether the method is that of the released code, the only one that has a dense form
    :param cuda: whether it needs a GPU
    """

    model_class: type[CeSD]
    kwargs: dict[str, Any] = {}  # noqa: RUF012
    released: bool = True
    cuda: bool = False


REFERENCE = "dense"
FORMS: dict[str, Form] = {
    "routed": Form(CeSD),
    "dense": Form(DenseCeSD),
    "released": Form(ReleasedCeSD),
    "routed, matmul_precision=medium": Form(CeSD, {"matmul_precision": "medium"}),
    "routed, bf16": Form(CeSD, {"bf16": True}),
    "routed, matmul_precision=high": Form(CeSD, {"matmul_precision": "high"}, cuda=True),
    "routed, cuda_graph": Form(CeSD, {"cuda_graph": True}, cuda=True),
    "routed, cuda_graph, matmul_precision=high": Form(CeSD, {"cuda_graph": True, "matmul_precision": "high"}, cuda=True),
    "routed, cuda_graph, bf16": Form(CeSD, {"cuda_graph": True, "bf16": True}, cuda=True),
    "default, exploring": Form(CeSD, {"constraint_kwargs": {"start": 1.0}}, released=False),
    "default, constrained": Form(CeSD, {"constraint_kwargs": {"start": 0.0}}, released=False),
    "default, constrained, cuda_graph, matmul_precision=high": Form(
        CeSD, {"constraint_kwargs": {"start": 0.0}, "cuda_graph": True, "matmul_precision": "high"}, released=False, cuda=True
    ),
}


class FixedSpaces(gym.Env):
    """
    An environment that is never stepped: it only has the sizes of a robot.

    :param obs_dim: size of the observation
    :param action_dim: size of the action
    """

    def __init__(self, obs_dim: int, action_dim: int) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (obs_dim,), np.float32)
        self.action_space = spaces.Box(-1, 1, (action_dim,), np.float32)


def make_model(form: Form, robot: str, device: str, n_skills: int, batch_size: int, width: int) -> CeSD:
    """
    :param form: how an update is computed
    :param robot: one of ``ROBOTS``
    :param device: device of the model
    :param n_skills: number of skills
    :param batch_size: transitions of an update
    :param width: size of the hidden layers
    :return: a model with a filled replay buffer
    """
    groups = ("prototype_kwargs", "entropy_kwargs", "constraint_kwargs", "relabel_kwargs")
    released = read_entry("cesd_released", "default")
    model = form.model_class(
        "MlpPolicy",
        FixedSpaces(*ROBOTS[robot]),
        n_skills=n_skills,
        batch_size=batch_size,
        buffer_size=20_000,
        policy_kwargs={
            "net_arch": {"pi": [width, width], "qf": [width // 2, width]},
            "optimizer_kwargs": {} if form.model_class is ReleasedCeSD else None,
            "shared_value": not form.released,
        },
        encoder_kwargs={"net_arch": [width, width]},
        seed=0,
        device=device,
        **({name: released[name] for name in groups} if form.released else {}),
        **form.kwargs,
    )
    model.set_logger(configure(format_strings=[]))
    rng = np.random.default_rng(0)
    buffer = model.replay_buffer
    assert buffer is not None
    steps = rng.normal(size=buffer.observations.shape)
    # A random walk that stays near the origin: the next observation is close to the one before
    buffer.observations[0] = steps[0]
    for row in range(1, len(steps)):
        buffer.observations[row] = 0.995 * buffer.observations[row - 1] + 0.1 * steps[row]
    buffer.actions[:] = rng.uniform(-1, 1, size=buffer.actions.shape)
    buffer.skills[:] = rng.integers(n_skills, size=buffer.skills.shape)
    buffer.full = True
    return model


def wait_for(device: th.device) -> None:
    """
    :param device: whose work is to be done
    """
    if device.type == "cuda":
        th.cuda.synchronize()


def update_of(model: CeSD) -> Callable[[], None]:
    """
    :param model: a model with a filled replay buffer
    :return: a function that does one update and waits for it
    """

    def update() -> None:
        model.train(gradient_steps=1, batch_size=model.batch_size)
        wait_for(model.device)

    return update


def parts_of(model: CeSD) -> dict[str, Callable[[], None]]:
    """
    :param model: a model with a filled replay buffer
    :return: what an update consists of, each part on the same batch; it waits for what it computes
    """
    buffer, intrinsic = model.replay_buffer, model.intrinsic
    assert buffer is not None and isinstance(intrinsic, CeSDReward)
    buffer.relabel_fn = None
    plain = buffer.sample(model.batch_size)
    samples = intrinsic.train().relabel(plain)
    parameters = model.critic.own_parameters(), model.critic_target.own_parameters()

    def sampling() -> None:
        buffer.sample(model.batch_size)

    def encoder() -> None:
        intrinsic._train_encoder(plain)

    def rewards() -> None:
        intrinsic.eval()
        intrinsic.relabel(plain)
        intrinsic.train()

    def critic() -> None:
        model.critic.optimizer.zero_grad()  # type: ignore[union-attr]
        model.critic_loss(samples).backward()

    def actor() -> None:
        model.actor.optimizer.zero_grad()  # type: ignore[union-attr]
        with frozen(parameters[0]):
            loss = model.actor_loss(samples)
        loss.backward()

    def steps() -> None:
        model.critic.optimizer.step()  # type: ignore[union-attr]
        model.actor.optimizer.step()  # type: ignore[union-attr]
        polyak_update(*parameters, model.tau)

    def waiting(part: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            part()
            wait_for(model.device)

        return run

    parts = {
        "sampling": sampling,
        "encoder": encoder,
        "clusters and rewards": rewards,
        "critic": critic,
        "actor": actor,
        "optimizers of both, Polyak": steps,
    }
    return {name: waiting(part) for name, part in parts.items()}


def measure_forms(robot: str, sizes: Iterable[str], threads: Iterable[int], repeats: int, device: str) -> list[Figure]:
    """
    :param robot: one of ``ROBOTS``
    :param sizes: some of ``SIZES``
    :param threads: numbers of threads
    :param repeats: counted updates of each form
    :param device: device of the models
    :return: time of an update in each form
    """
    forms = {name: form for name, form in FORMS.items() if not form.cuda or device.startswith("cuda")}
    figures = []
    for size in sizes:
        models = {name: make_model(form, robot, device, **SIZES[size]) for name, form in forms.items()}
        for n_threads in threads:
            th.set_num_threads(n_threads)
            seconds = interleaved_medians({name: update_of(model) for name, model in models.items()}, repeats)
            figures += figures_of_times("update", f"{robot}, {size}", n_threads, seconds, REFERENCE)
    return figures


def measure_breakdown(robot: str, sizes: Iterable[str], repeats: int, device: str) -> list[Figure]:
    """
    :param robot: one of ``ROBOTS``
    :param sizes: some of ``SIZES``
    :param repeats: counted turns of each part
    :param device: device of the models
    :return: where the time of an update goes, with one thread
    """
    th.set_num_threads(1)
    figures = []
    for size in sizes:
        for name in ("routed", "dense", "default, constrained"):
            parts = parts_of(make_model(FORMS[name], robot, device, **SIZES[size]))
            seconds = interleaved_medians(parts, repeats)
            seconds["all of these"] = sum(seconds.values())
            of_this = figures_of_times("breakdown", f"{robot}, {size}, {name}", 1, seconds, "all of these")
            figures += [{**figure, "ratio": 1 / figure["ratio"]} for figure in of_this]  # shares
    return figures


def measure_scaling(
    robot: str, n_skills: Iterable[int], batch_sizes: Iterable[int], width: int, repeats: int, device: str
) -> list[Figure]:
    """
    The default method with its constraint, against the number of skills (at batches of 1024), and the size of the batch (with
    16 skills).

    :param robot: one of ``ROBOTS``
    :param n_skills: numbers of skills
    :param batch_sizes: transitions of an update
    :param width: size of the hidden layers
    :param repeats: counted updates of each
    :param device: device of the models
    :return: time of the critic's loss and gradients, and of the whole update
    """
    th.set_num_threads(1)
    figures = []
    form = FORMS["default, constrained"]
    for setting, cases in {
        f"{robot}, width {width}, batch 1024": {f"{n} skills": (n, 1024) for n in n_skills},
        f"{robot}, width {width}, 16 skills": {f"batch {size}": (16, size) for size in batch_sizes},
    }.items():
        models = {
            variant: make_model(form, robot, device, n_skills=skills, batch_size=size, width=width)
            for variant, (skills, size) in cases.items()
        }
        whole = {variant: update_of(model) for variant, model in models.items()}
        critics = {variant: parts_of(model)["critic"] for variant, model in models.items()}
        for what, functions in {"whole update": whole, "critic": critics}.items():
            seconds = interleaved_medians(functions, repeats)
            figures += figures_of_times("scaling", f"{setting}: {what}", 1, seconds, next(iter(cases)))
    return figures

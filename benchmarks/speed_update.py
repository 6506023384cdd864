"""Time of a whole update (sampling, encoder, clusters, rewards, critic, actor, prototypes, Polyak), and of its critic."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch as th
from dense_reference import DenseCeSD, ReleasedCeSD
from entries import read_entry
from random_walk import RandomWalk
from timing import PHASES, SIZES, Figure, figures_of_times, interleaved_medians

from sb3_cesd import CeSD
from sb3_cesd.cesd.cesd import CeSDReward
from sb3_cesd.common.merging import merge
from sb3_cesd.common.tensors import frozen, polyak_update

#: Transitions in the replay buffer
N_TRANSITIONS = 5000


class Form(NamedTuple):
    """
    A way to compute an update.

    :param model_class: the algorithm
    :param kwargs: arguments of the constructor
    :param released: whether the setting is that of the released code, the only one with a dense form
    :param cuda: whether it needs a GPU
    """

    model_class: type[CeSD]
    kwargs: dict[str, Any] = {}  # noqa: RUF012
    released: bool = True
    cuda: bool = False


REFERENCE = "dense"
CONSTRAINED = {"intrinsic_kwargs": {"constraint_kwargs": {"start": PHASES["constrained"]}}}
FORMS: dict[str, Form] = {
    "routed": Form(CeSD),
    "dense": Form(DenseCeSD),
    "released": Form(ReleasedCeSD),
    "routed, cuda_graph": Form(CeSD, {"cuda_graph": True}, cuda=True),
    "default, exploring": Form(
        CeSD, {"intrinsic_kwargs": {"constraint_kwargs": {"start": PHASES["exploring"]}}}, released=False
    ),
    "default, constrained": Form(CeSD, CONSTRAINED, released=False),
    "default, constrained, cuda_graph": Form(CeSD, {**CONSTRAINED, "cuda_graph": True}, released=False, cuda=True),
}


def make_model(form: Form, robot: str, device: str, n_skills: int, batch_size: int, width: int) -> CeSD:
    """
    Create a model that is about to learn.

    :param form: how an update is computed
    :param robot: one of ``ROBOTS``
    :param device: device of the model
    :param n_skills: number of skills
    :param batch_size: batch size
    :param width: size of the hidden layers
    :return: the model, with transitions in its replay buffer
    """
    released = read_entry("cesd_released", "Quadruped-v0")["intrinsic_kwargs"] if form.released else {}
    arguments = {
        "policy_kwargs": {
            "net_arch": {"pi": [width, width], "qf": [width // 2, width]},
            "optimizer_kwargs": {} if form.model_class is ReleasedCeSD else None,
            "shared_value": not form.released,
        },
        "intrinsic_kwargs": merge(released, {"encoder_kwargs": {"net_arch": [width, width]}}),
    }
    model = form.model_class(
        "MlpPolicy",
        RandomWalk(robot),
        n_skills=n_skills,
        skill_duration=1,
        learning_starts=N_TRANSITIONS,
        buffer_size=N_TRANSITIONS,
        batch_size=batch_size,
        seed=0,
        device=device,
        **merge(arguments, form.kwargs),
    )
    return model.learn(N_TRANSITIONS, log_interval=10**9)


def wait_for(device: th.device) -> None:
    """
    Wait until a device has finished its work.

    :param device: the device
    """
    if device.type == "cuda":
        th.cuda.synchronize(device)


def update_of(model: CeSD) -> Callable[[], None]:
    """
    Make a function that does one update and waits for it.

    :param model: a model with a filled replay buffer
    :return: the function
    """

    def update() -> None:
        model.train(gradient_steps=1, batch_size=model.batch_size)
        wait_for(model.device)

    return update


def parts_of(model: CeSD) -> dict[str, Callable[[], None]]:
    """
    Split an update into the parts of ``CeSD._update``.

    :param model: a model with a filled replay buffer
    :return: a function per part, for the same batch, which waits until its work is finished
    """
    update_of(model)()  # the first one updates the phase of training
    buffer, intrinsic = model.replay_buffer, model.intrinsic
    assert buffer is not None and isinstance(intrinsic, CeSDReward)
    plain = buffer.sample(model.batch_size)
    relabelled = intrinsic.train().relabel(plain)

    def sampling() -> None:
        buffer.sample(model.batch_size)

    def encoder() -> None:
        intrinsic.update(plain)

    def rewards() -> None:
        intrinsic.relabel(plain)

    def critic() -> None:
        model.critic.optimizer.zero_grad()  # type: ignore[union-attr]
        model.critic_loss(relabelled).backward()

    def actor() -> None:
        model.actor.optimizer.zero_grad()  # type: ignore[union-attr]
        with frozen(model.critic.own_parameters()):
            loss = model.actor_loss(relabelled)
        loss.backward()

    def steps() -> None:
        model.critic.optimizer.step()  # type: ignore[union-attr]
        model.actor.optimizer.step()  # type: ignore[union-attr]
        polyak_update(model.critic.own_parameters(), model.critic_target.own_parameters(), model.tau)

    def prototypes() -> None:
        intrinsic.update_clusters(relabelled)

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
        "prototypes": prototypes,
    }
    return {name: waiting(part) for name, part in parts.items()}


def measure_forms(robot: str, sizes: Iterable[str], threads: Iterable[int], repeats: int, device: str) -> list[Figure]:
    """
    Time a whole update in each form.

    :param robot: one of ``ROBOTS``
    :param sizes: some of ``SIZES``
    :param threads: numbers of threads
    :param repeats: timed updates of each form
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
    Time the parts of an update.

    :param robot: one of ``ROBOTS``
    :param sizes: some of ``SIZES``
    :param repeats: timed turns of each part
    :param device: device of the models
    :return: times of the parts of an update, with one thread
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
    Time the default method with its constraint for different numbers of skills (with batches of 1024) and batch sizes (with 16
    skills).

    :param robot: one of ``ROBOTS``
    :param n_skills: numbers of skills
    :param batch_sizes: batch sizes
    :param width: size of the hidden layers
    :param repeats: timed updates of each
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

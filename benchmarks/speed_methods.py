"""Time of an update of each method, compared with that of its parts: TD3's backbone, and the method's own arithmetic."""

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import torch as th
from entries import of_constructor
from random_walk import RandomWalk
from timing import PHASES
from urlb_methods import METHODS

from sb3_cesd import registry
from sb3_cesd.cesd.cesd import CeSD, CeSDReward
from sb3_cesd.common.merging import merge
from sb3_cesd.common.tensors import frozen, minimum
from sb3_cesd.skill_ddpg import SkillDDPG

#: Transitions in the replay buffer
N_TRANSITIONS = 2000
#: Size -> scale of the yml files
SCALES = {"published": "published", "small": "laptop"}


class Times(NamedTuple):
    """
    Processor times of a method, measured in turn.

    :param whole: time of an update [s], shape ``(n_rounds,)``
    :param backbone: time of an update with the reward of the environment instead of the method's [s], same shape
    :param own: time of what the method adds, see :func:`own_arithmetic` [s], same shape
    """

    whole: np.ndarray
    backbone: np.ndarray
    own: np.ndarray

    @property
    def ratio(self) -> float:
        """Ratio of the time of a whole update to that of its parts, by medians."""
        return float(np.median(self.whole) / (np.median(self.backbone) + np.median(self.own)))

    @property
    def quartiles(self) -> tuple[float, float]:
        """First and third quartile of this ratio over rounds."""
        low, high = np.quantile(self.whole / (self.backbone + self.own), [0.25, 0.75])
        return float(low), float(high)


def variants(names: Iterable[str]) -> dict[str, tuple[str, dict[str, Any]]]:
    """
    List the variants that are measured.

    :param names: names of methods
    :return: method and arguments that differ from its yml file, by title; CeSD has a phase before its constraint and one with
        it
    """
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for name in names:
        if name == "cesd":
            for phase, start in PHASES.items():
                found[f"cesd, {phase}"] = (
                    name,
                    {"intrinsic_kwargs": {"constraint_kwargs": {"start": start, "freeze_clusters": False}}},
                )
        else:
            found[name] = (name, {})
    return found


def make_model(
    name: str, overrides: dict[str, Any], robot: str, size: str, reward: str = "intrinsic", **sizes: Any
) -> SkillDDPG:
    """
    Create a model that is about to learn.

    :param name: name of the method
    :param overrides: arguments that differ from its yml file
    :param robot: one of ``ROBOTS``
    :param size: one of ``SCALES``
    :param reward: ``"intrinsic"``, or ``"extrinsic"`` for the backbone alone
    :param sizes: more arguments that differ from the yml file
    :return: the model, with transitions in its replay buffer
    """
    arguments = of_constructor(METHODS[name].arguments(SCALES[size], f"{robot.capitalize()}-v0"))
    arguments |= {"skill_duration": 10, "learning_starts": N_TRANSITIONS, "buffer_size": N_TRANSITIONS, "reward": reward}
    arguments = merge(merge(arguments, overrides), sizes)
    model = registry.METHODS[name](env=RandomWalk(robot), seed=0, device="cpu", **arguments)
    return model.learn(N_TRANSITIONS, log_interval=10**9)


def constrained_critic(backbone: CeSD, n_pairs: int) -> Callable[[], None]:
    """
    Make a function that does with TD3's critic what a constrained CeSD adds to one skill per transition: the critic learns
    from ``n_pairs - batch_size`` more transitions and, in the losses of critic and actor, each value is the sum of that of the
    skill's head and a shared one.

    :param backbone: a model that learns a task
    :param n_pairs: (transition, skill) pairs in a batch of CeSD
    :return: the function
    """
    batch_size, critic, target = backbone.batch_size, backbone.critic, backbone.critic_target
    assert backbone.replay_buffer is not None
    more = backbone.replay_buffer.relabel(backbone.replay_buffer.sample(n_pairs - batch_size))
    trunk_dim = critic.shared_networks[0][0].in_features  # type: ignore[index]
    hidden = th.rand(n_pairs, trunk_dim, requires_grad=True)

    def learn() -> None:
        backbone.critic_loss(more).backward()
        with th.no_grad():
            minimum([network(hidden) for network in target.shared_networks])
        sum(network(hidden).sum() for network in critic.shared_networks).backward()
        with frozen(critic.own_parameters()):
            sum(network(hidden[:batch_size]).sum() for network in critic.shared_networks).backward()

    return learn


def own_arithmetic(model: SkillDDPG, backbone: SkillDDPG) -> Callable[[], None]:
    """
    Make a function that does what a method adds to TD3: its reward learns, then relabels a batch. CeSD also updates its
    clusters and, if it is constrained, has a :func:`constrained_critic`.

    :param model: a model that has done an update
    :param backbone: the same with the reward of the environment
    :return: the function, for batches that are already sampled
    """
    buffer, intrinsic = model.replay_buffer, model.intrinsic
    assert buffer is not None
    batches = [buffer.as_states(buffer.sample(model.batch_size)) for _ in range(intrinsic.n_batches)]
    learn_more = None
    if isinstance(intrinsic, CeSDReward) and intrinsic.is_constrained:
        assert isinstance(backbone, CeSD)
        learn_more = constrained_critic(backbone, len(intrinsic.relabel(batches[-1]).pairs.skills))

    def learn_and_relabel() -> None:
        intrinsic.train()
        for batch in batches:
            intrinsic.update(batch)
        intrinsic.update_clusters(intrinsic.relabel(batches[-1]))
        if learn_more is not None:
            learn_more()

    return learn_and_relabel


def measure(name: str, overrides: dict[str, Any], robot: str, size: str, n_rounds: int, **sizes: Any) -> Times:
    """
    Time an update of a method and its parts, with one thread.

    :param name: name of the method
    :param overrides: arguments that differ from its yml file
    :param robot: one of ``ROBOTS``
    :param size: one of ``SCALES``
    :param n_rounds: timed turns of each, after two for warm-up
    :param sizes: more arguments that differ from the yml file
    :return: processor times
    """
    th.set_num_threads(1)
    model = make_model(name, overrides, robot, size, **sizes)
    backbone = make_model(name, overrides, robot, size, "extrinsic", **sizes)

    def update_of(learner: SkillDDPG) -> Callable[[], None]:
        return lambda: learner.train(gradient_steps=1, batch_size=learner.batch_size)

    update_of(model)()  # the first one updates the phase of training
    functions = {"whole": update_of(model), "backbone": update_of(backbone), "own": own_arithmetic(model, backbone)}
    seconds: dict[str, list[float]] = {part: [] for part in functions}
    for n_done in range(-2, n_rounds):
        for part, function in functions.items():
            start = time.process_time()
            function()
            if n_done >= 0:
                seconds[part].append(time.process_time() - start)
    return Times(**{part: np.array(values) for part, values in seconds.items()})


def markdown(times: dict[str, Times]) -> str:
    """
    Tabulate times.

    :param times: times by title
    :return: the table, in Markdown
    """
    lines = ["| method | update | backbone | own arithmetic | update / (backbone + own arithmetic) |", "|---|---|---|---|---|"]
    for title, each in times.items():
        cells = " | ".join(f"{np.median(values) * 1000:.3g} ms" for values in each)
        low, high = each.quartiles
        lines.append(f"| {title} | {cells} | {each.ratio:.2f} ({low:.2f} - {high:.2f}) |")
    return "\n".join(lines) + "\n"


def report(names: Iterable[str], robot: str, sizes: Iterable[str], n_rounds: int) -> str:
    """
    Time the updates of methods.

    :param names: names of methods
    :param robot: one of ``ROBOTS``
    :param sizes: some of ``SCALES``
    :param n_rounds: timed turns of each part
    :return: a table per size, in Markdown
    """
    text = (
        f"Medians of {n_rounds} rounds in which the three take turns, processor time of one thread, batches and networks of "
        "the yml files. The backbone is an update of the same model with the reward of the environment. The own arithmetic is "
        "what the method adds: its reward learns from as many batches as in an update, and relabels one. CeSD updates its "
        "clusters, too. Once it is constrained its critic learns from about four skills with a transition, and a value is the "
        "sum of two networks; the own arithmetic then is that of TD3's critic with as many transitions and networks more. "
        "What else a method changes in the losses of critic and actor is in neither part. In brackets the quartiles of the "
        "ratio over rounds.\n"
    )
    for size in sizes:
        times = {title: measure(*variant, robot, size, n_rounds) for title, variant in variants(names).items()}
        text += f"\n## {robot}, {size} ({SCALES[size]} yml files)\n\n{markdown(times)}"
    return text

"""Estimate of what a training costs: its size at the start, its time once some updates were measured."""

import math
from typing import Any, NamedTuple

import torch as th
from stable_baselines3.common.type_aliases import TrainFrequencyUnit

from sb3_cesd.common.cuda import can_capture
from sb3_cesd.skill_ddpg.skill_states import kept_shape
from sb3_cesd.skill_ddpg.step_times import StepTimes

#: Number of updates to warm up, number of updates to measure after that, and the least time to measure [s]
WARM_UP, MEASURED, SHORTEST = 5, 20, 1.0
#: Time [s] and number of parameters above which a smaller scale is suggested
LONG, LARGE = 3 * 3600.0, 1_000_000
#: Networks of fewer parameters seldom gain from a second thread
SMALL = 2_000_000


class CostPhase(NamedTuple):
    """
    A part of the training whose updates cost more than those before it.

    :param start: its first environment step
    :param factor: time of its steps, as a multiple of that before it
    :param name: what starts there
    """

    start: int
    factor: float
    name: str


class Estimate:
    """
    Prints what the training of a model takes: steps, updates, memory and file size at the start, and the remaining time
    after the first updates of each phase.

    It only reads clocks and counters, so that the model learns the same with it.

    :param model: a model at the start of ``learn``
    """

    def __init__(self, model: Any) -> None:
        self._phases = [phase for phase in model.cost_phases() if model.num_timesteps < phase.start < model._total_timesteps]
        self._begin(model)
        print(sizes(model))
        for advice in (use_fewer_threads(model), use_a_graph(model)):
            if advice:
                print(advice)

    def _begin(self, model: Any) -> None:
        self._warm_from = model._n_updates + WARM_UP
        self._is_told = False
        #: What was measured since the warm-up
        self._times: StepTimes | None = None

    def follow(self, model: Any) -> None:
        """
        Measure updates, and print how long the rest takes; to be called after each environment step.

        :param model: the model in ``learn``
        """
        if self._phases and model.num_timesteps >= self._phases[0].start:
            # What was measured so far belongs to another phase
            del self._phases[0]
            self._begin(model)
        elif self._is_told:
            return
        elif model._n_updates >= self._warm_from:
            if self._times is None:
                self._times = StepTimes(model)
            elif self._times.add(model) and self._times.n_updates >= MEASURED:
                seconds = self._times.seconds
                if seconds >= SHORTEST:
                    self._is_told = True
                    self._tell(model, self._times.n_updates, seconds / self._times.n_steps)

    def _tell(self, model: Any, n_updates: int, step_time: float) -> None:
        remaining = remaining_time(model.num_timesteps, model._total_timesteps, step_time, self._phases)
        later = "".join(
            f"; {phase.name} from step {phase.start:,} on is assumed to cost {phase.factor:g} times as much"
            for phase in self._phases
        )
        print(
            f"Estimated time to the end on this machine, without evaluations: {duration(remaining)} "
            f"({1e3 * step_time:.3g} ms per step, measured over {n_updates} updates{later})."
        )
        if remaining > LONG and n_parameters(model) > LARGE:
            print(smaller_scale(model))


def remaining_time(now: int, end: int, step_time: float, phases: list[CostPhase]) -> float:
    """
    Compute the time of the remaining steps.

    :param now: environment steps so far
    :param end: environment steps at the end
    :param step_time: time of a step with its updates [s]
    :param phases: phases to come
    :return: time [s]
    """
    total, start = 0.0, now
    for phase in phases:
        total += max(phase.start - start, 0) * step_time
        start, step_time = max(phase.start, start), step_time * phase.factor
    return total + max(end - start, 0) * step_time


def n_updates_to_come(model: Any) -> int | None:
    """
    Count the updates of a training.

    :param model: a model at the start of ``learn``
    :return: their number; ``None`` if it depends on the length of episodes
    """
    n_steps = model._total_timesteps - max(model.num_timesteps, model.learning_starts)
    if model.gradient_steps < 0:  # as many as transitions
        return max(n_steps, 0)
    if model.train_freq.unit != TrainFrequencyUnit.STEP:
        return None
    return max(n_steps, 0) // (model.train_freq.frequency * model.n_envs) * model.gradient_steps


def modules_and_optimizers(model: Any) -> tuple[list[th.nn.Module], list[th.optim.Optimizer]]:
    """
    List what a saved model holds.

    :param model: a model
    :return: networks and optimizers
    """
    optimizers = model.intrinsic.optimizers.values()
    references = [] if model.reference_actor is None else [model.reference_actor]
    return [model.policy, model.intrinsic, *references], [model.actor.optimizer, model.critic.optimizer, *optimizers]


def n_bytes(tensors: Any) -> int:
    """
    Add up the memory of tensors.

    :param tensors: any number of them
    :return: memory [bytes]
    """
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def model_bytes(model: Any) -> int:
    """
    Estimate the size of a saved model: networks with the target critic, two Adam moments per trainable parameter and, in
    pre-training, the states of each skill.

    :param model: a model
    :return: size at the end of training; with another optimizer, about that [bytes]
    """
    modules, optimizers = modules_and_optimizers(model)
    networks = sum(n_bytes(module.state_dict().values()) for module in modules)
    learning = sum(n_bytes(group["params"]) for optimizer in optimizers for group in optimizer.param_groups)
    states = 4 * math.prod(kept_shape(model.replay_buffer, model.skill_duration)) if model.reward == "intrinsic" else 0
    return networks + 2 * learning + states


def n_parameters(model: Any) -> int:
    """
    Count the trainable parameters.

    :param model: a model
    :return: their number
    """
    optimizers = modules_and_optimizers(model)[1]
    return sum(
        parameter.numel() for optimizer in optimizers for group in optimizer.param_groups for parameter in group["params"]
    )


def sizes(model: Any) -> str:
    """
    Describe the size of a training.

    :param model: a model at the start of ``learn``
    :return: a sentence or two
    """
    n_steps, n_updates = max(model._total_timesteps - model.num_timesteps, 0), n_updates_to_come(model)
    updates = "" if n_updates is None else f" and about {n_updates:,} updates of {model.batch_size:,} transitions"
    return (
        f"{type(model).__name__} learns for {n_steps:,} environment steps{updates}. "
        f"Replay buffer: {size(model.replay_buffer.nbytes)} once full; saved model: up to {size(model_bytes(model))}."
    )


def smaller_scale(model: Any) -> str:
    """
    Suggest a smaller scale for a method.

    :param model: a model of the method
    :return: a sentence
    """
    name = type(model).__name__.lower()
    return (
        "For skills in less time, use the laptop scale: "
        f"--conf-file {name}_laptop.yml in RL Zoo, **sb3_cesd.preset('laptop', env_id, '{name}') in Python."
    )


def use_fewer_threads(model: Any) -> str:
    """
    Suggest a single thread for small networks, where threads may spend most of the time waiting for each other.

    :param model: a model
    :return: a sentence; empty if there is nothing to say
    """
    n_threads = th.get_num_threads()
    if model.device.type != "cpu" or n_threads == 1 or n_parameters(model) >= SMALL:
        return ""
    return (
        f"PyTorch uses {n_threads} threads. Networks of this size gain little from them, and lose much where the "
        "machine has other work: try --num-threads 1 in RL Zoo, torch.set_num_threads(1) in Python."
    )


def use_a_graph(model: Any) -> str:
    """
    Suggest a CUDA graph on a GPU, which otherwise waits for the host most of the time.

    :param model: a model
    :return: a sentence; empty if there is nothing to say
    """
    if not can_capture(model.device) or model.cuda_graph:
        return ""
    return (
        "Without a CUDA graph, a GPU waits for the host most of the time: try -params cuda_graph:True in RL Zoo, "
        "cuda_graph=True in Python, for updates that are several times as fast."
    )


def duration(seconds: float) -> str:
    """
    Round a time for a message.

    :param seconds: time [s]
    :return: the time in the unit that suits it
    """
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}" if seconds >= 10 * length else f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} seconds"


def size(n: int) -> str:
    """
    Round a size for a message.

    :param n: size [bytes]
    :return: the size in the unit that suits it
    """
    return f"{n / 1e9:.1f} GB" if n >= 1e9 else f"{n / 1e6:.0f} MB" if n >= 1e7 else f"{n / 1e6:.1f} MB"

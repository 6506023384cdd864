"""Arguments from ``-params`` within those of the entry."""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from functools import wraps
from io import StringIO
from typing import Any

from sb3_cesd.common.merging import merge
from sb3_cesd.registry import METHODS
from sb3_cesd.skill_ddpg import SkillDDPG

#: Arguments whose entries ``-params`` adds to, one by one
NESTED = ("policy_kwargs", "intrinsic_kwargs", "replay_buffer_kwargs")
#: Encoders, each with arguments of its own
ENCODERS = ("encoder", "distance_encoder")


def add_to_entry(read: Any) -> Any:
    """
    Make ``-params`` change only the arguments that it names within ``intrinsic_kwargs`` and others, as sections of a yml file
    do. RL Zoo replaces these as a whole, so that networks of a small entry would get their default size.

    :param read: ``ExperimentManager.read_hyperparameters``
    :return: the extended method. It raises a ``ValueError`` for ``--trial-id 0``
    """

    @wraps(read)
    def read_added(self: Any) -> Any:
        if self.algo in METHODS and self.storage and self.study_name and self.trial_id == 0:
            raise ValueError(
                "RL Zoo ignores --trial-id 0. That trial has the hyperparameters of the entry: leave --trial-id out, and pass "
                "the -params of the study."
            )
        given = self.custom_hyperparams
        if self.algo not in METHODS or not any(name in NESTED for name in given or {}):
            return read(self)
        with _replaced(self, custom_hyperparams=None, trial_id=None), redirect_stdout(StringIO()):
            entry, _ = read(self)
        kept = {name: entry.get(name) for name in NESTED}
        # RL Zoo evaluates strings, too, but only later
        kept.update({name: eval(value, read.__globals__) for name, value in kept.items() if isinstance(value, str)})
        if self.storage and self.study_name and self.trial_id:
            # load_arguments adds to those of the trial
            self.nested_of_entry = kept
            return read(self)
        nested = {name: added(METHODS[self.algo], kept[name], given[name]) for name in NESTED if name in given}
        with _replaced(self, custom_hyperparams={**given, **nested}):
            return read(self)

    return read_added


def added(method: type[SkillDDPG], kept: Any, given: Any) -> Any:
    """
    Add arguments to those of an entry.

    :param method: class of the method
    :param kept: arguments of the entry by name
    :param given: arguments to change; with another encoder, the entry's arguments of its encoder are left out
    :return: all arguments; ``given`` if one of the two is no dictionary
    """
    if not (isinstance(kept, Mapping) and isinstance(given, Mapping)):
        return given
    replaced = replaced_encoders(method, kept, given)
    return merge({name: value for name, value in kept.items() if name.removesuffix("_kwargs") not in replaced}, given)


def replaced_encoders(method: type[SkillDDPG], kept: Mapping[str, Any], others: Mapping[str, Any]) -> list[str]:
    """
    List the encoders that others replace, so that their arguments no longer fit.

    :param method: class of the method
    :param kept: arguments of its reward by name
    :param others: arguments that override them
    :return: some of :data:`ENCODERS`
    """
    known = inspect.signature(method.reward_class).parameters
    return [
        name for name in ENCODERS if name in known and name in others and others[name] != kept.get(name, known[name].default)
    ]


@contextmanager
def _replaced(manager: Any, **attributes: Any) -> Iterator[None]:
    """Let a manager read its hyperparameters with other attributes, such as arguments from ``-params``."""
    originals = {name: getattr(manager, name) for name in attributes}
    vars(manager).update(attributes)
    try:
        yield
    finally:
        vars(manager).update(originals)

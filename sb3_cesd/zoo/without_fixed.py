"""Arguments that a saved model keeps, whatever the entry of a yml file says."""

from functools import wraps
from typing import Any

from sb3_cesd.common.merging import merge
from sb3_cesd.registry import METHODS
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.saved_files import read_saved_data, with_lists
from sb3_cesd.skill_ddpg.search_space import Params
from sb3_cesd.zoo.defaults import parameter_default
from sb3_cesd.zoo.nested import Path, has, import_names, look_up, only_json, only_names, walk

OF_POLICY, OF_REWARD = "policy_kwargs", "intrinsic_kwargs"


def without_fixed(method: type[SkillDDPG], hyperparams: Params, given: Params) -> Params:
    """
    Remove arguments that shape networks, as RL Zoo removes ``policy_kwargs`` when it loads a model, since the entry may have
    another scale than the model.

    :param method: class of the method
    :param hyperparams: hyperparameters from the entry and ``-params``
    :param given: those from ``-params``, which are kept
    :return: hyperparameters with which the model can be loaded
    """
    left_out = _left_out(method, hyperparams, given)
    kept = {name: value for name, value in hyperparams.items() if (name,) not in left_out}
    if isinstance(kept.get(OF_REWARD), dict):
        kept[OF_REWARD] = {name: value for name, value in kept[OF_REWARD].items() if (OF_REWARD, name) not in left_out}
    return kept


def of_policy(given: Params) -> Params:
    """
    Select what ``-params`` changes of the policy, which RL Zoo leaves out when it loads a model.

    :param given: arguments from ``-params``
    :return: ``policy_kwargs``, if they are among them
    """
    return {name: value for name, value in given.items() if name == OF_POLICY}


def tell_what_is_kept(method: type[SkillDDPG], path: Any, hyperparams: Params, given: Params) -> None:
    """
    Print where a model differs from the arguments that :func:`without_fixed` removes.

    :param method: class of the method
    :param path: file of the model
    :param hyperparams: hyperparameters from the entry and ``-params``
    :param given: those from ``-params``
    """
    # Values that JSON can't express, such as classes, are not compared
    entry, model = only_json(hyperparams), only_json(read_saved_data(path))
    both = [place for place in _left_out(method, hyperparams, given) if has(entry, place) and has(model, place)]
    others = [place for place in both if with_lists(look_up(entry, place)) != with_lists(look_up(model, place))]
    if others:
        listed = ", ".join(f"{'.'.join(place)}={look_up(model, place)!r}" for place in others)
        print(f"Kept from the model, instead of the values of the yml file: {listed}")


def values_of_model(model: SkillDDPG, given: Params) -> Params:
    """
    Select the arguments of a loaded model that it may have kept, for a yml file.

    :param model: the model
    :param given: arguments from ``-params``, which stay as they were given
    :return: arguments by name, except for objects that a yml file can't name
    """
    names = (*model.fixed_by_save, OF_POLICY, OF_REWARD)
    of_model = {name: getattr(model, name) for name in names}
    of_model = merge(only_json(of_model), import_names(only_names(of_model)))
    return merge(of_model, {name: given[name] for name in names if name in given})


def keep_values(save_config: Any) -> Any:
    """
    Make RL Zoo write what a loaded model kept to the ``config.yml`` of a run, not the values of the entry in their place.

    :param save_config: ``ExperimentManager._save_config``
    :return: the extended method
    """

    @wraps(save_config)
    def save_kept(self: Any, saved_hyperparams: Params) -> None:
        for name, value in getattr(self, "values_of_model", {}).items():
            if name in saved_hyperparams or value not in (parameter_default(METHODS[self.algo], name), {}):
                saved_hyperparams[name] = value
        save_config(self, saved_hyperparams)

    return save_kept


def _left_out(method: type[SkillDDPG], hyperparams: Params, given: Params) -> list[Path]:
    return [place for place, _ in walk(hyperparams) if _is_fixed(method, place) and not has(given, place)]


def _is_fixed(method: type[SkillDDPG], place: Path) -> bool:
    if len(place) == 2 and place[0] == OF_REWARD:
        of_reward = method.reward_class.fixed_by_save
        return of_reward is None or place[1] in of_reward
    return len(place) == 1 and place[0] in method.fixed_by_save

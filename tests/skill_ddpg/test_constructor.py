"""One list of arguments for all methods, none of which is lost on the way, and the class of the policy by its name."""

import inspect
import warnings

import pytest
from every_method import every_method
from small import make_small
from tuning import saved

from sb3_cesd import APS, DIAYN, CeSD, SkillDDPG, show_skills
from sb3_cesd.common.arguments import OF_THE_RUN, constructor_arguments


class OneStep(DIAYN):
    defaults = {"n_steps": 1, "batch_size": 48}  # noqa: RUF012


class Below(OneStep):
    """As many subclasses of SB3's algorithms are written."""

    defaults = {"exploration_noise": 0.5, "batch_size": 24}  # noqa: RUF012

    def __init__(self, *args, n_steps=2, my_option=1, **kwargs):
        super().__init__(*args, n_steps=n_steps, **kwargs)
        self.my_option = my_option


def defaults_of(method):
    parameters = inspect.signature(method).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters if parameter.default is not inspect.Parameter.empty}


def test_defaults_of_a_method_are_those_of_its_signature_and_of_its_models():
    assert defaults_of(OneStep) == {**defaults_of(DIAYN), "n_steps": 1, "batch_size": 48} != defaults_of(DIAYN)
    model = OneStep("MlpPolicy", "Pendulum-v1", n_skills=4, buffer_size=100, policy_kwargs={"net_arch": [8]})
    assert (model.n_steps, model.batch_size, model.replay_buffer.n_steps) == (1, 48, 1)
    assert make_small(OneStep, n_steps=5).n_steps == 5, "they are defaults only"
    assert make_small(DIAYN).n_steps == 3 and defaults_of(SkillDDPG)["batch_size"] == 256, "and of this method alone"


def test_fine_tuning_loses_no_argument_of_a_subclass():
    pretrained = Below("MlpPolicy", "Pendulum-v1", my_option=5, gamma=0.9, **small()).learn(80)
    assert (pretrained.n_steps, pretrained.exploration_noise, pretrained.batch_size) == (2, 0.5, 24)
    for model in (
        Below.from_pretrained(saved(pretrained), "Pendulum-v1", device="cpu"),
        Below.load(saved(pretrained), "Pendulum-v1", reward="extrinsic", device="cpu"),
        Below.load(saved(pretrained), device="cpu"),
    ):
        assert (model.n_steps, model.batch_size, model.exploration_noise) == (2, 24, 0.5)
        assert (model.my_option, model.gamma) == (5, 0.9)


def small():
    return {"n_skills": 4, "buffer_size": 100, "learning_starts": 40, "policy_kwargs": {"net_arch": [8]}, "device": "cpu"}


@every_method
def test_arguments_of_a_model_make_another_like_it(method):
    """Each argument of the constructor, changed from its default, is told again."""
    changed = {
        "skill_duration": 7,
        "learning_rate": 1e-3,
        "tau": 0.05,
        "train_freq": 4,
        "exploration_noise": 0.3,
        "noise_correlation": 0.5,
        "target_policy_noise": 0.1,
        "target_noise_clip": 0.2,
        "warm_up": "policy",
        "stats_window_size": 7,
        "n_steps": 2,
    }
    told = constructor_arguments(make_small(method, **changed))
    assert list(told) == [name for name in inspect.signature(method.__init__).parameters if name not in OF_THE_RUN]
    assert told["gradient_steps"] is None, "one update per transition, for any number of environments"
    assert told["train_freq"].frequency == changed.pop("train_freq")
    assert {name: told[name] for name in changed} == changed
    again = constructor_arguments(method("MlpPolicy", "Pendulum-v1", device="cpu", **told))
    assert {name: value for name, value in again.items() if told[name] != value} == {}
    assert constructor_arguments(make_small(method, gradient_steps=3))["gradient_steps"] == 3


@pytest.mark.parametrize(("method", "name"), [(CeSD, "CeSDPolicy"), (DIAYN, "SkillPolicy"), (APS, "SuccessorPolicy")])
def test_policies_have_their_own_names_too(method, name):
    assert type(make_small(method, policy=name).policy) is method.policy_aliases["MlpPolicy"] is method.policy_aliases[name]


def test_what_learns_nothing_warns():
    model = make_small(DIAYN, learning_starts=40)
    with pytest.warns(UserWarning, match="at step 20 without an update.*lower learning_starts .40"):
        model.learn(20)
    assert "Nothing was learned" in str(show_skills(model, n_steps=2, n_rollouts=0, n_frames=0, video=False))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model.learn(60)
        assert "Nothing was learned" not in str(show_skills(model, n_steps=2, n_rollouts=0, n_frames=0, video=False))
        make_small(CeSD, intrinsic_kwargs={"entropy_kwargs": {"k": 7}})
    with pytest.warns(UserWarning, match="batch_size / n_skills = 8: raise batch_size"):
        make_small(CeSD, intrinsic_kwargs={"entropy_kwargs": {"k": 8}})

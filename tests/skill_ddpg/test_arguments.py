"""One list of arguments for all methods, none of which is lost on the way."""

import inspect

import pytest
from every_method import every_method
from small import make_small
from tuning import saved

from sb3_cesd import DADS, DIAYN, CeSD, SkillDDPG
from sb3_cesd.intrinsic import IntrinsicReward
from sb3_cesd.methods.rnd import RNDReward
from sb3_cesd.skill_ddpg.arguments import OF_THE_RUN, constructor_arguments, with_defaults


class OneStep(DIAYN):
    defaults = {"n_steps": 1, "batch_size": 48}  # noqa: RUF012


class OneStepWithNoise(OneStep):
    defaults = {"exploration_noise": 0.5, "batch_size": 24}  # noqa: RUF012


def defaults_of(method):
    parameters = inspect.signature(method).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters if parameter.default is not inspect.Parameter.empty}


def make(method, **kwargs):
    """With the defaults of the method for what the small models of other tests choose."""
    given = {"batch_size": defaults_of(method)["batch_size"], **kwargs}
    return make_small(method, **given)


def test_defaults_of_a_method_are_those_of_its_signature_and_of_its_models():
    expected = {**defaults_of(DIAYN), "n_steps": 1, "batch_size": 48}
    assert defaults_of(OneStep) == expected != defaults_of(DIAYN)
    model = OneStep("MlpPolicy", "Pendulum-v1", n_skills=4, buffer_size=100, policy_kwargs={"net_arch": [8]})
    assert (model.n_steps, model.batch_size, model.replay_buffer.n_steps) == (1, 48, 1)
    assert make_small(OneStep, n_steps=5).n_steps == 5, "they are defaults only"
    assert make_small(DIAYN).n_steps == 3 and defaults_of(SkillDDPG)["batch_size"] == 1024, "and of this method alone"


def test_defaults_of_a_subclass_add_to_those_of_the_class_above():
    assert defaults_of(OneStepWithNoise) == {**defaults_of(OneStep), "exploration_noise": 0.5, "batch_size": 24}
    model = make(OneStepWithNoise)
    assert (model.n_steps, model.exploration_noise, model.batch_size) == (1, 0.5, 24)


@pytest.mark.parametrize("method", [OneStep, OneStepWithNoise])
def test_fine_tuning_loses_no_argument_of_a_method_with_defaults(method):
    pretrained = make(method, exploration_noise=0.05, gamma=0.9).learn(80)
    for model in (
        method.from_pretrained(saved(pretrained), "Pendulum-v1", device="cpu"),
        method.load(saved(pretrained), "Pendulum-v1", reward="extrinsic", device="cpu"),
        method.load(saved(pretrained), device="cpu"),
    ):
        assert (model.n_steps, model.batch_size) == (1, pretrained.batch_size)
        assert (model.exploration_noise, model.gamma) == (0.05, 0.9)
    model = method.from_pretrained(saved(pretrained), "Pendulum-v1", device="cpu", n_steps=2)
    assert (model.n_steps, model.replay_buffer.n_steps, model.batch_size) == (2, 2, pretrained.batch_size)


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
    model = make_small(method, **changed)
    told = constructor_arguments(model)
    names = [name for name in inspect.signature(method.__init__).parameters if name not in OF_THE_RUN]
    assert list(told) == names and told["gradient_steps"] is None, "one update per transition, for any number of environments"
    assert told["train_freq"].frequency == changed.pop("train_freq")
    assert {name: told[name] for name in changed} == changed
    again = constructor_arguments(method("MlpPolicy", "Pendulum-v1", device="cpu", **told))
    assert {name: value for name, value in again.items() if told[name] != value} == {}
    assert constructor_arguments(make_small(method, gradient_steps=3))["gradient_steps"] == 3


class PassesAllOn(DIAYN):
    """As many subclasses of SB3's algorithms are written."""

    def __init__(self, *args, n_steps=2, my_option=1, **kwargs):
        super().__init__(*args, n_steps=n_steps, **kwargs)
        self.my_option = my_option


class NamesSome(CeSD):
    def __init__(self, policy, env, my_option=1, **kwargs):
        self.my_option = my_option
        super().__init__(policy, env, **kwargs)


class Mixin:
    def __init__(self, *args, my_option=1, **kwargs):
        self.my_option = my_option
        super().__init__(*args, **kwargs)


class Mixed(Mixin, DADS):
    defaults = {"my_option": 3, "batch_size": 24}  # noqa: RUF012


class Below(PassesAllOn):
    defaults = {"batch_size": 24, "my_option": 5}  # noqa: RUF012


class BelowWithItsOwn(Below):
    defaults = {"tau": 0.5}  # noqa: RUF012

    def __init__(self, *args, another=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.another = another


PASS_ON = [PassesAllOn, NamesSome, Mixed, Below, BelowWithItsOwn]


@pytest.mark.parametrize("method", PASS_ON)
def test_a_constructor_may_pass_arguments_on(method):
    default = defaults_of(method)["my_option"]
    assert make_small(method).my_option == default
    model = make_small(method, my_option=7, gamma=0.9, exploration_noise=0.05).learn(80)
    path = saved(model)
    for loaded in (
        method.load(path, device="cpu"),
        method.from_pretrained(path, "Pendulum-v1", device="cpu"),
        method.load(path, "Pendulum-v1", reward="extrinsic", device="cpu"),
    ):
        assert (loaded.my_option, loaded.gamma, loaded.exploration_noise) == (7, 0.9, 0.05)
        assert (loaded.n_steps, loaded.batch_size, loaded.tau) == (model.n_steps, model.batch_size, model.tau)
    changed = method.from_pretrained(path, "Pendulum-v1", device="cpu", my_option=8, gamma=0.8, n_steps=5)
    assert (changed.my_option, changed.gamma, changed.n_steps) == (8, 0.8, 5)
    for wrong in (method, method.load, method.from_pretrained):
        with pytest.raises((TypeError, ValueError), match=r"my_optoin.*(mean 'my_option'|use some of .*my_option)"):
            wrong(*(("MlpPolicy", "Pendulum-v1") if wrong is method else (path, "Pendulum-v1")), my_optoin=1)


def test_all_arguments_stand_in_the_signature_of_a_constructor_that_passes_them_on():
    names = list(inspect.signature(DIAYN).parameters)
    after = names.index("n_steps") + 1
    # *args end at what the constructor takes by name
    told = inspect.signature(PassesAllOn).parameters.values()
    assert [each.name for each in told if each.kind is each.POSITIONAL_OR_KEYWORD] == names[: after - 1]
    by_name = [each.name for each in told if each.kind is each.KEYWORD_ONLY]
    assert by_name == ["n_steps", "my_option", *names[after:]]
    assert defaults_of(PassesAllOn) == {**defaults_of(DIAYN), "n_steps": 2, "my_option": 1}
    assert defaults_of(Below) == {**defaults_of(PassesAllOn), "batch_size": 24, "my_option": 5}
    assert defaults_of(BelowWithItsOwn) == {**defaults_of(Below), "tau": 0.5, "another": None}
    assert defaults_of(Mixed) == {**defaults_of(DADS), "my_option": 3, "batch_size": 24}
    positional = [each.name for each in inspect.signature(NamesSome).parameters.values() if each.kind is not each.KEYWORD_ONLY]
    assert positional == ["policy", "env", "my_option"]


def test_defaults_give_way_to_arguments_by_position():
    class Four(PassesAllOn):
        defaults = {"n_skills": 4, "skill_duration": 9}  # noqa: RUF012

    sizes = {"buffer_size": 100, "policy_kwargs": {"net_arch": [8]}}
    model = Four("MlpPolicy", "Pendulum-v1", 6, **sizes)
    assert (model.n_skills, model.skill_duration) == (6, 9)
    assert Four("MlpPolicy", "Pendulum-v1", **sizes).n_skills == 4


def test_what_a_constructor_sets_and_passes_on_belongs_to_defaults():
    class Fixed(DIAYN):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, n_steps=1, **kwargs)

    model = make_small(Fixed).learn(80)
    assert model.n_steps == 1 and Fixed.load(saved(model), device="cpu").n_steps == 1
    with pytest.raises(TypeError, match=r"argument 'n_steps', from a constructor of Fixed and .* class variable 'defaults'"):
        Fixed.from_pretrained(saved(model), "Pendulum-v1", device="cpu")


def test_a_constructor_that_models_cannot_be_loaded_with_is_refused():
    with pytest.raises(TypeError, match=r"Closed takes no device, which load\(\) passes: take \*\*kwargs, and pass"):

        class Closed(DIAYN):
            def __init__(self, policy, env, batch_size=64):
                super().__init__(policy, env, batch_size=batch_size)


def test_a_constructor_that_takes_no_names_is_refused():
    with pytest.raises(TypeError, match=r"Hidden takes \*args without \*\*kwargs.*: take both, and pass them on by super"):

        class Hidden(DIAYN):
            def __init__(self, *args):
                super().__init__(*args)


def test_defaults_of_unknown_arguments_of_a_constructor_that_passes_them_on_are_refused():
    with pytest.raises(TypeError, match="defaults names n_step, which is not an optional argument"):
        type("Misspelt", (PassesAllOn,), {"defaults": {"n_step": 1}})


@pytest.mark.parametrize("name", ["n_step", "policy", "net_arch"])
def test_defaults_of_unknown_arguments_are_refused(name):
    message = f"defaults names {name}, which is not an optional argument of the constructor: use those that are"
    with pytest.raises(TypeError, match=message):
        type("Misspelt", (CeSD,), {"defaults": {name: 1}})


def test_an_argument_that_is_not_kept_is_noticed_when_it_would_be_lost():
    class Forgetful(DIAYN):
        def __init__(self, policy, env, bonus=1.0, device="auto", _init_setup_model=True):
            super().__init__(policy, env, device=device, buffer_size=100, policy_kwargs={"net_arch": [8]})

    with pytest.raises(AttributeError, match=r"Forgetful does not keep bonus as an attribute.*: set self\.bonus in its"):
        constructor_arguments(Forgetful("MlpPolicy", "Pendulum-v1"))


def test_a_method_with_a_constructor_of_its_own_keeps_its_argument():
    class Own(DADS):
        defaults = {"bonus": 2.0}  # noqa: RUF012

        def __init__(self, policy, env, n_skills=16, bonus=1.0, device="auto", _init_setup_model=True):
            self.bonus = bonus
            super().__init__(policy, env, n_skills, buffer_size=100, policy_kwargs={"net_arch": [8]}, device=device)

    model = Own("MlpPolicy", "Pendulum-v1", 5)
    assert (model.bonus, model.n_skills, model.skill_type) == (2.0, 5, "cube")
    assert constructor_arguments(model) == {"n_skills": 5, "bonus": 2.0}


@pytest.mark.parametrize("method", [CeSD, DADS, OneStepWithNoise])
def test_what_is_said_of_a_misspelt_argument_names_the_method(method):
    said = rf"^{method.__name__}\.__init__\(\) got an unexpected keyword argument 'n_skils': did you mean 'n_skills'\?$"
    with pytest.raises(TypeError, match=said):
        method("MlpPolicy", "Pendulum-v1", n_skils=4)


def test_an_argument_like_no_other_is_answered_by_all_there_are():
    with pytest.raises(TypeError, match=r"argument 'xyz': use some of .*, env, .*, n_skills, .*, policy, .*\.$"):
        CeSD("MlpPolicy", "Pendulum-v1", xyz=4)


@pytest.mark.parametrize("method", [CeSD, DADS, OneStepWithNoise])
def test_the_signature_of_a_method_is_that_of_its_constructor(method):
    expected = list(inspect.signature(method.__init__).parameters.values())[1:]
    assert list(inspect.signature(method).parameters.values()) == expected and expected[0].name == "policy"


def test_other_defaults_of_a_function():
    def function(first, second=2, third=3, *, fourth=4, fifth):
        """Words."""
        return first, second, third, fourth, fifth

    changed = with_defaults(function, {"third": 30, "fourth": 40})
    assert changed(1, fifth=5) == (1, 2, 30, 40, 5) and function(1, fifth=5) == (1, 2, 3, 4, 5)
    assert changed(1, 7, 8, fourth=9, fifth=5) == (1, 7, 8, 9, 5)
    assert str(inspect.signature(changed)) == "(first, second=2, third=30, *, fourth=40, fifth)"
    assert (changed.__doc__, changed.__name__, changed.__module__) == ("Words.", "function", __name__)


def _auto_rewards():
    """Rewards of a user, one with the name of one of ours, one that is one of ours with another ``scale``."""

    class CSFReward(IntrinsicReward):
        def __init__(self, obs_dim, action_dim, skill_space, scale=1.0):
            super().__init__(obs_dim, action_dim, skill_space)

        def reward(self, samples):
            return samples.observations.norm(dim=1)

    class AutoRND(RNDReward):
        def __init__(self, obs_dim, action_dim, skill_space, scale=1.0, **kwargs):
            super().__init__(obs_dim, action_dim, skill_space, **kwargs)

    return [CSFReward, AutoRND]


@pytest.mark.parametrize("reward", _auto_rewards())
def test_rewards_of_a_user_take_what_they_take(reward):
    method = type("Method", (SkillDDPG,), {"reward_class": reward})
    assert make_small(method, intrinsic_kwargs={"scale": "auto"}).learn(60)._n_updates == 10
    if issubclass(reward, RNDReward):
        with pytest.raises(ValueError, match="features_dim='auto' must be an integer"):
            make_small(method, intrinsic_kwargs={"features_dim": "auto"})


@pytest.mark.parametrize(("name", "value"), [("skill", "best"), ("transfer", ["actor"]), ("n_eval_episodes", 5)])
def test_an_argument_of_tasks_is_passed_to_from_pretrained(name, value):
    said = (
        rf"'{name}': it is for tasks, so pass it to from_pretrained\(path, env, {name}=\.\.\.\), or add -i FILE in RL Zoo\.$"
    )
    with pytest.raises(TypeError, match=said):
        CeSD("MlpPolicy", "Pendulum-v1", **{name: value})

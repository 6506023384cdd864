"""Makes what is documented at full scale run in seconds: few steps, small networks."""

import argparse
import inspect
import runpy
import sys
from pathlib import Path

from small import small_reward
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from sb3_cesd import SkillDDPG
from sb3_cesd.checkpoints import ResumableCheckpoint

N_STEPS = 120
AT_MOST = {"batch_size": 32, "learning_starts": 40, "buffer_size": 1000}
#: Arguments that make a command short, after those of the page
SHORT = {
    "rl_zoo3.train": ["-n", str(N_STEPS)],
    "sb3_cesd.train": ["-n", str(N_STEPS)],
    "rl_zoo3.enjoy": ["-n", "10"],
    "rl_zoo3.record_video": ["-n", "5"],
    "sb3_cesd.show": ["--steps", "5", "--frames", "0", "--video", "none"],
}
SHORT_STUDY = ["--n-trials", "2", "--n-evaluations", "1", "--eval-episodes", "1"]


def small_intrinsic_kwargs(reward_class, intrinsic_kwargs):
    """Keep what the page says, apart from sizes."""
    small = small_reward(reward_class)
    if intrinsic_kwargs.get("encoder") in ("fourier", "identity"):  # without networks
        small.pop("encoder_kwargs")
    for name, value in small.items():
        given = intrinsic_kwargs.get(name)
        small[name] = {**given, **value} if isinstance(given, dict) else value
    return {**intrinsic_kwargs, **small}


def shrink(monkeypatch):
    """Make all models small, and training short."""
    setup_model, learn = SkillDDPG._setup_model, OffPolicyAlgorithm.learn
    init_checkpoint = ResumableCheckpoint.__init__

    def setup_small_model(self):
        for name, most in AT_MOST.items():
            setattr(self, name, min(getattr(self, name), most))
        self.policy_kwargs = {**self.policy_kwargs, "net_arch": [16, 16]}
        if self.reward == "intrinsic":
            self.intrinsic_kwargs = small_intrinsic_kwargs(self.reward_class, self.intrinsic_kwargs)
        setup_model(self)

    def learn_shortly(self, total_timesteps, *args, **kwargs):
        return learn(self, min(total_timesteps, N_STEPS), *args, **kwargs)

    def init_frequent_checkpoint(self, *args, **kwargs):
        arguments = inspect.signature(init_checkpoint).bind(self, *args, **kwargs).arguments
        init_checkpoint(**{**arguments, "save_freq": min(arguments.get("save_freq", N_STEPS), N_STEPS // 2)})

    monkeypatch.setattr(SkillDDPG, "_setup_model", setup_small_model)
    monkeypatch.setattr(OffPolicyAlgorithm, "learn", learn_shortly)
    monkeypatch.setattr(ResumableCheckpoint, "__init__", init_frequent_checkpoint)


def run_module(module, arguments, monkeypatch):
    """Run ``python -m module`` in this process, shortened."""
    short = list(SHORT.get(module, []))
    if "-optimize" in arguments:
        short += SHORT_STUDY
    if "--trial-id" in arguments:
        short += ["--trial-id", "1"]
    # argparse keeps the last of two; a list such as -params ends where the next argument starts
    monkeypatch.setattr(sys, "argv", [module, *arguments, *short])
    if not hasattr(sys.modules.get(module), "__path__"):  # of a package, runpy runs another module, __main__
        monkeypatch.delitem(sys.modules, module, raising=False)
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=False)
    except SystemExit as end:
        assert not end.code, f"python -m {module} {' '.join(arguments)} ends with {end.code}"


class Parsed(Exception):
    """The arguments are fine."""


def parse_arguments(script, arguments, monkeypatch):
    """Check the arguments of a script which takes hours, without running it."""
    parse_args = argparse.ArgumentParser.parse_args

    def parse_and_stop(self, *args, **kwargs):
        parse_args(self, *args, **kwargs)
        raise Parsed

    for name in arguments:  # the results of a command above, which was not run either
        if name.endswith(".csv"):
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).touch()
    with monkeypatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", parse_and_stop)
        patch.setattr(sys, "argv", [str(script), *arguments])
        patch.syspath_prepend(str(script.parent))
        try:
            runpy.run_path(str(script), run_name="__main__")
        except Parsed:
            return
    raise AssertionError(f"{script.name} did not read its arguments")

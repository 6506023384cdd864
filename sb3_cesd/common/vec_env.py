import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize, unwrap_vec_normalize, unwrap_vec_wrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from sb3_cesd.common.skills import SkillClock, append_skill, skill_space


class VecSkillObservation(VecEnvWrapper):
    """
    Append a one-hot skill to the observations: ``(obs_dim,)`` becomes ``(obs_dim + n_skills,)``.

    A new skill is drawn for an environment when its episode ends and after every ``skill_duration`` steps.
    The observation returned by a step already bears the skill to follow from there; ``terminal_observation`` keeps the
    skill of the episode that ended. ``infos[i]["skill"]`` is the skill that was followed during the step.

    :param venv: the vectorized environment to wrap (with 1D Box observations)
    :param n_skills: number of skills
    :param skill_duration: steps after which a skill is drawn anew; ``None`` keeps it to the end of the episode
    :param skill: follow this skill always
    :param order: ``"random"``, or ``"cycle"`` to go through the skills in turn (for evaluation)
    """

    def __init__(
        self,
        venv: VecEnv,
        n_skills: int,
        skill_duration: int | None = 50,
        skill: int | None = None,
        order: str = "random",
    ) -> None:
        self.clock = SkillClock(venv.num_envs, n_skills, skill_duration, skill, order)
        super().__init__(venv, observation_space=skill_space(venv.observation_space, n_skills))
        self.n_skills = self.clock.n_skills

    @property
    def skills(self) -> np.ndarray:
        """The skill each environment is to follow in its next step, shape ``(n_envs,)``."""
        return self.clock.skills.copy()

    def set_skill(self, skill: int | None) -> None:
        """
        :param skill: follow this skill from the next observation on, or ``None`` to draw skills again
        """
        self.clock.set_skill(skill)

    def seed(self, seed: int | None = None) -> list[int | None]:  # type: ignore[override]
        self.clock.seed(seed)
        return self.venv.seed(seed)  # type: ignore[return-value]

    def reset(self) -> np.ndarray:
        observations = self.venv.reset()
        self.clock.reset()
        return self._append(observations, self.clock.skills)

    def step_wait(self) -> VecEnvStepReturn:
        observations, rewards, dones, infos = self.venv.step_wait()
        followed = self.clock.skills.copy()
        self.clock.tick(dones)
        for idx, info in enumerate(infos):
            info["skill"] = int(followed[idx])
            if "terminal_observation" in info:
                info["terminal_observation"] = self._append(info["terminal_observation"], followed[idx])
        return self._append(observations, self.clock.skills), rewards, dones, infos

    def _append(self, observations: object, skills: np.ndarray) -> np.ndarray:
        return append_skill(np.asarray(observations), skills, self.n_skills)


def add_skill_observation(
    env: VecEnv,
    n_skills: int,
    skill_duration: int | None,
    skill: int | None = None,
    order: str = "random",
) -> VecEnv:
    """
    Wrap a vectorized environment with :class:`VecSkillObservation`, unless it is wrapped already.

    :param env: vectorized environment, with or without skill observations
    :param n_skills: number of skills
    :param skill_duration: see :class:`VecSkillObservation`
    :param skill: see :class:`VecSkillObservation`
    :param order: see :class:`VecSkillObservation`
    :return: an environment with skill observations
    :raises ValueError: if it is wrapped for another number of skills, or changed after the skill was appended
    """
    wrapper = unwrap_vec_wrapper(env, VecSkillObservation)
    if wrapper is None:
        return VecSkillObservation(env, n_skills, skill_duration, skill, order)
    if wrapper.n_skills != n_skills:
        raise ValueError(
            f"The environment is wrapped for {wrapper.n_skills} skills, the model has {n_skills}: pass the environment "
            f"without VecSkillObservation (the model adds it), or wrap it with n_skills={n_skills}."
        )
    outer: VecEnv = env
    while outer is not wrapper:
        if isinstance(outer, VecNormalize):
            raise ValueError(
                "VecNormalize around VecSkillObservation would normalise the one-hot skill: normalise first, "
                "VecSkillObservation(VecNormalize(env), n_skills), or pass VecNormalize(env) alone."
            )
        assert hasattr(outer, "venv")
        outer = outer.venv
    if env.observation_space != wrapper.observation_space:
        raise ValueError(
            f"A wrapper around VecSkillObservation changes the observation space to {env.observation_space}: "
            "apply it before VecSkillObservation, or pass the environment without VecSkillObservation (the model adds it)."
        )
    return env


def normalize_like_training(env: VecEnv, statistics: VecNormalize | None) -> VecEnv:
    """
    Let a model see the observations of other environments as it saw those of training. The statistics of training are shared,
    so that they are always the latest, and never changed.

    :param env: environments without skill observations, with a ``VecNormalize`` of their own (which is changed) or without
    :param statistics: ``VecNormalize`` of training, ``None`` if there was none
    :return: the environments, normalised
    :raises ValueError: if the statistics are of other observations
    """
    normalizer = unwrap_vec_normalize(env)
    if normalizer is None:
        if statistics is None:
            return env
        env = normalizer = VecNormalize(env, norm_reward=False)
    normalizer.training = False
    normalizer.norm_obs = statistics is not None and statistics.norm_obs
    if statistics is not None and statistics.norm_obs:
        if normalizer.observation_space.shape != statistics.observation_space.shape:
            raise ValueError(
                f"The statistics of VecNormalize are of observations of shape {statistics.observation_space.shape}, those to "
                f"normalise are of shape {normalizer.observation_space.shape}: pass environments wrapped as those of training."
            )
        normalizer.obs_rms = statistics.obs_rms
        normalizer.clip_obs, normalizer.epsilon = statistics.clip_obs, statistics.epsilon
    return env

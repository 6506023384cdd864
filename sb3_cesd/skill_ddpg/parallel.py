"""Learning in a thread, in parallel to the environments."""

import io
import warnings
from threading import Thread
from types import TracebackType

from stable_baselines3.common.logger import Logger

from sb3_cesd.common.logging import LOGGED
from sb3_cesd.common.rng import preserve_random_state
from sb3_cesd.skill_ddpg.skill_ddpg import SkillDDPG


class LearnerThread:
    """
    Learns with a copy of a model in a thread, while the model acts and fills the replay buffer that both share. After each
    round, the parameters are copied back to the model.

    :param model: a model in ``learn``; its own updates are switched off until :meth:`finish`, which is called at the latest
        when ``learn`` ends, for whatever reason
    :param gradient_steps: number of updates per round
    """

    def __init__(self, model: SkillDDPG, gradient_steps: int) -> None:
        self.model = model
        self.gradient_steps = gradient_steps
        saved = io.BytesIO()
        model.save(saved)
        saved.seek(0)
        # It shares the buffer of the model and needs no room of its own
        with preserve_random_state():  # a model that has not learned seeds the generators when it is loaded
            self.learner = type(model).load(saved, device=model.device, buffer_size=1)
        # The model writes its own meanwhile
        self.learner.set_logger(Logger(None, []))
        self.learner.replay_buffer = model.replay_buffer
        self.learner._vec_normalize_env = model._vec_normalize_env
        self.thread: Thread | None = None
        self.error: BaseException | None = None
        model.train = lambda *args, **kwargs: None  # type: ignore[method-assign]
        model.until_learned.push(self._finish_after)

    def start_next_round(self) -> None:
        """
        If the last round is over, copy its parameters to the model and start another; otherwise do nothing.

        :raises BaseException: the error of the last round, if it failed
        """
        if self.thread is not None and self.thread.is_alive():
            return
        self._bring_back()
        if self.model.num_timesteps > self.model.learning_starts:
            self.learner._current_progress_remaining = self.model._current_progress_remaining
            self.learner.num_timesteps = self.model.num_timesteps
            self._follow_model()
            self.thread = Thread(target=self._learn, daemon=True)
            self.thread.start()

    def finish(self) -> None:
        """
        Wait for the round, copy its parameters to the model, and let it learn by itself again. A second call does nothing.

        :raises BaseException: the error of the round, if it failed
        """
        vars(self.model).pop("train", None)
        if self.thread is not None:
            self.thread.join()
        self._bring_back()

    def _finish_after(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        try:
            self.finish()
        except BaseException as another:
            if error is None:
                raise
            # The error that ended training is raised
            warnings.warn(f"The thread that learns failed as well: {type(another).__name__}: {another}", stacklevel=2)

    def _follow_model(self) -> None:
        """Pass the skill that learns the task on to the learner, once the model has chosen it in its warm-up."""
        self.learner.skill_turns = None
        # A captured graph reads the tensor that it was captured with
        if self.learner.skill != self.model.skill:
            self.learner._follow(self.model.skill)

    def _learn(self) -> None:
        try:
            self.learner.train(self.gradient_steps, self.learner.batch_size)
        except BaseException as error:
            self.error = error

    def _bring_back(self) -> None:
        if self.thread is None:
            return
        self.thread = None
        # After an error as well: what was learned until then is finite
        self.model.set_parameters(self.learner.get_parameters(), device=self.model.device)  # type: ignore[arg-type]
        self.model._n_updates, self.model.n_skipped_steps = self.learner._n_updates, self.learner.n_skipped_steps
        self.learner._mean_logs.flush(self.learner.logger)
        for name in LOGGED:
            getattr(self.model.logger, name).update(getattr(self.learner.logger, name))
        self.learner.logger.dump()
        error, self.error = self.error, None
        if error is not None:
            raise error

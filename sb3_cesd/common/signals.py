"""Handling of Ctrl-C and SIGTERM, which precedes the preemption of machines, as an orderly end of training."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv

#: Signals that ask a program to end
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class DeferredSignals:
    """Signals that are deferred until the program can end in an orderly way."""

    def __init__(self) -> None:
        #: The received signal, ``None`` for none
        self.received: int | None = None

    def deliver(self) -> None:
        """
        End the program if a signal was received.

        :raises KeyboardInterrupt: after Ctrl-C
        :raises SystemExit: after another signal, with the exit code that shells assign to it (143 for SIGTERM)
        """
        number, self.received = self.received, None
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        if number is not None:
            sys.exit(128 + number)

    def handle(self, number: int, frame: FrameType | None) -> None:
        """
        Record a signal; a second one is not deferred.

        :param number: the signal
        :param frame: not used
        """
        is_second = self.received is not None
        self.received = number
        if is_second:
            self.deliver()


@contextmanager
def deferred_signals() -> Iterator[DeferredSignals]:
    """
    Defer Ctrl-C and SIGTERM until they are delivered, at the latest when the context ends. Python handles signals in the main
    thread; in another one nothing is deferred.

    :return: the signals received meanwhile
    """
    signals = DeferredSignals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    before = {number: signal.signal(number, signals.handle) for number in SIGNALS}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    signals.deliver()


@contextmanager
def delivered_if_workers_end(signals: DeferredSignals, env: VecEnv) -> Iterator[None]:
    """
    Deliver a deferred signal if it has also ended the processes of environments, as those of a terminal do: nothing can go on.

    :param signals: the deferred signals
    :param env: environments, possibly of ``SubprocVecEnv``
    :return: context in which they are stepped
    :raises KeyboardInterrupt: after Ctrl-C
    :raises SystemExit: after another signal
    """
    try:
        yield
    except (EOFError, ConnectionError):
        if signals.received is not None and isinstance(env.unwrapped, SubprocVecEnv):
            # Nobody is left to be told to close
            env.unwrapped.closed = True
            signals.deliver()
        raise

"""Ctrl-C and SIGTERM, the signal by which machines are taken back, as an orderly end of training."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: What asks a program to end
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class DeferredSignals:
    """Signals that wait until the program can end in good order."""

    def __init__(self) -> None:
        #: The signal that came, ``None`` for none
        self.received: int | None = None

    def deliver(self) -> None:
        """
        End the program if a signal came.

        :raises KeyboardInterrupt: after Ctrl-C
        :raises SystemExit: after another signal, with the exit code that shells give to it (143 for SIGTERM)
        """
        number, self.received = self.received, None
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        if number is not None:
            sys.exit(128 + number)

    def handle(self, number: int, frame: FrameType | None) -> None:
        """
        Note a signal; a second one does not wait.

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
    Let Ctrl-C and SIGTERM wait until they are delivered, at the latest until the context ends. Python handles signals in the
    main thread; in another one nothing is deferred.

    :return: what came meanwhile
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

"""Run a call in a thread. Ctrl-C and time limits can then end the wait for its result."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

_NAME = "sklearn_rankcal solver"
#: Seconds that the interpreter waits at exit for abandoned calls. A solver with a time limit ends
#: at once. An interrupted solver without a limit may take minutes.
_SECONDS_AT_EXIT = 5.0


def call_in_thread(call: Callable[[], Any], give_up: Callable[[], bool]) -> Any:
    """Return the result of a call, or None as soon as ``give_up()`` is true.

    HiGHS takes minutes for a large linear program and ignores signals. While it runs in another
    thread, this thread can raise KeyboardInterrupt, or continue when the time is up. The other
    thread ends by itself. SciPy before 1.15 holds Python's lock while HiGHS runs, and this thread
    must wait.
    """
    answer: list[Any] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            answer.append(call())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=copy_context().run, args=(work,), name=_NAME, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.05)  # with a timeout, because no signal interrupts an endless join on Windows
        if thread.is_alive() and give_up():
            return None
    if failure:
        raise failure[0]
    return answer[0]


@atexit.register
def _wait_for_calls() -> None:
    """Wait for running calls. The process would abort if one returned after its end."""
    deadline = time.monotonic() + _SECONDS_AT_EXIT
    for thread in threading.enumerate():
        if thread.name == _NAME:
            thread.join(max(0.0, deadline - time.monotonic()))

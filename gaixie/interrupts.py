"""Ctrl-C and SIGTERM end a command with one line on standard error, and exit code 130 or 143.

Before the main of a script begins, and after it has ended, a signal ends the process at once: an
import takes an exception for an error of its own, and the end of the interpreter prints its trace.
While main works, a signal is an exception, so that what is under way is put in order.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

WORDS: dict[int, str] = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
"""What the last line says of each signal; the exit code is 128 and the signal's number."""

OURS: set[Any] = {signal.default_int_handler, signal.SIG_DFL}
"""Handlers that may be replaced: Python's own, and those of this module."""

received: list[int] = []
"""The signals that came while main worked."""

GRACE_SECONDS = 1.0
"""How long an exception may take to whoever clears up."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C. Where KeyboardInterrupt itself passes through C code, Python kills itself at its
    exit, although somebody handled it."""


class Terminated(KeyboardInterrupt):
    """SIGTERM."""


def name_of_script() -> str | None:
    """Returns the name of the script of this package that the process runs, or None."""
    if sys.argv[:1] == ["-m"]:  # Python imports its package before it
        module = sys.orig_argv[sys.orig_argv.index("-m") + 1].split(".")
        return module[2] if module[0] == "gaixie" and len(module) == 3 else None
    path = getattr(sys.modules["__main__"], "__file__", None) or ""
    folder, name = os.path.split(os.path.realpath(path))
    room = os.path.join(os.path.dirname(__file__), os.path.basename(folder))
    is_ours = name == "gaixie" or os.path.realpath(room) == folder
    return os.path.splitext(name)[0] if is_ours else None


def tells() -> bool:
    """Whether this process says that a signal ended it. One of a command's processes does."""
    return os.environ.get("RANK", "0") == "0"


def end_at_once() -> None:
    """Has a signal end the process from here on, until the interpreter clears up after itself."""
    _handle(_end)
    atexit.register(_handle, signal.SIG_IGN)  # the first to register is the last to be called


def of(error: BaseException | None) -> int | None:
    """Returns the signal behind an error, or None.

    The error is often another one: a library makes its own of it, or fails while it clears up.
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    if error is None:
        return received[0] if received else None
    return signal.SIGTERM if isinstance(error, Terminated) else signal.SIGINT


def as_exceptions(main: Callable[[], int]) -> int:
    """Returns what main returns. While it works, signals that nobody else handles are exceptions.

    After it, a signal ends a script at once, with the exit code that main returned.
    """
    received.clear()
    is_script = signal.getsignal(signal.SIGINT) is _end or signal.getsignal(signal.SIGTERM) is _end
    hooks = sys.unraisablehook, threading.excepthook
    before = _handle(_raise)

    def unraisable(fault: sys.UnraisableHookArgs) -> None:
        """A finalizer cannot pass an interrupt on, so it is sent again."""
        if isinstance(fault.exc_value, KeyboardInterrupt) and received:
            threading.Timer(0.01, os.kill, (os.getpid(), received.pop())).start()
        elif not received:
            hooks[0](fault)

    sys.unraisablehook = unraisable
    threading.excepthook = lambda fault: None if received else hooks[1](fault)
    try:
        code = main()
    except BaseException:
        is_script = False
        raise
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is _raise:
                signal.signal(number, handler)
        if not is_script:
            sys.unraisablehook, threading.excepthook = hooks
    if is_script:
        _handle(lambda *_: os._exit(code))
    return code


def _handle(handler: Callable[[int, FrameType | None], Any] | signal.Handlers) -> dict[int, Any]:
    """Sets a handler where nobody else has one. Returns signal -> the handler before."""
    if callable(handler):
        OURS.add(handler)
    before: dict[int, Any] = {}
    for number in WORDS:
        if (old := signal.getsignal(number)) in OURS:
            try:
                signal.signal(number, handler)
            except ValueError:  # in a thread that is not the main one
                break
            before[number] = old
    return before


def _end(number: int, frame: FrameType | None, behind: str = "; nothing was done") -> None:
    if tells():
        line = f"{name_of_script()}: {WORDS[number]}{behind}\n"
        os.write(2, line.encode())
    os._exit(128 + number)


def _raise(number: int, frame: FrameType | None) -> None:
    if received and name_of_script():  # told twice: what clears up is stuck
        _end(number, frame, "")
    received.append(number)
    threading.Thread(target=_insist, args=(number,), daemon=True).start()
    raise Terminated if number == signal.SIGTERM else Interrupted


def _insist(number: int) -> None:
    """Sends a signal again whose exception was lost on its way: not all code of a library that
    catches everything passes an interrupt on."""
    while True:
        time.sleep(GRACE_SECONDS)
        if signal.getsignal(number) is not _raise or not received:
            return
        here: Any = threading.main_thread().ident
        error: Any = sys._current_exceptions().get(here)
        error = error[1] if isinstance(error, tuple) else error  # Python 3.11
        while error is not None and not isinstance(error, KeyboardInterrupt):
            error = error.__context__
        if error is None:  # nothing clears up behind it
            received.clear()
            os.kill(os.getpid(), number)
            return


def _in_child() -> None:
    """A child that is forked ends without a word."""
    for number in WORDS:
        if signal.getsignal(number) in OURS:
            signal.signal(number, signal.SIG_DFL)


os.register_at_fork(after_in_child=_in_child)

"""End of a command by Ctrl-C, within seconds and with one sentence on the results kept."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator

#: Exit status of an interrupted command, as in shells.
INTERRUPTED = 128 + signal.SIGINT
#: Seconds in which a command can end by itself. A compiler does not react, and files are always
#: complete, so the command is then ended from outside.
GRACE = 3.0
#: Sentence of a command without one of its own.
NOTHING = "interrupted; nothing was written"

_sentences: list[Callable[[], str]] = []
_said = threading.Event()


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with one sentence on the results kept."""


@contextlib.contextmanager
def kept(sentence: Callable[[], str]) -> Iterator[None]:
    """Block that Ctrl-C ends with the text of ``sentence()`` on the results kept."""
    _sentences.append(sentence)
    try:
        yield
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise Interrupted(sentence()) from None
    finally:
        _sentences.pop()


def say(error: KeyboardInterrupt) -> None:
    """Print the sentence of an interruption."""
    _said.set()
    print(f"jfric: {error.args[0] if error.args else NOTHING}", file=sys.stderr, flush=True)


def end_within_seconds() -> None:
    """Make Ctrl-C end the process even in a compiler or a compiled loop, which Python cannot
    stop."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)

    def wait() -> None:
        while os.read(read, 1) != bytes([signal.SIGINT]):
            pass
        # The main thread may be about to print the sentence and end the process.
        _said.wait(GRACE)
        if not _said.is_set():
            if sys.stderr.isatty():
                sys.stderr.write("\x1b[?25h\n")  # show the cursor again
            sentence = _sentences[-1]() if _sentences else NOTHING
            say(KeyboardInterrupt(sentence))
        else:
            threading.Event().wait(GRACE)
        os._exit(INTERRUPTED)

    threading.Thread(target=wait, daemon=True).start()

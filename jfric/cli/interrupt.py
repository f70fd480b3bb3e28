"""Ctrl-C ends a command in one sentence that says what was kept, and within seconds."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator

#: Exit status of an interrupted command, as shells have it.
INTERRUPTED = 128 + signal.SIGINT
#: Seconds that a command has to end by itself. A compiler does not listen, and files are whole at
#: any time: it is then ended from outside.
GRACE = 3.0
#: What a command that says nothing of its own keeps.
NOTHING = "interrupted; nothing was written"

_sentences: list[Callable[[], str]] = []
_said = threading.Event()


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with what was kept in one sentence."""


@contextlib.contextmanager
def kept(sentence: Callable[[], str]) -> Iterator[None]:
    """Block that Ctrl-C ends with the text of ``sentence()``, which says what was kept."""
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
    """From here on Ctrl-C ends the process even while it is inside a compiler or a compiled loop,
    where Python does not notice."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)

    def wait() -> None:
        while os.read(read, 1) != bytes([signal.SIGINT]):
            pass
        # The main thread may be about to say and end it all.
        _said.wait(GRACE)
        if not _said.is_set():
            if sys.stderr.isatty():
                sys.stderr.write("\x1b[?25h\n")  # the cursor, which a bar hides
            sentence = _sentences[-1]() if _sentences else NOTHING
            say(KeyboardInterrupt(sentence))
        else:
            threading.Event().wait(GRACE)
        os._exit(INTERRUPTED)

    threading.Thread(target=wait, daemon=True).start()

"""Pool of processes that end with their parent and ignore Ctrl-C."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any


@contextmanager
def processes(
    number: int, begin: Callable[..., None], *about: Any
) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with the block, even during their work; each starts with ``begin``."""
    context = multiprocessing.get_context("spawn")  # jax has threads, which a fork would lose
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(number, context, initializer=_begin, initargs=(begin, about))
    try:
        yield pool
        pool.shutdown()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise


def _begin(begin: Callable[..., None], about: tuple[Any, ...]) -> None:
    # Ctrl-C is handled by the parent process; this process ends when the parent ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    begin(*about)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def submitted(pool: ProcessPoolExecutor, work: Callable[..., Any], *arguments: Any) -> Future:
    """A job for a process, which may start here and ignores Ctrl-C even while it imports."""
    with _interrupted_afterwards():
        if not hasattr(signal, "pthread_sigmask"):
            return pool.submit(work, *arguments)
        # New processes inherit blocked signals.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return pool.submit(work, *arguments)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _interrupted_afterwards() -> Iterator[None]:
    """Block after which Ctrl-C arrives. Blocking the signal is not enough: another thread takes it,
    and Python passes it to this thread between the start of a process and the data for it."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: arrived.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if arrived.is_set():
            signal.raise_signal(signal.SIGINT)

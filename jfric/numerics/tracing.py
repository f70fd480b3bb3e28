"""Tracing of programs: for which platform, without garbage collection meanwhile, and with which
remarks."""

from __future__ import annotations

import contextlib
import functools
import gc
import threading
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

#: Platform for which programs are traced, if not JAX's own, or :data:`KERNELS`. JAX keeps the
#: programs of each apart.
tracing_for = jax.make_user_context(default_value=None)

#: Kernels of scalars: they need no form that is specific to a platform.
KERNELS = "kernels"

_pauses = threading.Lock()
_paused = 0


def traced_for() -> str:
    """Platform (``"cpu"``, ``"cuda"``, ...) whose form of a computation is to be traced.

    All forms are correct on all platforms. Because one is chosen here the others are not traced at
    all. ``jax.lax.platform_dependent`` would trace them: a third of the operations of a small
    program.
    """
    if tracing_for.value is not None:
        return tracing_for.value
    device = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
    return jax.default_backend() if device is None else getattr(device, "platform", str(device))


@contextlib.contextmanager
def collecting_later() -> Iterator[None]:
    """Context in which Python does not search for reference cycles.

    Tracing makes millions of objects and next to no cycles; the search takes a quarter of its time.
    """
    global _paused
    with _pauses:
        mine = _paused > 0 or gc.isenabled()
        if mine:
            gc.disable()
            _paused += 1
    try:
        yield
    finally:
        if mine:
            with _pauses:
                _paused -= 1
                if not _paused:
                    gc.enable()


def is_traced(arguments: Any) -> bool:
    """Whether a call is traced as a part of another program."""
    # The constant is traced if the call is; outside of a trace nothing is compiled for it.
    leaves = jax.tree.leaves((arguments, jax.lax.stop_gradient(np.zeros(()))))
    return any(isinstance(x, Tracer) for x in leaves)


_remarks: ContextVar[list[str] | None] = ContextVar("remarks", default=None)


@contextlib.contextmanager
def remarks_of_tracing() -> Iterator[list[str]]:
    """Context with a list to which :func:`remark` adds."""
    found: list[str] = []
    token = _remarks.set(found)
    try:
        yield found
    finally:
        _remarks.reset(token)


def remark(text: str) -> None:
    """Warn about the program that is traced; later runs without tracing repeat the warning."""
    said = _remarks.get()
    if said is not None:
        said.append(text)
    warn_once(text)


@functools.cache
def warn_once(text: str) -> None:
    """Warn with this ``text``, once in a process."""
    warnings.warn(text, stacklevel=3)

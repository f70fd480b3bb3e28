"""Paths that are followed side by side: what they all wait for is computed in one batch."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, PartitionSpec

from jfric.periodic.shooting import Shooting
from jfric.solvers.simulation import call_compiled


class Stopped(RuntimeError):
    """The others ended while a path waited."""


class Lockstep:
    """Programs of ``count`` paths, each in a thread of its own, called together.

    A path that calls a program waits until every other one waits as well; then the program that
    most of them wait for runs once for all of these. Its batch has always room for ``width``, so
    that it is compiled once; unused rows repeat the first.
    """

    def __init__(self, count: int, width: int):
        devices = len(jax.local_devices())
        self._width = width if width < devices else -(-width // devices) * devices
        self._live = count
        self._condition = threading.Condition()
        self._requests: dict[int, tuple[Any, ...]] = {}
        self._answers: dict[int, Any] = {}
        self._stopped = False

    def __call__(self, program: Callable[..., Any], shooting: Shooting, *numbers) -> Any:
        own = threading.get_ident()
        with self._condition:
            self._requests[own] = (program, shooting, numbers)
            self._run_if_all_wait()
            while own not in self._answers:
                if self._stopped:
                    raise Stopped
                self._condition.wait()
            answer = self._answers.pop(own)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def leave(self) -> None:
        """One path has ended."""
        with self._condition:
            self._live -= 1
            self._run_if_all_wait()

    def stop(self) -> None:
        """Let every path that waits end."""
        with self._condition:
            self._stopped = True
            self._condition.notify_all()

    def _run_if_all_wait(self) -> None:
        if not self._requests or len(self._requests) < self._live or self._stopped:
            return
        programs = Counter(request[0] for request in self._requests.values())
        program = programs.most_common(1)[0][0]
        chosen = [own for own, request in self._requests.items() if request[0] is program]
        taken = [self._requests.pop(own) for own in chosen]
        try:
            answers = self._together(program, taken)
        except Exception as error:  # each of those that wait is told
            answers = [error] * len(taken)
        self._answers |= dict(zip(chosen, answers, strict=True))
        self._condition.notify_all()

    def _together(self, program, taken) -> list[Any]:
        shooting = taken[0][1]
        rows = [numbers for _, _, numbers in taken]
        rows += rows[:1] * (self._width - len(rows))
        # Stacked on the host: a program for each count would take long to compile.
        stacked = jax.tree.map(
            lambda *x: jnp.asarray(np.stack([np.asarray(one) for one in x])), *rows
        )
        found = call_compiled(_batch, shooting.solver, None, program, shooting, stacked)
        found = jax.tree.map(np.asarray, found)
        return [jax.tree.map(lambda x, i=i: x[i], found) for i in range(len(taken))]


def _batch(solver, end, program, shooting, stacked):
    def share(stacked):
        return jax.vmap(lambda numbers: program(solver, end, shooting, *numbers))(stacked)

    devices = tuple(jax.local_devices())
    width = jax.tree.leaves(stacked)[0].shape[0]
    if len(devices) > 1 and width % len(devices) == 0:
        # Each device stops its loops alone.
        mesh = Mesh(np.asarray(devices), ("paths",), axis_types=(AxisType.Auto,))
        spec = PartitionSpec("paths")
        share = jax.shard_map(share, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    return share(stacked)


def side_by_side(tasks: list[Callable[[Callable[..., Any]], Any]], width: int) -> list[Any]:
    """Results of all tasks; each task is given the function that calls programs. ``width``: size of
    the batches, no less than the number of tasks.

    The first error that a task raises is raised here once all have ended; an interruption once
    they have, or 5 s later.
    """
    lockstep, exact = Lockstep(len(tasks), width), bool(jax.config.read("jax_enable_x64"))
    results: list[Any] = [None] * len(tasks)
    errors: list[BaseException] = []

    def work(i: int) -> None:
        try:
            with jax.enable_x64(exact):
                results[i] = tasks[i](lockstep)
        except Stopped:
            pass
        except BaseException as error:  # raised in the thread that waits for all
            errors.append(error)
            lockstep.stop()
        finally:
            lockstep.leave()

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(len(tasks))]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)
    except KeyboardInterrupt:
        lockstep.stop()
        for thread in threads:
            thread.join(5.0)
        raise
    if errors:
        raise errors[0]
    return results

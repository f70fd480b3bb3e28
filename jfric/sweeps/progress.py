"""A progress bar with the rate and the time left."""

from __future__ import annotations

import sys
import time
from types import TracebackType


class Progress:
    """What is done of all, how much per second, and time left, on standard error.

    ``shown=None``: shown on a terminal, silent elsewhere. ``stage``: named before any is done.
    """

    def __init__(self, total: int, shown: bool | None = None, stage: str = "compiling"):
        self._total, self._done, self._stage = total, 0, stage
        self._first: tuple[float, int] | None = None
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._bar = None
        self._start = time.perf_counter()

    def __enter__(self) -> Progress:
        if self._shown:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
                TextColumn("{task.fields[rate]}"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(self._stage, total=self._total, rate="")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def skip(self, trajectories: int) -> None:
        """Some trajectories were there already."""
        self._done += trajectories
        self._update("compiling")

    def advance(self, trajectories: int) -> None:
        """Some more trajectories are finished."""
        now = time.perf_counter()
        if self._first is None:
            # The first trajectories waited for the compiler: the rate is that of the others.
            self._first = now, self._done + trajectories
        self._done += trajectories
        rate = (self._done - self._first[1]) / max(now - self._first[0], 1e-9)
        self._update("sweep", f"{rate:,.0f}/s" if rate else "")

    def show(self, done: int, total: int, stage: str) -> None:
        """Set what is done of all, in a stage with this name."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total, description=stage, rate="")

    def _update(self, stage: str, rate: str = "") -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, description=stage, rate=rate)

    @property
    def seconds(self) -> float:
        """Time since the beginning."""
        return time.perf_counter() - self._start

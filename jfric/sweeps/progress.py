"""Progress bar with the rate and the remaining time."""

from __future__ import annotations

import sys
import time
from types import TracebackType


class Progress:
    """Progress bar on standard error: finished and total work, rate, and remaining time.

    ``shown=None``: shown on a terminal, silent elsewhere. ``stage``: name shown before the first
    work is done.
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
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[count]}"),
                TextColumn("{task.fields[rate]}"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(
                self._stage, total=self._total or None, rate="", count=self._count
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(
        self,
        done: int,
        total: int,
        stage: str,
        rate: str | None = None,
        counted: int | None = None,
    ) -> None:
        """Set the finished and total work of the stage with this name; ``rate``: text to show in
        place of the computed rate, which is that of the things ``counted``, by default of the
        work."""
        if done < self._done:  # another stage, which begins at zero
            self._first = None
        self._done, self._total = done, total
        seen = done if counted is None else counted
        self._update(stage, self._rate(seen) if rate is None else rate)

    def _rate(self, done: int) -> str:
        now = time.perf_counter()
        if not done:
            return ""
        if self._first is None:
            # The first trajectories waited for the compiler: the rate is that of the others.
            self._first = now, done
        rate = (done - self._first[1]) / max(now - self._first[0], 1e-9)
        return f"{rate:,.0f}/s" if rate >= 10.0 else f"{rate:.2g}/s" if rate else ""

    def _update(self, stage: str, rate: str = "") -> None:
        if self._bar is not None:
            self._bar.update(
                self._task,
                completed=self._done,
                total=self._total or None,
                description=stage,
                rate=rate,
                count=self._count,
            )

    @property
    def _count(self) -> str:
        return f"{self._done:,}/{self._total:,}" if self._total else ""

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.perf_counter() - self._start

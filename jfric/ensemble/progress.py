"""A progress bar with the rate and the time left."""

from __future__ import annotations

import sys
import time
from types import TracebackType


class Progress:
    """Lanes done, lanes per second and time left, on standard error; silent where not shown.

    ``shown=None``: shown on a terminal.
    """

    def __init__(self, total: int, shown: bool | None = None):
        self._total, self._done = total, 0
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
            self._task = self._bar.add_task("compiling", total=self._total, rate="")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def skip(self, lanes: int) -> None:
        """Some lanes were there already."""
        self._done += lanes
        self._update("compiling")

    def advance(self, lanes: int) -> None:
        """Some more lanes are finished."""
        now = time.perf_counter()
        if self._first is None:
            # The first lanes waited for the compiler: the rate is that of the others.
            self._first = now, self._done + lanes
        self._done += lanes
        rate = (self._done - self._first[1]) / max(now - self._first[0], 1e-9)
        self._update("sweep", f"{rate:,.0f}/s" if rate else "")

    def _update(self, stage: str, rate: str = "") -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, description=stage, rate=rate)

    @property
    def seconds(self) -> float:
        """Time since the beginning."""
        return time.perf_counter() - self._start

"""Checks in TOML files as tests of pytest: ``pytest --jfric my_systems/``.

Each ``[[check]]`` of a file is a test, with one more for the trajectory as a whole. A module of its
own, for pytest imports its plugins at every start: jfric, and JAX with it, is only imported where
files are to be collected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from jfric.verification.result import Result

#: Name of the test of what is not one check: the trajectory ended, nothing was refused.
WHOLE = "trajectory"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--jfric`` and ``--jfric-flow``."""
    group = parser.getgroup("jfric", "checks of friction and impact systems in TOML files")
    group.addoption(
        "--jfric", action="store_true", help="collect every [[check]] of jfric's TOML files"
    )
    group.addoption(
        "--jfric-flow",
        metavar="NAME",
        default=None,
        help="run with this flow only: exact or runge-kutta (see jfric verify)",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take TOML files that hold checks, and those that are named on the command line."""
    if not parent.config.getoption("--jfric") or file_path.suffix != ".toml":
        return None
    named = parent.session.isinitpath(file_path)
    if not named and not _holds_checks(file_path):
        return None
    return SystemFile.from_parent(parent, path=file_path)


def _holds_checks(path: Path) -> bool:
    """Whether the file has checks. One that is no TOML is not ours to judge."""
    import tomllib

    try:
        return isinstance(tomllib.loads(path.read_text(encoding="utf-8")).get("check"), list)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return False


class SystemFile(pytest.File):
    """One file; it is simulated once, when its first test runs."""

    def collect(self) -> Iterator[pytest.Item]:
        from jfric.errors import ProblemError
        from jfric.files.read_toml import load_config
        from jfric.verification.result import label

        try:
            checks = load_config(self.path).checks
        except ProblemError as error:
            raise self.CollectError(str(error)) from None
        if not checks:
            raise self.CollectError(f"{self.path}: found no [[check]], nothing to verify")
        self.names = _numbered(label(check.quantity) for check in checks)
        for name in self.names:
            yield CheckItem.from_parent(self, name=name)
        yield CheckItem.from_parent(self, name=WHOLE)

    def results(self) -> dict[str, list[Result]]:
        """The outcomes by the names of the tests. The precision of other tests stays what it is."""
        if self._results is None:
            import jax

            from jfric.verification.runner import verify

            with jax.enable_x64(True):
                found = verify([self.path], flow=self.config.getoption("--jfric-flow"))
            self._results = {name: [] for name in [*self.names, WHOLE]}
            # What the quantity of an outcome says beside its name stands in brackets behind it.
            for name, result in zip(
                _numbered(r.quantity.partition(" (")[0] for r in found), found, strict=True
            ):
                self._results[name if name in self.names else WHOLE].append(result)
        return self._results

    _results: dict[str, list[Result]] | None = None


def _numbered(names: Iterable[str]) -> list[str]:
    """The names, all different: a second ``u(1)`` becomes ``u(1) #2``."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return found


class CheckItem(pytest.Item):
    """One check: a number beside the one that is expected."""

    def runtest(self) -> None:
        from jfric.errors import ProblemError

        assert isinstance(self.parent, SystemFile)
        try:
            results = self.parent.results()[self.name]
        except ProblemError as error:
            raise CheckFailed(str(error)) from None
        if self.name != WHOLE and not results:
            pytest.skip("not run with this flow")
        wrong = [_sentence(r, self.name) for r in results if not r.passed]
        if wrong:
            raise CheckFailed("\n".join(wrong))

    def repr_failure(self, excinfo: pytest.ExceptionInfo, style: Any = None) -> Any:
        """The sentence alone: nobody needs our stack for a number that is off."""
        if isinstance(excinfo.value, CheckFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.path.name}: {self.name}"


class CheckFailed(Exception):
    """A check that did not pass, in words."""


def _sentence(result: Result, name: str) -> str:
    if name == WHOLE:
        return result.quantity
    lines = [
        f"{result.quantity} = {result.value:.12g}, expected {result.expected:.12g}",
        f"error {result.error:.3g}, allowed {result.tolerance:.3g}  ({result.solver})",
    ]
    return "\n".join([*lines, f"source: {result.source}"] if result.source else lines)

"""Checks on equilibria, limit loads and paths of a system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jfric.errors import ProblemError
from jfric.results.quantity import STATIC_KINDS, Quantity
from jfric.verification.result import Result, each_judged

if TYPE_CHECKING:
    from jfric.files.config import Check, Config
    from jfric.statics.branch import EquilibriumPath


def is_static(check: Check) -> bool:
    """Whether a check is about equilibria, not about a trajectory."""
    return check.quantity.kind in STATIC_KINDS


@dataclass(frozen=True)
class StaticJob:
    """A system and the checks made on its equilibria."""

    case: str
    config: Config
    checks: tuple[Check, ...]


def static_job(case: str, config: Config, checks: Sequence[Check]) -> list[StaticJob]:
    """The job of the static ones among ``checks``, if there are any."""
    chosen = tuple(check for check in checks if is_static(check))
    return [StaticJob(case, config, chosen)] if chosen else []


def static_results(job: StaticJob) -> tuple[StaticValues, list[Result]]:
    """Values of the equilibria of ``job``, and the results of the checks of ``job``."""
    values = StaticValues(job.config)
    return values, each_judged(job.case, "statics", job.checks, values.of)


class StaticValues:
    """Values of quantities; each computation is made once, when it is first asked for."""

    def __init__(self, config: Config):
        self.config = config
        self.known: dict[str, Any] = {}

    def of(self, quantity: Quantity) -> float:
        kind, row = quantity.kind, int(quantity.argument or 1) - 1
        if kind == "equilibrium_count":
            return float(len(self._equilibria()))
        if kind == "continuum_count":
            return float(sum(state["continuum"] for state in self._equilibria()))
        if kind in ("equilibrium", "equilibrium_to"):
            states = self._equilibria()
            if row >= len(states):
                return float("nan")
            suffix = "_to" if kind == "equilibrium_to" else ""
            return self._component(quantity, lambda field: states[row][field + suffix])
        if kind == "limit":
            limit = self._limit()
            if int(limit.status) != 0:
                return float("nan")
            if quantity.name in ("", "parameter"):
                return float(limit.parameter)
            return self._component(quantity, lambda field: getattr(limit, field))
        path = self._path()
        if kind == "branch_count":
            return float(len(path.branches))
        if kind == "fold_count":
            return float(sum(point.kind == "fold" for point in path.special))
        if row >= len(path.special):
            return float("nan")
        point = path.special[row]
        if quantity.name == "parameter":
            return float(point.parameter)
        return self._component(quantity, lambda field: getattr(point, field))

    def _component(self, quantity: Quantity, field: Callable[[str], Any]) -> float:
        problem = self.config.problem
        force, _, contact = quantity.name.partition(".")
        if force not in ("lambda_t", "lambda_n"):
            return float(field("q")[problem.axes.index(quantity.name)])
        names = _contact_names(problem)
        values = np.asarray(field(force))
        return float(values[names[len(names) - values.shape[-1] :].index(contact)])

    def _equilibria(self) -> list[dict[str, Any]]:
        from jfric.statics.all_equilibria import Equilibria, equilibria

        def compute():
            found = equilibria(self.config.problem)
            assert isinstance(found, Equilibria)
            return found.table()

        return self._once("equilibria", compute)

    def _limit(self):
        from jfric.statics.limit_loads import limit_load

        s = self._statics("a limit load")
        return self._once(
            "limit", lambda: limit_load(self.config.problem, s["vary"], s["start"], s["stop"])
        )

    def _path(self) -> EquilibriumPath:
        from jfric.statics.path_tracing import trace

        s = dict(self._statics("a path"))
        ends = s.pop("vary"), s.pop("start"), s.pop("stop")
        return self._once("path", lambda: trace(self.config.problem, *ends, **s))

    def _statics(self, what: str) -> dict[str, Any]:
        if not self.config.statics:
            raise ProblemError(
                f"{self.config.path}: a check asks for {what}; the file needs a table [statics] "
                "with vary, start and stop"
            )
        return dict(self.config.statics)

    def _once(self, key: str, compute: Callable[[], Any]) -> Any:
        if key not in self.known:
            self.known[key] = compute()
        return self.known[key]


def _contact_names(problem) -> tuple[str, ...]:
    import equinox as eqx

    from jfric.system.assembly import assemble

    return eqx.filter_eval_shape(assemble, problem).contact_names

"""Checks on equilibria, limit loads and paths of a system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jfric.errors import ProblemError
from jfric.results.quantity import STATIC_KINDS, Quantity
from jfric.verification.result import Result, each_judged

if TYPE_CHECKING:
    from jfric.files.config import Check, Config
    from jfric.statics.branch import EquilibriumPath
    from jfric.statics.limit_loads import LimitLoad


def is_static(check: Check) -> bool:
    """Whether a check is about equilibria, not about a trajectory."""
    return check.quantity.kind in STATIC_KINDS


@dataclass(frozen=True)
class StaticJob:
    """A system and the checks made on its equilibria."""

    case: str
    config: Config
    checks: tuple[Check, ...]
    label: ClassVar[str] = "statics"


def static_job(case: str, config: Config, checks: Sequence[Check]) -> list[StaticJob]:
    """The job with the static ``checks``, or None if there are none."""
    chosen = tuple(check for check in checks if is_static(check))
    return [StaticJob(case, config, chosen)] if chosen else []


def static_results(job: StaticJob) -> tuple[StaticValues, list[Result]]:
    """Values of the equilibria of ``job``, and the results of the checks of ``job``."""
    values = StaticValues(job.config)
    return values, each_judged(job.case, job.label, job.checks, values.of)


class StaticValues:
    """Values of quantities; equilibria, limit load and path are computed at their first use."""

    def __init__(self, config: Config):
        self.config = config

    def of(self, quantity: Quantity) -> float:
        kind, row = quantity.kind, int(quantity.argument or 1) - 1
        if kind == "equilibrium_count":
            return float(len(self.equilibria))
        if kind == "continuum_count":
            return float(sum(state["continuum"] for state in self.equilibria))
        if kind in ("equilibrium", "equilibrium_to"):
            if row >= len(self.equilibria):
                return float("nan")
            state, suffix = self.equilibria[row], "_to" if kind == "equilibrium_to" else ""
            return self._component(quantity, lambda field: state[field + suffix])
        if kind == "branch_count":
            return float(len(self.path.branches))
        if kind == "fold_count":
            return float(sum(point.kind == "fold" for point in self.path.special))
        if kind == "dead_end_count":
            return float(sum(point.kind == "dead end" for point in self.path.special))
        if kind == "limit":
            found = None if int(self.limit.status) else self.limit
        else:
            found = self.path.special[row] if row < len(self.path.special) else None
        if found is None:
            return float("nan")
        if quantity.name == "parameter" or (kind == "limit" and not quantity.name):
            return float(found.parameter)
        return self._component(quantity, lambda field: getattr(found, field))

    def _component(self, quantity: Quantity, field: Callable[[str], Any]) -> float:
        problem = self.config.problem
        force, _, contact = quantity.name.partition(".")
        if force not in ("lambda_t", "lambda_n"):
            return float(field("q")[problem.axes.index(quantity.name)])
        names = _contact_names(problem)
        values = np.asarray(field(force))
        return float(values[names[len(names) - values.shape[-1] :].index(contact)])

    @cached_property
    def equilibria(self) -> list[dict[str, Any]]:
        """Rows of the table of all equilibria."""
        from jfric.statics.all_equilibria import Equilibria, equilibria

        found = equilibria(self.config.problem)
        assert isinstance(found, Equilibria)
        return found.table()

    @cached_property
    def limit(self) -> LimitLoad:
        """The limit load over the parameter of the table ``[statics]``."""
        from jfric.statics.limit_loads import limit_load

        s = self._statics("a limit load")
        return limit_load(self.config.problem, s["vary"], s["start"], s["stop"])

    @cached_property
    def path(self) -> EquilibriumPath:
        """The path of equilibria described by the table ``[statics]``."""
        from jfric.statics.path_tracing import trace

        s = self._statics("a path")
        return trace(self.config.problem, s.pop("vary"), s.pop("start"), s.pop("stop"), **s)

    def _statics(self, what: str) -> dict[str, Any]:
        if not self.config.statics:
            raise ProblemError(
                f"{self.config.path}: a check asks for {what}; the file needs a table [statics] "
                "with vary, start and stop"
            )
        return dict(self.config.statics)


def _contact_names(problem) -> tuple[str, ...]:
    import equinox as eqx

    from jfric.system.assembly import assemble

    return eqx.filter_eval_shape(assemble, problem).contact_names

"""Which solver a configuration and the command line ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jfric.errors import ProblemError, nearest

if TYPE_CHECKING:
    from jfric.system.problem import Problem

SOLVERS = ("event-driven",)
FLOWS = ("auto", "exact", "runge-kutta")
_FIELDS = ("flow", "rtol", "max_steps", "max_events")


def choose_solver(settings: Mapping[str, Any] | None = None, **overrides: Any) -> tuple[Any, dict]:
    """The solver and its settings by name, from a config's ``[solver]`` and overriding values.

    An override of None leaves the config's value. Raises :class:`ProblemError` for an unknown
    solver or flow.
    """
    from jfric.solvers.event_driven.solver import EventDriven

    given = {k: v for k, v in dict(settings or {}).items() if v is not None}
    given |= {k: v for k, v in overrides.items() if v is not None}
    name = str(given.get("name", SOLVERS[0])).replace("_", "-")
    flow = str(given.get("flow", FLOWS[0])).replace("_", "-")
    if name not in SOLVERS:
        raise ProblemError(
            f"solver: found {name!r}{nearest(name, SOLVERS)}, allowed are {', '.join(SOLVERS)}"
        )
    require_flow(flow)
    rtol = given.get("rtol")
    if rtol is not None and not 0.0 < float(rtol) < 1.0:
        raise ProblemError(f"rtol: found {rtol}, must lie between 0 and 1")
    given["flow"] = flow
    chosen = {k: given[k] for k in _FIELDS if k in given}
    return EventDriven(**chosen), {"name": name, **chosen}


def require_flow(flow: str) -> None:
    """Raise :class:`ProblemError` for an unknown flow."""
    if flow not in FLOWS:
        raise ProblemError(
            f"flow: found {flow!r}{nearest(flow, FLOWS)}, allowed are {', '.join(FLOWS)}"
        )


def resolved_flow(flow: str, problem: Problem) -> str:
    """The flow that ``auto`` stands for: exact where every mode is linear with constant
    coefficients."""
    if flow != "auto":
        return flow
    return "exact" if uses_exact_flow(problem) else "runge-kutta"


def uses_exact_flow(problem: Problem) -> bool:
    """Whether the equations are linear with constant coefficients in every mode."""
    import equinox as eqx

    from jfric.system.mechanics import assemble

    return bool(eqx.filter_eval_shape(assemble, problem).has_linear_modes)

"""Checks on what a system has beside a trajectory: equilibria, limit loads, steady motions, paths
over a parameter, attractors and optima."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from jfric import optima, periodic, statics
from jfric.errors import ProblemError
from jfric.files.config import Check, Config
from jfric.files.solver_choice import SOLVERS, choose_solver
from jfric.results.quantity import (
    MOTION_KINDS,
    OF_OPTIMA,
    OF_ORBITS,
    PERIODIC_KINDS,
    STATIC_KINDS,
    Quantity,
)
from jfric.results.status import Status
from jfric.sweeps.design import SAMPLED, parse_section, parse_vary
from jfric.verification.result import Result, each_judged, whole

if TYPE_CHECKING:
    from jfric.periodic.path import OrbitKind

#: What the jobs of a kind of quantity are called.
LABELS: dict[str, str] = {
    **dict.fromkeys(STATIC_KINDS, "statics"),
    **dict.fromkeys(PERIODIC_KINDS, "periodic"),
    "optimum": "optimise",
}
#: Kinds of special points of a path by their names in a check.
POINT_KINDS: dict[str, OrbitKind] = {
    **{"fold": "fold", "flip": "flip", "torus": "torus", "hopf": "hopf"},
    **{"branch_point": "branch point", "event_change": "event change", "dead_end": "dead end"},
}


def is_static(check: Check) -> bool:
    """Whether a check is about equilibria, not about a trajectory."""
    return check.quantity.kind in STATIC_KINDS


def is_periodic(check: Check) -> bool:
    """Whether a check is about periodic motions, or another computation on its own."""
    return check.quantity.kind in PERIODIC_KINDS


@dataclass(frozen=True)
class SystemJob:
    """A system and the checks made on one of its computations, which ``label`` names."""

    case: str
    config: Config
    checks: tuple[Check, ...]
    label: str


def system_jobs(case: str, config: Config, checks: Sequence[Check]) -> list[SystemJob]:
    """The jobs with those of ``checks`` that are on no trajectory."""
    found: dict[str, list[Check]] = {}
    for check in sorted(checks, key=lambda check: not is_static(check)):
        if check.quantity.kind in LABELS:
            found.setdefault(LABELS[check.quantity.kind], []).append(check)
    return [SystemJob(case, config, tuple(chosen), label) for label, chosen in found.items()]


def system_results(job: SystemJob) -> tuple[SystemValues, list[Result]]:
    """Values of the system of ``job``, and the results of its checks; an orbit that did not
    converge adds a failed result."""
    values = SystemValues(job.config)
    found = each_judged(job.case, job.label, job.checks, values.of)
    orbit = vars(values).get("orbit")
    if orbit is not None and not bool(orbit.converged):
        reason = f"status: {orbit.outcome()}"
        found.append(whole(job.case, job.label, reason, float(orbit.status)))
    return values, found


class SystemValues:
    """Values of quantities; what they are taken from is computed once, at its first use."""

    def __init__(self, config: Config):
        self.config = config
        self.balances: dict[str, periodic.HarmonicBalance] = {}
        self.observed: dict[str, float] = {}

    def of(self, quantity: Quantity) -> float:
        """The value of a quantity; NaN where there is none."""
        return float(_VALUES[quantity.kind](self, quantity))

    def _table(self, name: str, what: str, *keys: str) -> dict[str, Any]:
        """A table of the file that a check on ``what`` needs, with these keys at least."""
        found = dict(getattr(self.config, name))
        if not all(key in found for key in keys):
            needs = " and ".join(filter(None, [", ".join(keys[:-1]), keys[-1]]))
            raise ProblemError(
                f"{self.config.path}: a check asks for {what}; the file needs a table [{name}] "
                f"with {needs}"
            )
        return found

    def _over(self, name: str, what: str) -> tuple[list[Any], dict[str, Any]]:
        """The parameter that a table follows with the ends of its interval, and the rest of it."""
        found = self._table(name, what, "vary", "start", "stop")
        return [found.pop(key) for key in ("vary", "start", "stop")], found

    def _solver(self) -> dict[str, Any]:
        """The solver of the file, where it has settings."""
        settings = self.config.solver
        return {"solver": choose_solver(settings)[0]} if settings else {}

    @cached_property
    def equilibria(self) -> list[dict[str, Any]]:
        """Rows of the table of all equilibria."""
        found = statics.equilibria(self.config.problem)
        assert isinstance(found, statics.Equilibria)
        return found.table()

    @cached_property
    def limit(self) -> statics.LimitLoad:
        """The limit load over the parameter of the table ``[statics]``."""
        return statics.limit_load(self.config.problem, *self._over("statics", "a limit load")[0])

    @cached_property
    def branches(self) -> statics.EquilibriumPath:
        """The path of equilibria described by the table ``[statics]``."""
        ends, more = self._over("statics", "a path")
        return statics.trace(self.config.problem, *ends, **more)

    @cached_property
    def orbit(self) -> periodic.PeriodicOrbit:
        """The periodic motion."""
        return periodic.periodic_orbit(self.config.problem, **orbit_settings(self.config))

    @cached_property
    def path(self) -> periodic.OrbitPath:
        """Path of orbits over the parameter of the table ``[periodic]``."""
        ends, _ = self._over("periodic", "a path of orbits")
        return periodic.continue_orbit(
            self.config.problem, *ends, **orbit_settings(self.config, "state")
        )

    @cached_property
    def response(self) -> periodic.FrequencyResponse:
        """The response described by the table ``[response]``."""
        given = self._table("response", "a response", "load", "start", "stop")
        ends = given["load"], given["start"], given["stop"]
        settings = orbit_settings(self.config, "state", response=True)
        return periodic.frequency_response(self.config.problem, *ends, **settings)

    @cached_property
    def peak(self) -> periodic.ResponsePeak:
        """The largest value of the response."""
        if not self.response.curves[0].complete:
            raise ProblemError(f"{self.config.path}: {self.response.curves[0].outcome}")
        return self.response.peak(self.config.response.get("quantity", self.config.problem.axes[0]))

    @cached_property
    def basins(self) -> periodic.Basins:
        """The basins described by the table ``[basins]``."""
        self._table("basins", "attractors", "plane")
        settings = basin_settings(self.config)
        return periodic.basins(self.config.problem, **settings, **self._solver(), progress=False)

    @cached_property
    def optimum(self) -> optima.Optimum:
        """The optimum described by the table ``[optimise]``."""
        from jfric.optima.optimise import from_table

        settings = from_table(self._table("optimise", "an optimum", "free", "objective"))
        return optima.optimise(self.config.problem, **settings, **self._solver())

    @cached_property
    def sliding(self) -> periodic.SteadySliding:
        """Steady sliding."""
        return periodic.steady_sliding(self.config.problem)

    @cached_property
    def flutter(self) -> periodic.FlutterPath:
        """Eigenvalues over the parameter of the table ``[statics]``."""
        return periodic.flutter(
            self.config.problem, *self._over("statics", "where growth begins")[0]
        )

    def balance(self, kind: str) -> periodic.HarmonicBalance:
        """Harmonic balance at the file's numbers, or for a fold over its parameter."""
        if kind not in self.balances:
            given = self.config.periodic
            ends = self._over("periodic", "a path of orbits")[0] if kind == "balance_fold" else []
            chosen = {"harmonics": given["harmonics"]} if "harmonics" in given else {}
            self.balances[kind] = periodic.harmonic_balance(self.config.problem, *ends, **chosen)
        return self.balances[kind]

    def observe(self, text: str) -> float:
        """An observable over a period, or a signal at its start."""
        if text not in self.observed:
            # The state at the start equals that after a period.
            signal = "(" not in text and text.partition(".")[0] not in MOTION_KINDS
            asked = f"final.{text}" if signal else text
            self.observed[text] = float(self.orbit.observe(asked)[asked])
        return self.observed[text]


def _nth(values: Sequence[Any] | np.ndarray, quantity: Quantity) -> Any:
    """The value with the number of the quantity, from 1; NaN where there are fewer."""
    row = int(quantity.argument or 1) - 1
    return values[row] if row < len(values) else float("nan")


def _component(of: SystemValues, quantity: Quantity, field: Callable[[str], Any]) -> Any:
    """A position or reaction of a state, whose arrays ``field`` gives by name."""
    force, _, contact = quantity.name.partition(".")
    if force not in ("lambda_t", "lambda_n"):
        return field("q")[of.config.problem.axes.index(quantity.name)]
    import equinox as eqx

    from jfric.system.assembly import assemble

    names = eqx.filter_eval_shape(assemble, of.config.problem).contact_names
    values = np.asarray(field(force))
    return values[names[len(names) - values.shape[-1] :].index(contact)]


def _equilibrium(of: SystemValues, quantity: Quantity) -> float:
    state, suffix = _nth(of.equilibria, quantity), quantity.kind.removeprefix("equilibrium")
    if not isinstance(state, dict):
        return state
    return _component(of, quantity, lambda field: state[field + suffix])


def _state(of: SystemValues, quantity: Quantity, found: Any) -> float:
    """A number of a limit load or a special point."""
    if isinstance(found, float):
        return found
    if quantity.name in ("parameter", ""):
        return found.parameter
    return _component(of, quantity, lambda field: getattr(found, field))


def _special_count(kind: str) -> Callable[[SystemValues, Quantity], float]:
    return lambda of, _: sum(point.kind == kind for point in of.branches.special)


def _multiplier(of: SystemValues, quantity: Quantity) -> float:
    chosen = complex(_nth(np.asarray(of.orbit.multipliers), quantity))
    return {"re": chosen.real, "im": chosen.imag}.get(quantity.name, abs(chosen))


def _orbit(of: SystemValues, quantity: Quantity) -> Any:
    """A number of the periodic motion, a harmonic, the time of an event, or an observable."""
    name, argument = quantity.name, quantity.argument
    first, _, rest = name.partition(".")
    if name in OF_ORBITS:
        found: Any = getattr(of.orbit, name)
        return np.asarray(found() if callable(found) else found)
    if first in ("harmonic", "angle"):
        order = int(argument or 0)
        value = of.orbit.harmonics(rest, order)[order]
        return jnp.abs(value) if first == "harmonic" else jnp.angle(value)
    if name == "event_time" and argument is not None:
        times = np.asarray(of.orbit.event_times)
        return _nth(times[: int(of.orbit.event_count)], quantity)
    return of.observe(name if argument is None else f"{name}({argument})")


def _point(of: SystemValues, quantity: Quantity) -> float:
    found = of.path.points(POINT_KINDS[quantity.kind])
    return _nth([point.parameter for point in found], quantity)


def _balance(of: SystemValues, quantity: Quantity) -> float:
    """Value by harmonic balance: an amplitude (half the range, or of a harmonic) or a fold."""
    found = of.balance(quantity.kind)
    if not found.ok.all():
        return float("nan")
    if quantity.kind == "balance_fold":
        return _nth(np.asarray(found.folds), quantity)
    order = None if quantity.argument is None else int(quantity.argument)
    return found.amplitude(quantity.name, order)[0]


def _exponent(of: SystemValues, quantity: Quantity) -> Any:
    """The largest Lyapunov exponent; NaN where the run failed."""
    found = periodic.lyapunov_exponent(
        of.config.problem, **lyapunov_settings(of.config), **of._solver()
    )
    return found.value if int(found.status) == int(Status.OK) else float("nan")


def _basins(of: SystemValues, quantity: Quantity) -> float:
    """The number of attractors, or the share of one of them; NaN where a run failed."""
    shares = [attractor.share for attractor in of.basins.attractors]
    if of.basins.failed:
        return float("nan")
    return len(shares) if quantity.kind == "attractor_count" else _nth(shares, quantity)


def _optimum(of: SystemValues, quantity: Quantity) -> float:
    """A number of the optimum; NaN where the search has not converged to a feasible point."""
    if not of.optimum.converged:
        return float("nan")
    if quantity.name in OF_OPTIMA:
        return getattr(of.optimum, quantity.name)
    if quantity.name not in of.optimum.values:
        raise ProblemError(f"{of.config.path}: optimise.free has no {quantity.name!r}")
    return _nth(np.atleast_1d(of.optimum.values[quantity.name]), quantity)


def _frequency(of: SystemValues, quantity: Quantity) -> float:
    modes = of.sliding.modes() if of.sliding.exists else []
    return _nth([mode["frequency"] for mode in modes], quantity)


#: The value of each kind of quantity.
_VALUES: dict[str, Callable[[SystemValues, Quantity], Any]] = {
    "equilibrium_count": lambda of, _: len(of.equilibria),
    "continuum_count": lambda of, _: sum(state["continuum"] for state in of.equilibria),
    **dict.fromkeys(("equilibrium", "equilibrium_to"), _equilibrium),
    "branch_count": lambda of, _: len(of.branches.branches),
    "fold_count": _special_count("fold"),
    "dead_end_count": _special_count("dead end"),
    "special": lambda of, quantity: _state(of, quantity, _nth(of.branches.special, quantity)),
    "limit": lambda of, q: _state(of, q, float("nan") if int(of.limit.status) else of.limit),
    "orbit": _orbit,
    "multiplier": _multiplier,
    **dict.fromkeys(POINT_KINDS, _point),
    **dict.fromkeys(("balance", "balance_fold"), _balance),
    "response": lambda of, q: of.peak.value if q.name == "peak" else of.peak.frequency,
    "lyapunov": _exponent,
    **dict.fromkeys(("attractor_count", "basin_share"), _basins),
    "optimum": _optimum,
    "growth": lambda of, _: of.sliding.growth,
    "mode_frequency": _frequency,
    "onset": lambda of, q: _nth([onset.parameter for onset in of.flutter.onsets], q),
}


def basin_settings(config: Config, own: Container[str] = ()) -> dict[str, Any]:
    """Settings of :func:`jfric.basins` from the table ``[basins]``; ``own``: those that are options
    of a command, for messages."""
    given = dict(config.basins)
    sampled = given.get("method", "grid") in SAMPLED
    option = "--plane" if "plane" in own else "basins.plane"
    given["plane"] = parse_vary(config.problem, given["plane"], sampled=sampled, option=option)
    return _with_section(given, "basins", "section", own)


def lyapunov_settings(config: Config, own: Container[str] = ()) -> dict[str, Any]:
    """Settings of :func:`jfric.lyapunov_exponent` from the table ``[lyapunov]``; ``own``: those
    that are options of a command, for messages."""
    return _with_section(dict(config.lyapunov), "lyapunov", "interval", own)


def _with_section(given: dict[str, Any], table: str, name: str, own: Container[str]) -> dict:
    if name in given:
        option = f"--{name}" if name in own else f"{table}.{name}"
        given[name] = parse_section(given[name], option)
    return given


def orbit_settings(
    config: Config, start: str = "start", *, response: bool = False
) -> dict[str, Any]:
    """Settings of an orbit from the table ``[periodic]`` and the solver; ``start``: name of the
    state. A ``response`` leaves out section, period and state, which belong to the file's
    frequency."""
    left_out = (*_OF_PATHS, *(("section", "period", "state") if response else ()))
    given = {k: v for k, v in config.periodic.items() if k not in left_out}
    if "state" in given:
        given[start] = given.pop("state")
    settings = config.solver
    if settings.get("name", SOLVERS[0]) != SOLVERS[0]:
        raise ProblemError(
            f"solver.name: found {settings['name']!r}, periodic motion takes {SOLVERS[0]!r}"
        )
    return given | ({"solver": choose_solver(settings)[0]} if settings else {})


#: Keys of the table ``[periodic]`` that do not belong to a single orbit.
_OF_PATHS = ("vary", "start", "stop", "harmonics")

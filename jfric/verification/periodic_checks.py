"""Checks on steady motions of a system, their paths over a parameter, attractors and optima."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError
from jfric.files.solver_choice import SOLVERS, choose_solver
from jfric.results.quantity import OF_OPTIMA, OF_ORBITS, PERIODIC_KINDS, Quantity
from jfric.results.status import Status
from jfric.sweeps.design import SAMPLED
from jfric.sweeps.texts import parse_section, parse_vary
from jfric.verification.result import Result, each_judged, whole

if TYPE_CHECKING:
    from jfric.files.config import Check, Config
    from jfric.optima.result import Optimum
    from jfric.periodic.basins import Basins
    from jfric.periodic.flutter import FlutterPath
    from jfric.periodic.harmonic_balance_result import HarmonicBalance
    from jfric.periodic.orbit import PeriodicOrbit
    from jfric.periodic.path import OrbitKind, OrbitPath
    from jfric.periodic.response import FrequencyResponse
    from jfric.periodic.response_peak import ResponsePeak
    from jfric.periodic.steady_sliding import SteadySliding


def is_periodic(check: Check) -> bool:
    """Whether a check is about periodic motions, or another computation on its own."""
    return check.quantity.kind in PERIODIC_KINDS


@dataclass(frozen=True)
class PeriodicJob:
    """A system and the checks made on its periodic motion."""

    case: str
    config: Config
    checks: tuple[Check, ...]
    label: str = "periodic"


def periodic_job(case: str, config: Config, checks: Sequence[Check]) -> list[PeriodicJob]:
    """The jobs with the ``checks`` on periodic motion and on an optimum, if there are any."""
    found: dict[str, list[Check]] = {}
    for check in filter(is_periodic, checks):
        label = "optimise" if check.quantity.kind == "optimum" else "periodic"
        found.setdefault(label, []).append(check)
    return [PeriodicJob(case, config, tuple(chosen), label) for label, chosen in found.items()]


def periodic_results(job: PeriodicJob) -> tuple[PeriodicValues, list[Result]]:
    """Values of the periodic motion of ``job``, and the results of its checks; an orbit that did
    not converge adds a failed result."""
    values = PeriodicValues(job.config)
    found = each_judged(job.case, job.label, job.checks, values.of)
    orbit = vars(values).get("orbit")
    if orbit is not None and not bool(orbit.converged):
        reason = f"status: {orbit.outcome()}"
        found.append(whole(job.case, job.label, reason, float(orbit.status)))
    return values, found


class PeriodicValues:
    """Values of quantities; orbit, path and response are computed once, at their first use."""

    def __init__(self, config: Config):
        self.config = config
        self.balances: dict[str, HarmonicBalance] = {}
        self.observed: dict[str, float] = {}

    def of(self, quantity: Quantity) -> float:
        if quantity.kind in ("balance", "balance_fold"):
            return self._of_balance(quantity)
        if quantity.kind == "response":
            return self.peak.value if quantity.name == "peak" else self.peak.frequency
        if quantity.kind == "lyapunov":
            return self._exponent()
        if quantity.kind in ("attractor_count", "basin_share"):
            return self._of_basins(quantity)
        if quantity.kind == "optimum":
            return self._of_optimum(quantity)
        if quantity.kind in ("growth", "mode_frequency", "onset"):
            return self._of_sliding(quantity)
        if quantity.kind not in ("orbit", "multiplier"):
            points = self.path.points(POINT_KINDS[quantity.kind])
            row = int(quantity.argument or 1) - 1
            return points[row].parameter if row < len(points) else float("nan")
        orbit = self.orbit
        if quantity.kind == "multiplier":
            row = int(quantity.argument or 1) - 1
            values = np.asarray(orbit.multipliers)
            if row >= len(values):
                return float("nan")
            chosen: complex = values[row].item()
            return {"re": chosen.real, "im": chosen.imag}.get(quantity.name, abs(chosen))
        name, argument = quantity.name, quantity.argument
        first, _, rest = name.partition(".")
        if name in OF_ORBITS:
            found: Any = getattr(orbit, name)
            return float(np.asarray(found() if callable(found) else found))
        if first in ("harmonic", "angle"):
            order = int(argument or 0)
            value = orbit.harmonics(rest, order)[order]
            return float(jnp.abs(value) if first == "harmonic" else jnp.angle(value))
        if name == "event_time" and argument is not None:
            row = int(argument) - 1
            used = row < min(int(orbit.event_count), len(orbit.event_times))
            return float(orbit.event_times[row]) if used else float("nan")
        text = name if argument is None else f"{name}({argument})"
        return self._observed(orbit, text)

    def _observed(self, orbit: PeriodicOrbit, text: str) -> float:
        if text not in self.observed:
            # The state at the start equals that after a period.
            first = text.partition(".")[0]
            signal = "(" not in text and first not in _REDUCED
            asked = f"final.{text}" if signal else text
            self.observed[text] = float(orbit.observe(asked)[asked])
        return self.observed[text]

    @cached_property
    def orbit(self) -> PeriodicOrbit:
        """The periodic motion."""
        from jfric.periodic.solving import periodic_orbit

        return periodic_orbit(self.config.problem, **orbit_settings(self.config))

    @cached_property
    def path(self) -> OrbitPath:
        """Path of orbits over the parameter of the table ``[periodic]``."""
        from jfric.periodic.continuation import continue_orbit

        settings = orbit_settings(self.config, "state")
        return continue_orbit(self.config.problem, *self._ends(), **settings)

    @cached_property
    def response(self) -> FrequencyResponse:
        """The response described by the table ``[response]``."""
        from jfric.periodic.response import frequency_response

        given = self.config.response
        if not given:
            raise ProblemError(
                f"{self.config.path}: a check asks for a response; a table [response] with "
                "load, start and stop is missing"
            )
        ends = given["load"], given["start"], given["stop"]
        settings = orbit_settings(self.config, "state", response=True)
        return frequency_response(self.config.problem, *ends, **settings)

    @cached_property
    def peak(self) -> ResponsePeak:
        """The largest value of the response."""
        if not self.response.curves[0].complete:
            raise ProblemError(f"{self.config.path}: {self.response.curves[0].outcome}")
        return self.response.peak(self.config.response.get("quantity", self.config.problem.axes[0]))

    def _exponent(self) -> float:
        """The largest Lyapunov exponent; NaN where the run failed."""
        from jfric.periodic.lyapunov import lyapunov_exponent

        settings = lyapunov_settings(self.config)
        found = lyapunov_exponent(self.config.problem, **settings, **self._solver())
        return float(found.value) if int(found.status) == int(Status.OK) else float("nan")

    def _of_basins(self, quantity: Quantity) -> float:
        """The number of attractors, or the share of one of them; NaN where a run failed."""
        if self.basins.failed:
            return float("nan")
        attractors = self.basins.attractors
        if quantity.kind == "attractor_count":
            return float(len(attractors))
        row = int(quantity.argument or 1) - 1
        return attractors[row].share if row < len(attractors) else float("nan")

    @cached_property
    def basins(self) -> Basins:
        """The basins described by the table ``[basins]``."""
        from jfric.periodic.basins import basins

        if not self.config.basins:
            raise ProblemError(
                f"{self.config.path}: a check asks for attractors; a table [basins] with plane is "
                "missing"
            )
        settings = basin_settings(self.config)
        return basins(self.config.problem, **settings, **self._solver(), progress=False)

    def _of_optimum(self, quantity: Quantity) -> float:
        """A number of the optimum; NaN where the search has not converged to a feasible point."""
        if not self.optimum.converged:
            return float("nan")
        if quantity.name in OF_OPTIMA:
            return float(getattr(self.optimum, quantity.name))
        if quantity.name not in self.optimum.values:
            raise ProblemError(f"{self.config.path}: optimise.free has no {quantity.name!r}")
        values = np.atleast_1d(self.optimum.values[quantity.name])
        row = int(quantity.argument or 1) - 1
        return float(values[row]) if row < values.size else float("nan")

    @cached_property
    def optimum(self) -> Optimum:
        """The optimum described by the table ``[optimise]``."""
        from jfric.optima.optimise import from_table, optimise

        if not self.config.optimise:
            raise ProblemError(
                f"{self.config.path}: a check asks for an optimum; a table [optimise] with free "
                "and objective is missing"
            )
        settings = from_table(self.config.optimise)
        return optimise(self.config.problem, **settings, **self._solver())

    def _of_sliding(self, quantity: Quantity) -> float:
        """A growth rate or frequency of steady sliding, or a value at which growth begins."""
        row = int(quantity.argument or 1) - 1
        if quantity.kind == "onset":
            found = [onset.parameter for onset in self.flutter.onsets]
        elif quantity.kind == "growth":
            return float(self.sliding.growth)
        else:
            modes = self.sliding.modes() if self.sliding.exists else []
            found = [mode["frequency"] for mode in modes]
        return found[row] if row < len(found) else float("nan")

    @cached_property
    def sliding(self) -> SteadySliding:
        """Steady sliding."""
        from jfric.periodic.steady_sliding import steady_sliding

        return steady_sliding(self.config.problem)

    @cached_property
    def flutter(self) -> FlutterPath:
        """Eigenvalues over the parameter of the table ``[statics]``."""
        from jfric.periodic.flutter import flutter

        given = self.config.statics
        if not given:
            raise ProblemError(
                f"{self.config.path}: a check asks where growth begins; a table [statics] with "
                "vary, start and stop is missing"
            )
        return flutter(self.config.problem, given["vary"], given["start"], given["stop"])

    def _solver(self) -> dict[str, Any]:
        """The solver of the file, where it has settings."""
        settings = self.config.solver
        return {"solver": choose_solver(settings)[0]} if settings else {}

    def _of_balance(self, quantity: Quantity) -> float:
        """Value by harmonic balance: an amplitude (half the range, or of a harmonic) or a fold."""
        found = self._balance(quantity.kind)
        if not found.ok.all():
            return float("nan")
        if quantity.kind == "balance_fold":
            row = int(quantity.argument or 1) - 1
            return float(found.folds[row]) if row < len(found.folds) else float("nan")
        order = None if quantity.argument is None else int(quantity.argument)
        return float(found.amplitude(quantity.name, order)[0])

    def _balance(self, kind: str) -> HarmonicBalance:
        from jfric.periodic.harmonic_balance import harmonic_balance

        if kind not in self.balances:
            given = self.config.periodic
            ends = self._ends() if kind == "balance_fold" else []
            chosen = {"harmonics": given["harmonics"]} if "harmonics" in given else {}
            self.balances[kind] = harmonic_balance(self.config.problem, *ends, **chosen)
        return self.balances[kind]

    def _ends(self) -> list[Any]:
        """The parameter of a path, and the ends of its interval."""
        given = self.config.periodic
        if "vary" not in given:
            raise ProblemError(
                f"{self.config.path}: a check asks for a path of orbits; the table [periodic] "
                "needs vary, start and stop"
            )
        return [given["vary"], given["start"], given["stop"]]


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
#: Kinds of special points of a path by their names in a check.
POINT_KINDS: dict[str, OrbitKind] = {
    **{"fold": "fold", "flip": "flip", "torus": "torus", "hopf": "hopf"},
    **{"branch_point": "branch point", "event_change": "event change", "dead_end": "dead end"},
}
#: First words of observables over a period.
_REDUCED = (
    *("final", "min", "max", "mean", "rms", "integral", "impulse", "event", "before_event"),
    *("impact_count", "last_event_time", "stop_time", "dissipated", "stick_fraction"),
)

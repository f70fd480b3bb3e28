"""A fit with its arguments and data as JSON text, and back."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from jfric.errors import ProblemError
from jfric.files.config import Config
from jfric.files.output import versions
from jfric.files.read_toml import loads
from jfric.files.write_toml import dump
from jfric.fits.data.experiment import Experiment
from jfric.fits.free import read_free
from jfric.fits.objective import weighted
from jfric.fits.optimise.descents import Outcome
from jfric.fits.optimise.direct_search import Cloud
from jfric.fits.recipe import Estimate, Recipe, from_words
from jfric.fits.uncertainty.covariance import Covariance
from jfric.solvers.event_driven.solver import EventDriven
from jfric.solvers.smoothed.solver import Smoothed
from jfric.solvers.time_stepping.schemes import Midpoint, MoreauJean, StabilisedMidpoint
from jfric.system.problem import Problem

#: Solvers that can be written.
SOLVERS = {c.__name__: c for c in (EventDriven, Smoothed, MoreauJean, Midpoint, StabilisedMidpoint)}


def to_json(fit: Estimate, uncertainty: Covariance) -> str:
    """``fit`` as JSON text in SI units, with its ``uncertainty``, seed and versions;
    :func:`from_json` reads it.

    Raises :class:`jfric.ProblemError` for a user's own model or residual, which a file cannot hold.
    """
    recipe = fit.recipe
    if recipe is None or not isinstance(recipe.setup.problem, Problem):
        raise ProblemError("to_json: found a model of your own, only a fit of a problem is written")
    setup, options = recipe.setup, recipe.words()
    if setup.residual.compare is not weighted:
        raise ProblemError("to_json: found a function as residual, which cannot be written")
    config = Config(recipe.setup.problem, controller=options.pop("controller"))
    options["solver"] = _solver(options["solver"])
    table = {
        "versions": versions(),
        "problem": dump(config),
        "experiments": [_experiment(e) for e in setup.experiments],
        "free": {path: dataclasses.asdict(item) for path, item in setup.free.items()},
        "options": options,
        "result": {
            "names": fit.names,
            "values": fit.vector.tolist(),
            "standard_errors": _finite(list(uncertainty.standard_errors.values())),
            "intervals": uncertainty.intervals(),
            "method": uncertainty.method,
            "cost": fit.cost,
            "outcome": fit.outcome.name.lower(),
            "at_bound": fit.at_bound.tolist(),
            "sigma": dict(fit.sigma),
            "cloud": None if fit.cloud is None else _cloud(fit.cloud),
            "remarks": fit.remarks,
            "remarks_on_intervals": uncertainty.remarks(),
            "waterfall": [
                {**w, "outcome": w["outcome"].name.lower(), "cost": _finite([w["cost"]])[0]}
                for w in fit.waterfall
            ],
        },
    }
    return json.dumps(table, indent=1, allow_nan=False)


def from_json(text: str) -> dict[str, Any]:
    """Fields of the :class:`jfric.FitResult` that :func:`to_json` wrote; nothing is fitted again.

    Raises :class:`jfric.ProblemError` for text that is not such a fit.
    """
    try:
        table = json.loads(text)
        found, options = table["result"], dict(table["options"])
        problem = loads(table["problem"]).problem
        experiments = tuple(Experiment(**e) for e in map(_read_experiment, table["experiments"]))
        free = {path: read_free(item) for path, item in table["free"].items()}
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ProblemError(f"from_json: found no fit in the text ({error})") from None
    options["solver"] = _read_solver(options["solver"])
    recipe = Recipe.of(problem, experiments, free, **from_words(options))
    task = recipe.setup.task()
    vector = np.array(found["values"])
    if not task.noise_is_known:
        task.estimate_noise(vector)
    return dict(
        names=task.objective.layout.names,
        vector=vector,
        cost=found["cost"],
        outcome=Outcome[found["outcome"].upper()],
        at_bound=np.array(found["at_bound"]),
        waterfall=[
            {**w, "outcome": Outcome[w["outcome"].upper()], "cost": _infinite(w["cost"])}
            for w in found["waterfall"]
        ],
        sigma=found["sigma"],
        experiments=task.experiments,
        objective=task.objective,
        seed=recipe.seed,
        remarks=tuple(found["remarks"]),
        recipe=recipe,
        cloud=_read_cloud(found.get("cloud")),
    )


def _cloud(cloud: Cloud) -> dict[str, Any]:
    table = cloud._asdict()
    return table | {"x": cloud.x.tolist(), "weight": cloud.weight.tolist()}


def _read_cloud(table: dict[str, Any] | None) -> Cloud | None:
    if table is None:
        return None
    return Cloud(**{**table, "x": np.array(table["x"]), "weight": np.array(table["weight"])})


def _experiment(e: Experiment) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {k: plain(v) for k, v in value.items()}
        return _finite(value.tolist()) if isinstance(value, np.ndarray) else value

    meta = {k: v for k, v in (e.meta or {}).items() if isinstance(v, (str, int, float, bool))}
    x0 = None if e.x0 is None else {k: np.ravel(v) for k, v in e.x0.items()}
    return plain(vars(e) | {"meta": meta, "x0": x0})


def _read_experiment(table: dict[str, Any]) -> dict[str, Any]:
    y = {k: [np.nan if x is None else x for x in v] for k, v in table["y"].items()}
    return {**table, "y": y}


def _solver(solver: Any) -> dict[str, Any] | None:
    if solver is None:
        return None
    fields = {f.name: getattr(solver, f.name) for f in dataclasses.fields(solver)}
    # Numbers of some solvers are arrays.
    fields = {k: v.item() if hasattr(v, "item") else v for k, v in fields.items()}
    plain = all(isinstance(v, (str, int, float, type(None))) for v in fields.values())
    if type(solver).__name__ not in SOLVERS or not plain:
        raise ProblemError(f"to_json: found the solver {solver!r}, which cannot be written")
    return {"class": type(solver).__name__, **fields}


def _read_solver(table: dict[str, Any] | None) -> Any:
    if table is None:
        return None
    fields = dict(table)
    return SOLVERS[fields.pop("class")](**fields)


def _finite(values: list) -> list:
    return [x if np.isfinite(x) else None for x in values]


def _infinite(value: float | None) -> float:
    return float("inf") if value is None else value

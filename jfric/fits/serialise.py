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
            "values": fit.vector,
            "standard_errors": list(uncertainty.standard_errors.values()),
            "intervals": uncertainty.intervals(),
            "method": uncertainty.method,
            "cost": fit.cost,
            "outcome": fit.outcome,
            "at_bound": fit.at_bound,
            "sigma": fit.sigma,
            "cloud": None if fit.cloud is None else fit.cloud._asdict(),
            "remarks": fit.remarks,
            "remarks_on_intervals": uncertainty.remarks(),
            "waterfall": fit.waterfall,
        },
    }
    return json.dumps(_plain(table), indent=1, allow_nan=False)


def from_json(text: str) -> dict[str, Any]:
    """Fields of the :class:`jfric.FitResult` that :func:`to_json` wrote; nothing is fitted again.

    Raises :class:`jfric.ProblemError` for text that is not such a fit.
    """
    try:
        table = json.loads(text)
        found, options = table["result"], dict(table["options"])
        problem = loads(table["problem"]).problem
        experiments = tuple(Experiment(**e) for e in table["experiments"])
        free = {path: read_free(item) for path, item in table["free"].items()}
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ProblemError(f"from_json: found no fit in the text ({error})") from None
    if options["solver"] is not None:
        fields = dict(options["solver"])
        options["solver"] = SOLVERS[fields.pop("class")](**fields)
    recipe = Recipe.of(problem, experiments, free, **from_words(options))
    task = recipe.setup.task()
    vector, cloud = np.array(found["values"]), found.get("cloud")
    if cloud is not None:
        cloud = Cloud(**cloud | {k: np.array(cloud[k]) for k in ("x", "weight")})
    for row in found["waterfall"]:
        row["outcome"] = Outcome[row["outcome"].upper()]
        row["cost"] = np.inf if row["cost"] is None else row["cost"]
    if not task.noise_is_known:
        task.estimate_noise(vector)
    return dict(
        names=task.objective.layout.names,
        vector=vector,
        cost=found["cost"],
        outcome=Outcome[found["outcome"].upper()],
        at_bound=np.array(found["at_bound"]),
        waterfall=found["waterfall"],
        sigma=found["sigma"],
        experiments=task.experiments,
        objective=task.objective,
        seed=recipe.seed,
        remarks=tuple(found["remarks"]),
        recipe=recipe,
        cloud=cloud,
    )


def _plain(value: Any) -> Any:
    """``value`` by the types of JSON; numbers that are not finite are None."""
    if isinstance(value, Outcome):
        return value.name.lower()
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _experiment(e: Experiment) -> dict[str, Any]:
    meta = {k: v for k, v in (e.meta or {}).items() if isinstance(v, (str, int, float, bool))}
    x0 = None if e.x0 is None else {k: np.ravel(v) for k, v in e.x0.items()}
    return vars(e) | {"meta": meta, "x0": x0}


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

"""The arguments of a fit, their spelling by words, in files, commands and older programs, and the
result of a fit as data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jfric.errors import ProblemError, nearest, warn
from jfric.fits.data.experiment import Experiment
from jfric.fits.free import Free
from jfric.fits.objective import LOSSES, AbstractLoss, HasPoint, Objective
from jfric.fits.optimise.descents import LBFGS, AbstractOptimiser, Adam, LevenbergMarquardt, Outcome
from jfric.fits.optimise.direct_search import Cloud, DirectSearch
from jfric.fits.optimise.searches import SEARCHES, AbstractSearch, Starts
from jfric.fits.residuals import RESIDUALS, AbstractResidual, Outputs
from jfric.fits.task import Setup, Task
from jfric.system.model import build
from jfric.system.problem import Problem

OPTIMISERS = {o.word: o for o in (LevenbergMarquardt, LBFGS, Adam, DirectSearch)}
#: Kinds of each setting by word, the default first, and the class of them all.
KINDS: dict[str, tuple[dict[str, Any], type]] = {
    "residual": (RESIDUALS, AbstractResidual),
    "loss": (LOSSES, AbstractLoss),
    "search": (SEARCHES, AbstractSearch),
    "optimiser": (OPTIMISERS, AbstractOptimiser),
}
#: Old words for fields of the settings, and the field of a setting that each stands for.
FIELDS = {
    "controller": (("residual", "controller"),),
    "window": (("residual", "length"), ("search", "window")),
    "states": (("residual", "states"),),
    "loss_scale": (("loss", "scale"),),
    "schedule": (("search", "schedule"),),
    "max_iterations": (("optimiser", "max_iterations"),),
    "learning_rate": (("optimiser", "learning_rate"),),
    "batch": (("optimiser", "batch"),),
}


@dataclass(frozen=True)
class Recipe:
    """The arguments of :func:`jfric.fit`, with which it can be repeated."""

    setup: Setup
    search: AbstractSearch
    optimiser: AbstractOptimiser
    starts: int = 8
    seed: int = 0

    @staticmethod
    def of(
        problem: Any,
        experiments: Experiment | Sequence[Experiment],
        free: Mapping[str, Free],
        **options: Any,
    ) -> Recipe:
        """The recipe from the keyword arguments of :func:`jfric.fit`, old words included."""
        chosen = (experiments,) if isinstance(experiments, Experiment) else tuple(experiments)
        options = _with_objects(options)
        own = {f.name for f in dataclasses.fields(Recipe)} - {"setup"}
        of_setup = {k: x for k, x in options.items() if k not in own}
        problem = build(problem) if isinstance(problem, Problem) else problem
        setup = Setup(problem, chosen, dict(free), **of_setup)
        return Recipe(setup, **{k: x for k, x in options.items() if k in own})

    def again(self, free: Mapping[str, Free], starts: int) -> Recipe:
        """A copy of the recipe with other free parameters and starts."""
        setup = dataclasses.replace(self.setup, free=free)
        return dataclasses.replace(self, setup=setup, starts=starts)

    def words(self) -> dict[str, Any]:
        """The settings by words and numbers, as :func:`from_words` reads them; raises
        :class:`jfric.ProblemError` for a user's own settings, which have no word."""
        setup = self.setup
        objects = {
            "residual": setup.residual, "loss": setup.loss,
            "search": self.search, "optimiser": self.optimiser,
        }  # fmt: skip
        found: dict[str, Any] = {}
        for argument, thing in objects.items():
            words = [word for word, kind in KINDS[argument][0].items() if kind is type(thing)]
            if not words:
                raise ProblemError(f"{argument}: found {thing!r}, which cannot be written")
            found[argument] = words[0]
        for word, places in FIELDS.items():
            values = [getattr(objects[argument], field, None) for argument, field in places]
            found[word] = next((x for x in values if x is not None), None)
        if found["schedule"] is not None:
            found["schedule"] = np.ravel(np.asarray(found["schedule"])).tolist()
        return {
            **found, "observe": setup.observe, "solver": setup.solver, "hold": setup.hold,
            "starts": self.starts, "seed": self.seed,
        }  # fmt: skip


@dataclass
class Estimate(HasPoint):
    """A fit as data: the fields of a :class:`jfric.FitResult`, from which its methods are computed,
    and files are written."""

    names: tuple[str, ...]
    vector: np.ndarray
    cost: float
    outcome: Outcome
    at_bound: np.ndarray
    waterfall: list[dict[str, Any]]
    sigma: Mapping[str, float]
    experiments: tuple[Experiment, ...]
    objective: Objective = field(repr=False)
    seed: int = 0
    remarks: tuple[str, ...] = ()
    recipe: Recipe | None = field(default=None, repr=False)
    cloud: Cloud | None = field(default=None, repr=False)


def prepare(problem: Any, experiments: Any, free: Mapping[str, Free], **options: Any) -> Task:
    """The fit with the arguments of :func:`jfric.fit`, checked and put together."""
    return Recipe.of(problem, experiments, free, **options).setup.task()


def from_words(options: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of :func:`jfric.fit` from ``options`` that may name kinds of settings by
    words (``residual="windows"``), and give their fields as further options (``window=2.0``).

    None stands for the default; fields that a kind does not have are left out. Raises
    :class:`jfric.ProblemError` for unknown words.
    """
    found = {k: x for k, x in options.items() if k not in FIELDS}
    given = {k: options[k] for k in FIELDS if options.get(k) is not None}
    taken: set[str] = set()
    for argument, (kinds, base) in KINDS.items():
        value = options.get(argument) or next(iter(kinds))
        if isinstance(value, str) and value in kinds:
            kind = kinds[value]
            if kind is Starts and "schedule" in given:
                raise ProblemError("schedule: has no meaning for search='starts', take 'global'")
            own = {f.name for f in dataclasses.fields(kind)}
            places = [(word, f) for word in given for a, f in FIELDS[word] if a == argument]
            value = kind(**{field: given[word] for word, field in places if field in own})
            taken |= {word for word, field in places if field in own}
        elif argument == "residual" and callable(value) and not isinstance(value, type):
            value = Outputs(value)
        if not isinstance(value, base):
            more = " and a function" if argument == "residual" else ""
            raise ProblemError(
                f"{argument}: found {value!r}{nearest(str(value), kinds)}, allowed are "
                f"{', '.join(kinds)}{more}"
            )
        found[argument] = value
    for word in given.keys() - taken:
        for argument, _ in FIELDS[word]:
            if isinstance(options.get(argument), KINDS[argument][1]):
                raise ProblemError(f"{word}: belongs into {argument}={_call(options[argument])}")
    return found


def _with_objects(options: Mapping[str, Any]) -> dict[str, Any]:
    """``options`` with objects in place of words, and a warning if there were words."""
    found = from_words(options)
    words = {k: options[k] for k in KINDS if isinstance(options.get(k), str)}
    words |= {k: options[k] for k in FIELDS if options.get(k) is not None}
    if words:
        places = {argument for k in words for argument, _ in FIELDS.get(k, ((k, ""),))}
        default = from_words({})
        new = [f"{k}={_call(found[k])}" for k in KINDS if k in places and found[k] != default[k]]
        old = ", ".join(f"{k}={_text(x)}" for k, x in words.items())
        said = f"write {', '.join(new)}" if new else "leave it out"
        warn(f"{old}: settings of a fit are objects, {said}", DeprecationWarning)
    return found


def _call(setting: Any) -> str:
    """Call that creates a setting in a program, without its defaults."""
    fields = {f.name: f.default for f in dataclasses.fields(setting)}
    changed = [
        f"{name}={_text(getattr(setting, name))}"
        for name, default in fields.items()
        if getattr(setting, name) is not default
    ]
    return f"jfric.{type(setting).__name__}({', '.join(changed)})"


def _text(value: Any) -> str:
    return repr(value) if isinstance(value, (str, int, float, list, tuple)) else "..."

"""The reference of every public name, by subject."""

from __future__ import annotations

import inspect
import types

import jfric
from generators.rst import heading

#: Subjects in the order of their pages: the module that lists the names, and the title.
SUBJECTS = {
    "system": "Systems",
    "laws": "Friction laws",
    "elements": "Elements",
    "functions": "Functions of time",
    "files": "Files",
    "solvers": "Solvers",
    "results": "Results",
    "results.observables": "Observables",
    "statics": "Equilibria",
    "periodic": "Steady states",
    "optima": "Optimal inputs and dimensions",
    "sweeps": "Sweeps",
    "fits": "Fits",
    "structures": "Structures",
    "exports": "Other simulators",
    "figures": "Figures",
    "contact": "Residuals",
    "verification": "Published cases",
    "numerics": "Compilation",
}


def _modules() -> dict[str, types.ModuleType]:
    """Modules that list public names, by subject."""
    found = {name: getattr(jfric, name.split(".")[0], None) for name in SUBJECTS}
    found["results.observables"] = jfric.results.observables
    return {name: m for name, m in found.items() if hasattr(m, "__all__")}


def _is_entry(thing: object) -> bool:
    return inspect.isclass(thing) or inspect.isfunction(thing)


def public_names() -> set[str]:
    """Every class and function that users can import by a public name, by that name."""
    listed = {*jfric.__all__, *(name for m in _modules().values() for name in m.__all__)}
    everything = {name for name in listed if hasattr(jfric, name)}
    names = {f"jfric.{name}" for name in everything if _is_entry(getattr(jfric, name))}
    for subject, module in _modules().items():
        short = [] if subject == "results.observables" else everything
        names |= {
            f"jfric.{subject}.{name}"
            for name in module.__all__
            if name not in short and _is_entry(getattr(module, name))
        }
    return names


def _subject(name: str) -> str:
    """The page of a public name: the first subject that lists it, else the folder it is from."""
    parent, last = name.removeprefix("jfric.").rpartition(".")[::2]
    if parent:
        return parent
    listed = [s for s, m in _modules().items() if last in m.__all__ and "." not in s]
    return listed[0] if listed else _folder(getattr(jfric, last))


def _folder(thing) -> str:
    folder = thing.__module__.split(".")[1]
    return folder if folder in SUBJECTS else "system"


def by_subject() -> dict[str, list[str]]:
    """Public names by subject, classes and functions in alphabetical order."""
    result: dict[str, list[str]] = {subject: [] for subject in SUBJECTS}
    for name in sorted(public_names(), key=str.lower):
        result[_subject(name)].append(name)
    return {subject: names for subject, names in result.items() if names}


def _resolve(name: str) -> object:
    thing: object = jfric
    for part in name.split(".")[1:]:
        thing = getattr(thing, part)
    return thing


def _entry(name: str) -> str:
    if inspect.isclass(_resolve(name)):
        return f".. autoclass:: {name}\n   :members:\n   :show-inheritance:\n"
    return f".. autofunction:: {name}\n"


def _opening(subject: str) -> str:
    module = _modules().get(subject)
    return f".. automodule:: jfric.{subject}\n   :no-index:\n" if module else ""


def pages() -> dict[str, str]:
    """Text of each page by its path below the folder of generated pages."""
    result = {}
    for subject, names in by_subject().items():
        parts = [heading(SUBJECTS[subject], "="), _opening(subject), *map(_entry, names)]
        result[f"api/{subject.replace('.', '_')}.rst"] = "\n".join(filter(None, parts))
    rows = "\n".join(f"   {name.removesuffix('.rst').removeprefix('api/')}" for name in result)
    result["api/index.rst"] = (
        f"{heading('Python reference', '=')}\n"
        "Everything that ``import jfric`` offers. Names are found as ``jfric.NAME`` unless they\n"
        "are written in full. Quantities are in SI units; arrays have their shape in round\n"
        "brackets, units stand in square ones. Examples may use the problem of\n"
        ":class:`jfric.Problem` and ``import jax.numpy as jnp``.\n\n"
        f".. toctree::\n   :maxdepth: 1\n\n{rows}\n"
    )
    return result

"""Packages that are not always installed, and what is said where one is missing."""

from __future__ import annotations

import importlib
from typing import Any

from jfric.errors import ProblemError


def import_package(name: str, user: str, extra: str) -> Any:
    """The package or module ``name``, or a sentence on how to install it: ``user``: what needs it;
    ``extra``: of jfric, with which it comes."""
    try:
        return importlib.import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise ProblemError(
            f"{user} needs {package}, which is not installed (pip install jfric[{extra}])"
        ) from None


def import_xarray():
    """xarray, or a sentence on how to install it."""
    import_package("xarray", "a sweep", "sweep")
    import xarray

    return xarray


def import_mujoco() -> Any:
    """MuJoCo, or a sentence on how to install it."""
    return import_package("mujoco", "a robot's file", "robots")


def import_plotly() -> Any:
    """plotly, with its figures and its library for pages, or a sentence on how to install it."""
    for name in ("plotly", "plotly.graph_objects", "plotly.offline"):
        import_package(name, "a page to play with", "view")
    return importlib.import_module("plotly")


def import_pythonfmu(version: int) -> Any:
    """The library for units of the FMI ``version`` (2 or 3), or a sentence on how to install it."""
    name = "pythonfmu" if version == 2 else "pythonfmu3"
    return import_package(name, f"a unit of FMI {version}", "fmi")

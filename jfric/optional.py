"""Packages that are not always installed, and what is said where one is missing."""

from __future__ import annotations

import importlib
from typing import Any

from jfric.errors import ProblemError


def import_xarray():
    """xarray, or a sentence on how to install it."""
    try:
        import xarray
    except ImportError:
        raise ProblemError(
            "a sweep needs xarray, which is not installed (pip install jfric[sweep])"
        ) from None
    return xarray


def import_mujoco() -> Any:
    """MuJoCo, or a sentence on how to install it."""
    try:
        import mujoco  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ProblemError(
            "a robot's file needs mujoco, which is not installed (pip install jfric[robots])"
        ) from None
    return mujoco


def import_plotly():
    """plotly, with its figures and its library for pages, or a sentence on how to install it."""
    try:
        import plotly
        import plotly.graph_objects
        import plotly.offline
    except ImportError:
        raise ProblemError(
            "a page to play with needs plotly, which is not installed (pip install jfric[view])"
        ) from None
    return plotly


def import_pythonfmu(version: int) -> Any:
    """The library for units of the FMI ``version`` (2 or 3), or a sentence on how to install it."""
    name = "pythonfmu" if version == 2 else "pythonfmu3"
    try:
        library = importlib.import_module(name)
    except ImportError:
        raise ProblemError(
            f"a unit of FMI {version} needs {name}, which is not installed (pip install jfric[fmi])"
        ) from None
    return library

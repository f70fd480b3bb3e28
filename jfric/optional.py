"""Packages that are not always installed, and what is said where one is missing."""

from __future__ import annotations

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

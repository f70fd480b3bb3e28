"""The structure of the static and dynamic experiments: two elastic blocks, thirty contact nodes.

The geometry of Janovsky (2015), figure 3, is not published; this structure has its size: 1,320
degrees of freedom (74 of them held) and 30 pairs of contact nodes. The lower block stands on the
ground, the upper one is held at its left side, pressed down on the left, lifted on the right and
sheared.
"""

import numpy as np
from plane_strain import Block, two_blocks

from jfric.structures.structure import Structure

YOUNG, POISSON, DENSITY = 1e9, 0.3, 1000.0
HEIGHT = 0.3


def left(points):
    return np.isclose(points[0], 0.0) & (points[1] > 0.1)


def top(points):
    return np.isclose(points[1], HEIGHT)


def bottom(points):
    return np.isclose(points[1], -HEIGHT)


def pressing(points):
    """First load: pressure along the top [Pa]."""
    return np.stack([0.0 * points[0], np.full_like(points[0], -5e5)])


def shearing(points):
    """Second load: shear along the top, more pressure on the left, lift on the right [Pa]."""
    x = points[0]
    lift = np.where(x < 0.62, -5e5, np.where(x > 0.8, 9e5, 5e5))
    return np.stack([np.full_like(x, 4e5), lift])


def structure(nodes: int = 30, rows: int = 11) -> Structure:
    """Two blocks with ``nodes`` contact nodes and ``rows`` rows of nodes each."""
    x = np.linspace(0.0, 1.0, nodes)
    upper = Block(
        x,
        np.linspace(0.0, HEIGHT, rows),
        YOUNG,
        POISSON,
        DENSITY,
        held=(left, left),
        tractions=[(top, pressing), (top, shearing)],
    )
    lower = Block(
        x, np.linspace(-HEIGHT, 0.0, rows), YOUNG, POISSON, DENSITY, held=(bottom, bottom)
    )
    return two_blocks(upper, lower)

"""The solvers that experiments compare, by the name they print."""

from __future__ import annotations

import jfric

#: One line for each; the smoothed solver at a width where its bias can be seen.
SOLVERS = {
    "event-driven, exact flow": jfric.EventDriven(flow="exact"),
    "event-driven, Runge-Kutta flow": jfric.EventDriven(flow="runge-kutta"),
    "Moreau-Jean, dt = 1e-3 s": jfric.MoreauJean(dt=1e-3),
    "smoothed, tanh, 0.01 m/s": jfric.Smoothed(width=1e-2),
    "smoothed, tanh, 0.0001 m/s": jfric.Smoothed(width=1e-4),
}

"""The solvers that experiments compare, by their printed names."""

from __future__ import annotations

import jfric

#: One line for each solver; the smoothed solver has a width at which its bias is visible.
SOLVERS = {
    "event-driven, exact flow": jfric.EventDriven(flow="exact"),
    "event-driven, Runge-Kutta flow": jfric.EventDriven(flow="runge-kutta"),
    "Moreau-Jean, dt = 1e-3 s": jfric.MoreauJean(dt=1e-3),
    "smoothed, tanh, 0.01 m/s": jfric.Smoothed(width=1e-2),
    "smoothed, tanh, 0.0001 m/s": jfric.Smoothed(width=1e-4),
}

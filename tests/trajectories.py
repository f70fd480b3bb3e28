"""Trajectories written down by hand, for tests that need no solver."""

import numpy as np

import jfric
from jfric.results.modes import Mode

HALF_PERIOD = np.pi / np.sqrt(50.0)
TURNING = (0.0, 0.56, 0.08, 0.48, 0.16, 0.40, 0.24, 0.32)


def oscillator(outputs: int = 101) -> tuple[jfric.Problem, jfric.Solution]:
    """A mass on a spring under a constant force with dry friction: seven half waves, then rest."""
    problem = jfric.Problem(
        ("u",),
        {
            "mass": jfric.Mass("u", 100.0),
            "spring": jfric.Spring("u", 5000.0),
            "friction": jfric.Friction("u", jfric.Coulomb(0.1), N=1000.0),
            "load": jfric.Load("u", 1500.0),
        },
        time=4.0,
    )
    ts = np.linspace(0.0, 4.0, outputs)
    phase = np.minimum(ts // HALF_PERIOD, 7).astype(int)
    moving = phase < 7
    centre = np.where(phase % 2 == 0, 0.28, 0.32)
    amplitude = np.where(moving, np.take(TURNING, phase) - centre, 0.0)
    angle = np.sqrt(50.0) * (ts - phase * HALF_PERIOD)
    q = np.where(moving, centre + amplitude * np.cos(angle), 0.32)
    v = np.where(moving, -amplitude * np.sqrt(50.0) * np.sin(angle), 0.0)
    force = np.where(moving & (phase % 2 == 0), -100.0, 100.0)
    modes = [*[Mode.SLIP_POS, Mode.SLIP_NEG] * 3, Mode.SLIP_POS, Mode.STICK]
    events = _events(
        HALF_PERIOD * np.arange(1, 8),
        [0] * 7,
        modes[:-1],
        modes[1:],
        np.array(TURNING[1:])[:, None],
    )
    return problem, _solution(
        ts, q[:, None], v[:, None], np.zeros((outputs, 0)), force[:, None],
        np.take([int(m) for m in modes], phase)[:, None], np.zeros((outputs, 0), int), events,
        axes=("u",), names=("friction",), segment_labels=(),
    )  # fmt: skip


def machine(outputs: int = 50) -> tuple[jfric.Problem, jfric.Solution]:
    """Two translations and a rotation, two frictions, a contact and a gap spring (no physics)."""
    problem = jfric.Problem(
        {"cart": "translation", "lid": "translation", "arm": "rotation"},
        {
            "mass": {name: jfric.Mass(name, 1.0) for name in ("cart", "lid", "arm")},
            "friction": {
                "rail": jfric.Friction("cart", jfric.Coulomb(0.1), N=10.0),
                "hinge": jfric.Friction("arm", limit=1.0),
            },
            "contact": {"floor": jfric.Contact("lid", "cart", jfric.Coulomb(0.3), gap=0.1)},
            "gap_spring": jfric.GapSpring("cart", 1.0, 1.0, 0.1, 0.1),
        },
        time=10.0,
    )
    ts = np.linspace(0.0, 10.0, outputs)
    q = np.stack([np.sin(ts), np.abs(np.cos(ts)), 0.4 * np.cos(ts)], axis=1)
    mode = np.tile([int(Mode.STICK), int(Mode.SLIP_NEG), int(Mode.OPEN)], (outputs, 1))
    mode[ts >= 2.0, 2] = int(Mode.SLIP_POS)
    events = _events(
        [2.0, 6.0],
        [2, 3],
        [Mode.OPEN, 1],
        [Mode.SLIP_POS, 2],
        np.zeros((2, 3)),
        impact=[True, False],
    )
    return problem, _solution(
        ts, q, np.gradient(q, ts, axis=0), np.where(mode[:, 2:] > 0, 9.81, 0.0),
        np.stack([np.sin(ts), np.ones_like(ts), -np.cos(ts)], axis=1), mode,
        np.where(ts >= 6.0, 2, 1)[:, None], events,
        axes=("cart", "lid", "arm"),
        names=("friction.rail", "friction.hinge", "contact.floor", "gap_spring"),
        segment_labels=(("touch_negative", "free", "touch_positive"),),
    )  # fmt: skip


def _events(time, contact, before, after, q, impact=None, spare: int = 2) -> jfric.Events:
    def padded(values):
        values = np.asarray(values)
        return np.concatenate([values, np.zeros((spare, *values.shape[1:]), values.dtype)])

    impact = np.zeros(len(time), bool) if impact is None else np.asarray(impact)
    return jfric.Events(
        time=padded(time),
        contact=padded(contact),
        from_mode=padded([int(m) for m in before]),
        to_mode=padded([int(m) for m in after]),
        impact=padded(impact),
        q=padded(q),
        v=padded(np.zeros_like(q)),
        v_before=padded(np.zeros_like(q) - impact[:, None]),
        count=np.array(len(time)),
    )


def _solution(ts, q, v, lambda_n, lambda_t, mode, segment, events, **names) -> jfric.Solution:
    return jfric.Solution(
        ts=ts, q=q, v=v, a=np.zeros_like(q), lambda_n=lambda_n, lambda_t=lambda_t, mode=mode,
        segment=segment, events=events, status=np.array(0), flags=np.array(2), final=None,
        steps=np.array(31), z=np.zeros((len(ts), 0)), states=(), **names,
    )  # fmt: skip

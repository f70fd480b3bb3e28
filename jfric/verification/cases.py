"""The verification list: one entry for each case, a system with changes and expected values.

A file in ``data/`` with the name of a case holds its exact values and its changes of mode; the
checks in the case's configuration file count as well. A new case is one line of ``cases``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_DATA = Path(__file__).resolve().parent / "data"
_CLOSED_FORM = "closed form"
EXACT, RUNGE_KUTTA = "exact", "runge-kutta"

#: Error of ten impacts in a row, or of a sequence that accumulates, which pass their errors on.
CHAINED = 1e-8
#: Error on straight lines between breakpoints of the load.
QUASI_STATIC = 1e-12


@dataclass(frozen=True)
class Expected:
    """A published or closed-form value of a quantity.

    Without ``tolerance`` (absolute, SI) the tolerance follows from the case and the flow. It is
    given where the source prints fewer digits.
    """

    quantity: str
    value: float
    tolerance: float = 0.0
    source: str = ""


@dataclass(frozen=True)
class Case:
    """A system, the changes in it, and the expected results.

    ``config``: name of a shipped file. ``set``: changed parameters, by path; the file's own checks
    are used if nothing is changed. ``relative``: error allowed with the exact flow, relative to the
    expected time or to the peak of the component. ``sequence``: changes of mode, such as ``"slip+ >
    stick"``, in order. ``flows``: each is run if it can represent the system. ``solver``: settings
    of another solver than the event-driven one, for which only the tolerances of ``expected``
    apply.
    """

    name: str
    config: str
    set: Mapping[str, float] = field(default_factory=dict)
    expected: tuple[Expected, ...] = ()
    sequence: tuple[str, ...] = ()
    relative: float = 1e-10
    flows: tuple[str, ...] = (EXACT, RUNGE_KUTTA)
    solver: Mapping[str, Any] = field(default_factory=dict)


def cases() -> list[Case]:
    """All cases, in the order of the table."""
    return [
        _listed("ve0116"),
        *_ve0116_variants(),
        *_ve0116_staircase(),
        _listed("ve0119"),
        _listed("sdnd106"),
        _listed("janovsky_4_1"),
        _listed("janovsky_4_2_none", relative=CHAINED),
        _listed("janovsky_4_2_coulomb", relative=CHAINED),
        _listed("janovsky_4_2_none_e03", relative=CHAINED),
        _listed("janovsky_4_2_none_e06", relative=CHAINED),
        _listed("janovsky_4_2_coulomb_e03", relative=CHAINED),
        _listed("janovsky_4_2_coulomb_e06", relative=CHAINED),
        _listed("c4_belt"),
        _listed("c4_rabinowicz"),
        _listed("c5_velocity_weakening"),
        _listed("c7_bouncing_ball", relative=CHAINED),
        _listed("c7_bouncing_ball_e08", relative=CHAINED),
        _listed("c7_bouncing_ball_e09", relative=CHAINED),
        _listed("c7_bouncing_block", relative=CHAINED),
        _listed("rigid_stop"),
        _listed("tipping_block"),
        _listed("c8_incline"),
        _listed("c8_incline_stick"),
        _listed("c10_conveyor"),
        _listed("c11_stacked_blocks"),
        _listed("c11_stacked_blocks_f12"),
        _listed("c11_stacked_blocks_f20"),
        _listed("c11_stacked_blocks_sliding"),
        _listed("c15_pendulum"),
        _listed("p4_elastic_floor"),
        _listed("p4_damped_floor"),
        _listed("p4_damped_floor_physical"),
        _listed("ve0061", relative=QUASI_STATIC),
        _case(
            "ve0061 k as printed",
            "ve0061",
            {"u(1)": 1.0, "final.u": 0.5, "event_count": 3},
            set={"spring.k": 600.0},
            relative=QUASI_STATIC,
        ),
        _listed("ssnd116", relative=QUASI_STATIC),
        *_time_stepping(),
        *(_listed(f"janovsky_static_e{number}") for number in range(1, 11)),
        _listed("janovsky_static_fold"),
        _listed("janovsky_static_mu"),
        *map(_listed, ("a2_incline", "a2_incline_up")),
        _listed("c18_ladder"),
        _listed("two_blocks"),
        _listed("g1_rimless_wheel", relative=1e-9),
        _listed("g1_rimless_wheel_reset", relative=1e-9),
        _listed("g2_double_pendulum", relative=0.0),
        _listed("g3_bowl", relative=1e-9),
        _listed("g3_slot", relative=1e-9),
        _listed("g3_slot_polar", relative=1e-9),
        _listed("sleigh", relative=1e-9),
        _listed("g4_ladder", relative=1e-9),
        _listed("g4_ladder_body", relative=1e-9),
        _listed("g5_sphere", relative=1e-9),
        _listed("table_edge", relative=1e-9),
        _listed("f1_rotating_load", relative=1e-9),
        _listed("f1_free_block", relative=1e-9),
        _listed("f2_stop", relative=1e-9),
        *_stops(),
        _listed("f3_incline", relative=1e-9),
        Case(
            "f3_incline at its limit",
            "f3_incline",
            set={"friction.mu": math.tan(0.4), "time.end": 10.0},
            expected=(
                Expected("event_count", 0, source=_CLOSED_FORM),
                Expected("final.v.x", 0.5, 1e-9, _CLOSED_FORM),
                Expected("final.v.y", 0.0, 1e-9, _CLOSED_FORM),
            ),
            relative=1e-9,
        ),
        _listed("f4_billiard_ball", relative=1e-9),
        _listed("f4_billiard_drop", relative=1e-9),
        _listed("m1_jenkins"),
        _listed("m1_massless_node"),
        _listed("m2_iwan"),
        _listed("m3_dahl", relative=1e-9),
        _listed("m4_bouc_wen", relative=1e-9),
        _listed("m5_lugre", relative=1e-7),
        _listed("m6_rate_state"),
        _listed("m6_stability"),
        _listed("f5_ellipse", relative=1e-9),
        _listed("disc_slip_spin", relative=1e-9),
        _disc_in_proportion(),
        _listed("disc_break_loose", relative=1e-9),
        _listed("g6_rod"),
        _listed("d3_hunting", relative=1e-12),
        _listed("c1_shortest_time"),
        _listed("c2_voice_coil"),
        _listed("x1_coupled_clutches"),
        _listed("x1_one_way_clutch"),
        _listed("m7_gear_load", relative=1e-12),
        _listed("m7_self_locking", relative=1e-12),
        _listed("m7_load_reversal", relative=1e-12),
        _listed("m7_reaction", relative=1e-9),
        _listed("motor_start", relative=1e-10),
        _listed("d1_servo", relative=1e-9),
        _listed("d1_servo_squares", relative=1e-9),
        _listed("d2_loss_with_memory", relative=1e-9),
        _listed("m8_backlash", relative=1e-12),
        _listed("m8_ring_spring", relative=1e-12),
        _listed("m8_spline", relative=1e-12),
        *_for_ever(),
        _listed("disc_incline"),
        _listed("disc_in_bowl", relative=1e-9),
        _listed("slider_crank", relative=0.0),
        _listed("joint_pendulum", relative=1e-10),
        _listed("joint_slider_crank", relative=1e-10),
        *(_listed(name, relative=1e-9) for name in ("p1_ball", "p1_ball_other")),
        _listed("p2_grazing"),
        _listed("p5_continuous_slip"),
        _listed("relief_valve", relative=1e-9),
        _listed("p4_linear"),
        _listed("p6_duffing"),
        _listed("p6_duffing_response"),
        _listed("r6_arm", relative=0.0),
        _listed("s1_flutter"),
    ]


def _listed(name: str, relative: float = 1e-10) -> Case:
    """The shipped system of this name, with the content of its file in ``data/``."""
    path = _DATA / f"{name}.json"
    if not path.is_file():
        return Case(name, name, relative=relative)
    data = json.loads(path.read_text("utf-8"))
    sequence = tuple(data.get("sequence", ()))
    return _case(name, name, data["expected"], data["source"], sequence=sequence, relative=relative)


def _case(
    name: str,
    config: str,
    values: Mapping[str, float],
    source: str = _CLOSED_FORM,
    tolerance: float = 0.0,
    **settings: Any,
) -> Case:
    """A case with expected ``values`` of one source and tolerance; ``settings``: other fields."""
    expected = tuple(Expected(x, value, tolerance, source) for x, value in values.items())
    return Case(name, config, expected=expected, **settings)


def _stops() -> list[Case]:
    """The block of ``f2_stop`` at other loads; all but the load ``f`` is 1, the limit 0.4."""
    found = []
    for part in (0.1, 0.9, 0.99):
        limit, ratio = 0.4, 1.0 / part
        f = part * limit
        time = limit / (limit**2 - f**2)
        along = 0.25 / (f * (ratio**2 - 1.0))
        across = 2.0 * ratio / (f * (4.0 * ratio**2 - 1.0))
        values = {"event_count": 1, "event_time(1)": time, "final.x": along, "final.y": across}
        name, changes = f"f2_stop load {part:g} of limit", {"load.F": f, "time.end": 1.1 * time}
        found.append(_case(name, "f2_stop", values, set=changes, relative=1e-9))
    return found


def _disc_in_proportion() -> Case:
    """The disc of ``disc_slip_spin`` with slip and spin in the proportion of its end, so that both
    fall at constant rates."""
    ratio, time, rim = 0.653001789205598, 0.7203604093106174, 2.0
    values = {"event_count": 1, "event_time(1)": time, "final.x": 0.5 * ratio * rim * time}
    later = 10.0 * rim * (1.0 - 0.25 / time)
    values |= {"final.theta": 5.0 * rim * time, "v.theta(0.25)": later}
    values |= {"v.x(0.25)": 0.1 * ratio * later}
    changes = {"initial.x.v": ratio * rim}
    name = "disc_slip_spin in proportion"
    return _case(name, "disc_slip_spin", values, set=changes, relative=1e-9)


def _for_ever() -> list[Case]:
    """Cases in which friction holds, or does not hold, over a million seconds."""
    end = 1e6
    moves = 0.5 * (4.91 - 0.5 * 9.81) * end**2
    slides = 5.0 - 0.4 * 9.81
    values = {
        "event_count": 0,
        "final.x": end + 0.5 * slides * end**2,
        "final.v.x": 1 + slides * end,
    }
    return [
        _listed("m9_hold", relative=1e-12),
        _case(
            "m9_hold pushed by 4.91 N",
            "m9_hold",
            {"final.x": moves, "event_count": 0},
            set={"load.F": 4.91},
            # The push exceeds the limit by a thousandth of it, which amplifies rounding a thousand
            # times.
            relative=1e-11,
        ),
        _listed("m9_static_kinetic", relative=1e-12),
        _case(
            "m9_static_kinetic already sliding",
            "m9_static_kinetic",
            values,
            set={"initial.x.v": 1.0},
            relative=1e-12,
        ),
    ]


def _time_stepping() -> list[Case]:
    """Schemes of fixed step: their own discrete solutions, and exact values at their order."""
    own = "reference implementation of the scheme"
    rows = (
        (0.5, 1e-2, 0.1374358212),
        (0.5, 1e-3, 0.1387514322),
        (0.5, 1e-4, 0.1389069361),
        (1.0, 1e-2, 0.1759925445),
        (1.0, 1e-3, 0.1431450128),
        (1.0, 1e-4, 0.1393530871),
    )
    result = [
        _case(
            f"ve0116 theta={theta:g} dt={dt:g}",
            "ve0116",
            {"u(1)": value},
            own,
            5.1e-11,
            solver={"name": "moreau-jean", "theta": theta, "dt": dt},
        )
        for theta, dt, value in rows
    ]
    # First order at switches: an error of half a step in a switching time moves the later motion.
    result += [
        _case(
            f"ve0116 {name}",
            "ve0116",
            {"u(1)": 0.1389304187383115, "u(2)": 0.2805962394559113, "final.u": 0.32},
            tolerance=1e-4,
            solver={"name": name, "dt": 1e-4},
        )
        for name in ("moreau-jean", "stabilised-midpoint")
    ]
    times = (10.0, 50.0, 100.0, 200.0, 300.0)
    states = (
        0.33939342027690417,
        0.3623448103062179,
        -0.5781546102767835,
        0.3616485542299593,
        -0.45787500187309704,
    )
    displacements = [
        Expected(f"ut({t:g})", x, 1.1e-7, _CLOSED_FORM) for t, x in zip(times, states, strict=True)
    ]
    published = "Janovsky 2015, example 5.3"
    result += [
        Case(
            "janovsky_5_3 stabilised",
            "janovsky_4_1",
            expected=(Expected("event_count", 60, 0.0, published), *displacements),
            solver={"name": "stabilised-midpoint", "dt": 1e-3},
        ),
        # The count changes by a few with rounding.
        Case(
            "janovsky_5_3 plain",
            "janovsky_4_1",
            expected=(Expected("event_count", 23_000, 230.0, published), *displacements),
            solver={"name": "midpoint", "dt": 1e-3, "max_events": 30_000},
        ),
        Case(
            "sdnd106 moreau-jean",
            "sdnd106",
            expected=(
                Expected("x1(0.15)", 1.353337660892898, 2e-3, _CLOSED_FORM),
                Expected("x2(0.15)", 1.807532466175952, 2e-3, _CLOSED_FORM),
                Expected("event_time(1)", 0.03512407365520363, 2e-4, _CLOSED_FORM),
                Expected("event_time(2)", 0.3149232754474865, 2e-4, _CLOSED_FORM),
            ),
            solver={"name": "moreau-jean", "dt": 1e-4},
        ),
    ]
    return result


def _ve0116_variants() -> list[Case]:
    """Other coefficients of friction: mu, phases, stop time, residual, u(1), u(2)."""
    rows = (
        (0.09, 8, 3.554306350526693, 0.288, 0.1338769396752, 0.2826856753743),
        (0.11, 7, 3.110018056710856, 0.292, 0.1439838978014, 0.2785068035375),
        (0.12, 6, 2.665729762895020, 0.288, 0.1490373768645, 0.2764173676191),
    )
    return [
        _case(
            f"ve0116 mu={mu:g}",
            "ve0116",
            {
                "event_count": phases,
                "last_event_time": stop,
                "final.u": residual,
                "u(1)": first,
                "u(2)": second,
            },
            set={"friction.mu": mu},
        )
        for mu, phases, stop, residual, first, second in rows
    ]


def _ve0116_staircase() -> list[Case]:
    """Residual displacement over the coefficient of friction.

    With d = mu Fz / k and x_s = Fx / k the mass turns n = ceil((x_s/d - 1)/2) times, stops after
    n half periods, and stays at x_s + (-1)^(n+1) (x_s - 2 n d).
    """
    coefficients = (0.03, 0.05, 0.07, 0.08, 0.11, 0.12, 0.15, 0.2, 0.25, 0.4, 0.7, 1.0, 1.4, 1.6)
    mass, stiffness, push, normal = 100.0, 5000.0, 1500.0, 1000.0
    rest = push / stiffness
    result = []
    for mu in coefficients:
        d = mu * normal / stiffness
        # Rounded: the quotient is an exact integer on an edge, where its float may lie beyond.
        phases = max(math.ceil(round((rest / d - 1.0) / 2.0, 9)), 0)
        residual = rest - (-1) ** phases * (rest - 2 * phases * d)
        stop = phases * math.pi * math.sqrt(mass / stiffness)
        values = {"event_count": phases, "final.u": residual if phases else 0.0}
        values |= {"last_event_time": stop} if phases else {}
        changes = {"friction.mu": mu, "time.end": 12.0}
        result.append(_case(f"ve0116 staircase mu={mu:g}", "ve0116", values, set=changes))
    return result

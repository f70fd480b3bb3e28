"""A slider-crank with friction, by its bodies and by the angle of its crank, as problems."""

from __future__ import annotations

from references import moreau_crank

import jfric
from jfric.files.read_toml import loads
from jfric.verification.configs import shipped

CRANK = moreau_crank.Crank()
#: Kinetic energy of a slider-crank by the angle of its crank.
ROOT = "sqrt(l^2 - r^2*sin(a)^2)"
KINETIC = (
    "0.5*(J1 + m1*r^2/4)*v.a^2"
    f" + 0.5*J2*(r*cos(a)/{ROOT}*v.a)^2"
    f" + 0.5*m2*((r*sin(a)*(1 + r*cos(a)/(2*{ROOT})))^2 + (r*cos(a)/2)^2)*v.a^2"
    f" + 0.5*m3*(r*sin(a)*(1 + r*cos(a)/{ROOT})*v.a)^2"
)


def crank_by_angle(N, end):
    m, J = CRANK.m, CRANK.J
    numbers = {"m1": m[0], "m2": m[1], "m3": m[2], "J1": J[0], "J2": J[1]}
    return jfric.Problem(
        {"a": "rotation"},
        {
            "lagrangian": jfric.Lagrangian(KINETIC, f"{moreau_crank.G}*(m1 + m2)*r/2*sin(a)"),
            "friction": jfric.Friction(
                sliding=f"r*cos(a) + {ROOT}", law=jfric.Coulomb(CRANK.mu), N=N
            ),
        },
        initial={"a": jfric.InitialState(CRANK.angle, CRANK.omega)},
        time=end,
        parameters={"r": CRANK.r, "l": CRANK.l, **numbers},
    )


def crank_by_bodies(end):
    """The shipped file, with friction on the reaction of the guide."""
    text = shipped("slider_crank").read_text(encoding="utf-8").partition("[solver]")[0]
    text = text.replace("turns = false", f"turns = false\nmu = {CRANK.mu}")
    return loads(text.replace('end = "10 s"', f"end = {end}")).problem

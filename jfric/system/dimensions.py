"""Dimensions of fields, on degrees of freedom that translate or rotate.

A new element is one line for each of its fields; a field without a line takes any unit.
"""

from __future__ import annotations

from jfric.system.units import DIMENSIONS, Dimension

#: Field to the names of its dimension along a translation and along a rotation.
FIELDS: dict[tuple[str, str], tuple[str, str]] = {
    ("mass", "m"): ("mass", "moment of inertia"),
    ("spring", "k"): ("stiffness", "rotational stiffness"),
    ("spring", "x0"): ("length", "angle"),
    ("damper", "c"): ("damping", "rotational damping"),
    ("diagram_spring", "x"): ("length", "angle"),
    ("diagram_spring", "F"): ("force", "torque"),
    ("gap_spring", "k_positive"): ("stiffness", "rotational stiffness"),
    ("gap_spring", "k_negative"): ("stiffness", "rotational stiffness"),
    ("gap_spring", "gap_positive"): ("length", "angle"),
    ("gap_spring", "gap_negative"): ("length", "angle"),
    ("stop", "k"): ("stiffness", "rotational stiffness"),
    ("stop", "gap"): ("length", "angle"),
    ("stop", "c"): ("damping", "rotational damping"),
    ("jenkins", "k"): ("stiffness", "rotational stiffness"),
    ("jenkins", "R"): ("force", "torque"),
    # Translation and rotation may be coupled: checked where the kinds are known.
    ("jenkins_coupling", "k"): ("stiffness", "rotational stiffness"),
    ("jenkins", "z0"): ("length", "angle"),
    ("maxwell_slip", "k"): ("stiffness", "rotational stiffness"),
    ("maxwell_slip", "R"): ("force", "torque"),
    ("maxwell_slip", "z0"): ("length", "angle"),
    ("masing_spring", "x"): ("length", "angle"),
    ("masing_spring", "F"): ("force", "torque"),
    ("masing_spring", "z0"): ("length", "angle"),
    ("iwan", "K_T"): ("stiffness", "rotational stiffness"),
    ("iwan", "F_S"): ("force", "torque"),
    ("iwan", "chi"): ("pure number", "pure number"),
    ("iwan", "beta"): ("pure number", "pure number"),
    ("iwan", "z0"): ("length", "angle"),
    ("dahl", "sigma"): ("stiffness", "rotational stiffness"),
    ("dahl", "F_c"): ("force", "torque"),
    ("dahl", "z0"): ("length", "angle"),
    ("bouc_wen", "k"): ("stiffness", "rotational stiffness"),
    ("bouc_wen", "n"): ("pure number", "pure number"),
    ("bouc_wen", "A"): ("pure number", "pure number"),
    ("bouc_wen", "z0"): ("length", "angle"),
    ("lugre", "sigma0"): ("stiffness", "rotational stiffness"),
    ("lugre", "sigma1"): ("damping", "rotational damping"),
    ("lugre", "sigma2"): ("damping", "rotational damping"),
    ("lugre", "F_c"): ("force", "torque"),
    ("lugre", "F_s"): ("force", "torque"),
    ("lugre", "v_s"): ("velocity", "angular velocity"),
    ("lugre", "breakaway"): ("pure number", "pure number"),
    ("lugre", "z0"): ("length", "angle"),
    ("rate_state", "N"): ("force", "torque"),
    ("rate_state", "mu0"): ("pure number", "pure number"),
    ("rate_state", "a"): ("pure number", "pure number"),
    ("rate_state", "b"): ("pure number", "pure number"),
    ("rate_state", "D_c"): ("length", "angle"),
    ("rate_state", "V0"): ("velocity", "angular velocity"),
    ("rate_state", "psi0"): ("pure number", "pure number"),
    ("friction", "position"): ("length", "angle"),
    ("friction", "N"): ("force", "torque"),
    ("friction", "limit"): ("force", "torque"),
    ("friction", "belt"): ("velocity", "angular velocity"),
    ("contact", "gap"): ("length", "angle"),
    ("contact", "e"): ("pure number", "pure number"),
    ("contact", "belt"): ("velocity", "angular velocity"),
    ("contact", "radius"): ("length", "length"),
    ("contact", "circle_radius"): ("length", "length"),
    ("body", "m"): ("mass", "mass"),
    ("body", "J"): ("moment of inertia", "moment of inertia"),
    ("body", "at"): ("length", "length"),
    ("body", "angle"): ("angle", "angle"),
    ("body", "v"): ("velocity", "velocity"),
    ("body", "omega"): ("angular velocity", "angular velocity"),
    ("body", "points"): ("length", "length"),
    ("ground", "points"): ("length", "length"),
    ("gear", "radii"): ("length", "length"),
    ("pin", "radius"): ("length", "length"),
    ("rolling", "radius"): ("length", "length"),
    ("rolling", "circle_radius"): ("length", "length"),
    ("gravity", "g"): ("acceleration", "acceleration"),
    ("gravity", "tilt"): ("angle", "angle"),
    ("link_spring", "k"): ("stiffness", "stiffness"),
    ("link_spring", "c"): ("damping", "damping"),
    ("link_spring", "x0"): ("length", "length"),
    ("load", "F"): ("force", "torque"),
    ("base", "displacement"): ("length", "angle"),
    ("pendulum", "m"): ("mass", "mass"),
    ("pendulum", "L"): ("length", "length"),
    ("pendulum", "g"): ("acceleration", "acceleration"),
    ("drag", "c"): ("drag", "rotational drag"),
    ("velocity", "v"): ("velocity", "angular velocity"),
    ("initial", "q"): ("length", "angle"),
    ("initial", "v"): ("velocity", "angular velocity"),
}

#: Fields of friction laws, in any element that has a law.
LAW_FIELDS = {
    "mu": ("pure number", "pure number"),
    "mu_s": ("pure number", "pure number"),
    "mu_d": ("pure number", "pure number"),
    "mu_v": ("inverse velocity", "inverse angular velocity"),
    "v_s": ("velocity", "angular velocity"),
    "exponent": ("pure number", "pure number"),
    "peak": ("pure number", "pure number"),
    "speeds": ("velocity", "angular velocity"),
    "curve": ("pure number", "pure number"),
    "radius": ("length", "length"),
}

#: Entries of full matrices: both coordinates translate, one of them, none.
MATRICES = {
    "M": ("mass", "mass times length", "moment of inertia"),
    "C": ("damping", "impulse", "rotational damping"),
    "K": ("stiffness", "force", "rotational stiffness"),
}


def dimension(section: str, field: str, of_kind: str | None) -> Dimension | None:
    """Dimension of the field ``section.field``; None where the dimension is not checked."""
    names = LAW_FIELDS.get(field) or FIELDS.get((section, field))
    if names is None or (of_kind is None and names[0] != names[1]):
        return None
    return DIMENSIONS[names[of_kind == "rotation"]]


def polynomial_dimension(power: int, of_kind: str | None) -> Dimension | None:
    """Dimension of the coefficient of ``x^power`` of a polynomial spring, where it is known."""
    if of_kind is None or of_kind == "rotation":
        return DIMENSIONS["torque"] if of_kind else None
    unit = f"N/m^{power}" if power > 1 else "N/m"
    return Dimension(f"coefficient of x^{power}", unit, f"5 k{unit}")


def matrix_dimension(name: str, first: str, second: str) -> Dimension:
    """Dimension of an entry of the matrix ``name``, by the kinds of its two coordinates."""
    return DIMENSIONS[MATRICES[name][(first == "rotation") + (second == "rotation")]]

"""A mechanical system with its initial state and time span: a PyTree of arrays."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

import equinox as eqx
import numpy as np
from jax import Array
from jax.core import Tracer, eval_context

from jfric.errors import ProblemError
from jfric.numerics.printing import Shown, printable, short
from jfric.system.body import Body, Link, at_rest, dofs_of, turns_of
from jfric.system.body_checks import require_start
from jfric.system.description import AbstractProblem
from jfric.system.elements import SECTIONS
from jfric.system.expression import Expression
from jfric.system.fields import Scalar, scalar
from jfric.system.inertia import is_concrete
from jfric.system.joint_equations import in_loop, in_space
from jfric.system.linkage import Pin, has_joints
from jfric.system.naming import parameters, path_dimension, without_texts
from jfric.system.validation import require_values, validate


class InitialState(eqx.Module):
    """Initial state of one degree of freedom: ``q`` [m or rad] and ``v`` [m/s or rad/s].

    A start at 0.1 m with a velocity back::

        >>> start = jfric.InitialState(q=0.1, v=-2.0)
        >>> float(start.q), float(start.v)
        (0.1, -2.0)
    """

    q: Scalar = eqx.field(converter=scalar, default=0.0)
    v: Scalar = eqx.field(converter=scalar, default=0.0)


class TimeSpan(eqx.Module):
    """Simulated time: from ``start`` to ``end`` [s].

    Three seconds::

        >>> span = jfric.TimeSpan(end=4.0, start=1.0)
        >>> float(span.end - span.start)
        3.0
    """

    end: Scalar = eqx.field(converter=scalar)
    start: Scalar = eqx.field(converter=scalar, default=0.0)
    #: Whether the user has chosen it.
    given: bool = eqx.field(static=True, default=True)


def _entries(value):
    """Entries of a matrix; numbers and texts in rows are parameters of their own."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(_entries, value))
    return scalar(value) if isinstance(value, (str, int, float)) else value


class Matrices(eqx.Module):
    """Full matrices added to those of the elements: ``M q'' + C q' + K q``.

    Each is (n, n): an array, or rows of numbers, texts with units and expressions. Two
    masses of 1 kg on springs::

        >>> K = [[2.0, -1.0], [-1.0, jfric.Expression("$k")]]
        >>> beam = jfric.Problem(
        ...     ["a", "b"], {}, matrices=jfric.Matrices(M=jnp.eye(2), K=K), parameters={"k": 1.0}
        ... )
        >>> [[float(x) for x in row] for row in beam.resolved().matrices.K]
        [[2.0, -1.0], [-1.0, 1.0]]
    """

    M: object = eqx.field(converter=_entries, default=None)
    C: object = eqx.field(converter=_entries, default=None)
    K: object = eqx.field(converter=_entries, default=None)


def _dofs(given: Any) -> dict[str, str]:
    """Degrees of freedom and their kinds."""
    if isinstance(given, Mapping):
        return dict(given)
    if not isinstance(given, str) and not isinstance(given, Iterable):
        raise ProblemError(f"dofs: found {given!r}, expected names such as ['u']")
    names = [given] if isinstance(given, str) else list(given)
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ProblemError(f"dofs: found {name!r} twice, names must differ")
    return dict.fromkeys(names, "translation")


def _sections(elements: Any) -> str | None:
    """Text of the sections for elements in a list; None where the list holds anything else."""
    names = {cls: section for section, cls in SECTIONS.items()}
    given = elements if isinstance(elements, (list, tuple)) else [elements]
    kinds = [type(e) for e in given]
    if not kinds or not all(kind in names for kind in kinds):
        return None
    found = {}
    for cls in kinds:
        one, several = f"{cls.__name__}(...)", kinds.count(cls) > 1
        found[names[cls]] = f'{{"a": {one}, "b": {one}}}' if several else one
    return "{" + ", ".join(f'"{section}": {what}' for section, what in found.items()) + "}"


@printable
class Problem(AbstractProblem):
    """A system of masses, springs, friction and contacts, its initial state and time span.

    ``dofs`` maps each degree of freedom to ``"translation"`` or ``"rotation"``; a list of names, or
    one name, are translations. ``elements`` maps
    section to name to element (see :data:`jfric.system.elements.SECTIONS`). Every number is an
    array leaf, or an :class:`Expression` in the shared ``parameters``; it may be given as a text
    with its unit (``Mass("u", "100 kg")``), as in files. ``initial``: states by
    degree of freedom (:class:`InitialState`, a position or a pair of position and velocity), zero
    unless given; contacts must not penetrate. Degrees of freedom of a
    :class:`jfric.Body` follow those of ``dofs``; parts of their start that are not given follow
    from the joints (``follows``). ``time``: the end [s], or a :class:`TimeSpan`; equilibria and
    periodic motion need none, and motion without it is computed for 1 s, with a warning.
    ``matrices``: full matrices in addition to the elements.

    A problem is data: nothing is computed when it is made. :func:`jfric.build`, which solvers call,
    completes the start by the joints and checks it. Raises :class:`jfric.ProblemError` where the
    description contradicts itself (only checked for concrete numbers, not under ``jit``). A mass on
    a spring that slides and sticks under a load::

        >>> problem = jfric.Problem(
        ...     ["u"],
        ...     {
        ...         "mass": jfric.Mass("u", 100.0),
        ...         "spring": jfric.Spring("u", 5000.0),
        ...         "friction": jfric.Friction("u", jfric.Coulomb(0.1), N=1000.0),
        ...         "load": jfric.Load("u", 1500.0),
        ...     },
        ...     initial={"u": jfric.InitialState(q=0.0, v=0.0)},
        ...     time=4.0,
        ... )
        >>> problem.dofs
        {'u': 'translation'}
    """

    dofs: dict[str, str] = eqx.field(static=True)
    elements: dict[str, dict[str, eqx.Module]]
    initial: dict[str, InitialState]
    time: TimeSpan
    parameters: dict[str, Scalar]
    matrices: Matrices
    #: Parts of the start (degree of freedom, ``"q"`` or ``"v"``) that are not given: they follow
    #: from the joints, near the values in ``initial``.
    follows: tuple[tuple[str, str], ...] = eqx.field(static=True)

    def __init__(
        self,
        dofs: Mapping[str, str] | Iterable[str] | str,
        elements: Mapping[str, Mapping[str, eqx.Module] | eqx.Module],
        *,
        initial: Mapping[str, Any] | None = None,
        time: TimeSpan | float | str | None = None,
        parameters: Mapping[str, object] | None = None,
        matrices: Matrices | None = None,
        follows: Iterable[tuple[str, str]] | None = None,
    ):
        self.dofs = _dofs(dofs)
        for field, given, example in (
            ("elements", elements, '{"mass": jfric.Mass("u", 1.0)}'),
            ("initial", initial or {}, '{"u": jfric.InitialState(q=0.1)}'),
            ("parameters", parameters or {}, '{"m": 2.0}'),
        ):
            if not isinstance(given, Mapping):
                raise ProblemError(
                    f"{field}: found a {type(given).__name__}, expected names with what they are, "
                    f"{_sections(given) or example}"
                )
        initial = {dof: _as_state(dof, state) for dof, state in (initial or {}).items()}
        if not isinstance(matrices, Matrices | None):
            raise ProblemError(
                f"matrices: found a {type(matrices).__name__}, expected jfric.Matrices(K=...)"
            )
        # Ordered: tree transformations sort the keys of plain dictionaries.
        self.elements = OrderedDict(
            (section, OrderedDict(group if isinstance(group, Mapping) else {section: group}))
            for section, group in elements.items()
        )
        given, free = self._with_bodies(initial)
        free |= self._with_links(given)
        given_velocities = {dof for dof, state in given.items() if not _is_zero(state.v)}
        self.initial = OrderedDict((dof, given.pop(dof, InitialState())) for dof in self.dofs)
        self.initial.update(given)
        if not isinstance(time, TimeSpan):
            time = TimeSpan(1.0, given=False) if time is None else TimeSpan(time)
        self.time = time
        self.parameters = OrderedDict((k, scalar(v)) for k, v in (parameters or {}).items())
        self.matrices = matrices if matrices is not None else Matrices()
        for part in ("elements", "initial", "time", "parameters", "matrices"):
            setattr(self, part, without_texts(self, part))
        if follows is None:
            free |= self._with_velocities(given_velocities)
        else:
            free = set(follows)
        self.follows = tuple(sorted(free)) if has_joints(self) else ()
        validate(self)

    def require_numbers(self) -> None:
        """Raise :class:`jfric.ProblemError` for numbers that are known and not allowed."""
        if is_concrete(self):
            with eval_context():
                require_values(self.resolved())

    def _shown(self) -> Shown:
        count = sum(map(len, self.elements.values()))
        start, end = short(self.time.start), short(self.time.end)
        title = f"Problem: {', '.join(self.dofs)}; {count} elements; {start} s to {end} s"
        rows = [
            (name, f"= {value.text}" if isinstance(value, Expression) else short(value), unit)
            for name, value in parameters(self).items()
            for measures in [path_dimension(self, name)]
            for unit in [measures.unit if measures else ""]
        ]
        return Shown(title, ("parameter", "value", "unit"), rows)

    def _with_velocities(self, given: set[str]) -> set[tuple[str, str]]:
        """Rates of degrees of freedom that start with velocities that the user defines; ``given``:
        degrees of freedom whose own rate is given."""
        free = set()
        for name, element in self.section("velocity").items():
            if element.v is None or not isinstance(element.moves, tuple):
                continue
            for dof, _ in element.moves:
                if dof in given:
                    raise ProblemError(
                        f"initial.{dof}.v: the velocity {name!r} gives the start of {dof!r} as "
                        "well; keep one"
                    )
                free.add((dof, "v"))
        return free

    def _with_bodies(
        self, given: dict[str, InitialState]
    ) -> tuple[dict[str, InitialState], set[tuple[str, str]]]:
        """Initial states with those of the bodies, which are removed there, so that each is stored
        once; and the states (degree of freedom, ``"q"`` or ``"v"``) that are not given."""
        free = {(dof, x) for dof in dofs_of(self.elements.get("body", {})) for x in "qv"}
        free -= {(dof, x) for dof in given for x in "qv"}
        bodies = {k: b for k, b in self.elements.get("body", {}).items() if isinstance(b, Body)}
        for name, body in bodies.items():
            require_start(name, body)
        for dof, kind in dofs_of(bodies).items():
            if self.dofs.setdefault(dof, kind) != kind:
                raise ProblemError(f"dofs.{dof}: must be a {kind}, it belongs to a body; rename it")
        for name, body in bodies.items():
            for coordinate, (q, v) in body.start().items():
                dof = f"{name}_{coordinate}"
                if q is None and v is None:
                    continue
                if dof in given:
                    raise ProblemError(
                        f"initial.{dof}: the body {name!r} gives its start as well; keep one"
                    )
                given[dof] = InitialState(0.0 if q is None else q, 0.0 if v is None else v)
                free -= {(dof, x) for x, value in (("q", q), ("v", v)) if value is not None}
            self.elements["body"][name] = at_rest(body)
        return given, free

    def _with_links(self, given: dict[str, InitialState]) -> set[tuple[str, str]]:
        """Add the degrees of freedom of links; quaternions start without a turn unless they are
        ``given``. The states of joints in loops that are not given are returned; nobody gives
        rates of quaternions."""
        free: set[tuple[str, str]] = set()
        every = self.elements.get("link", {}).items()
        links = {name: link for name, link in every if isinstance(link, Link)}
        for pin in self.elements.get("pin", {}).values():
            if not (isinstance(pin, Pin) and in_space(self, pin)):
                continue
            for dof, turns in in_loop(links, pin).items():
                if dof not in given or (turns and _is_zero(given[dof].v)):
                    free.add((dof, "v"))
                if dof not in given and not turns:
                    free.add((dof, "q"))
        for name, link in self.elements.get("link", {}).items():
            own = link.coordinates(name) if isinstance(link, Link) else {}
            for dof, kind in own.items():
                if self.dofs.setdefault(dof, kind) != kind:
                    raise ProblemError(
                        f"dofs.{dof}: must be a {kind}, it belongs to a link; rename it"
                    )
            turns = turns_of(own)
            if turns and not any(dof in given for dof in turns):
                given[turns[0]] = InitialState(1.0)
        return free


def _as_state(dof: str, given: Any) -> InitialState:
    """A start that is given as a state, a position, or position and velocity."""
    if isinstance(given, InitialState):
        return given
    parts = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    numbers = (str, int, float, np.ndarray, np.number, Array, Expression)
    single = all(isinstance(x, numbers) and np.ndim(x) == 0 for x in parts)  # pyright: ignore
    if not (1 <= len(parts) <= 2 and single):
        raise ProblemError(
            f"initial.{dof}: found {given!r}, expected jfric.InitialState(q=..., v=...), a "
            "position or a pair (position, velocity)"
        )
    return InitialState(*parts)


def _is_zero(value) -> bool:
    """Whether a number is known to be zero, as it is where none is given."""
    return not isinstance(value, Expression | Tracer) and not np.any(np.asarray(value))

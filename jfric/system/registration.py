"""Elements and friction laws from outside the package, by their names in files."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import TypeVar

from jfric.errors import ProblemError
from jfric.system.bristle import BRISTLES, AbstractBristle
from jfric.system.controller import AbstractController
from jfric.system.elements import SECTIONS, AbstractForce
from jfric.system.hysteresis import HYSTERESIS, AbstractHysteresis
from jfric.system.laws import LAWS, AbstractLaw

C = TypeVar("C", bound=type)

#: Group of entry points, each the name of a section or of a law and its class.
GROUP = "jfric.elements"
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
#: Base classes of such classes, and the tables with their names.
_KINDS: dict[type, tuple[dict, ...]] = {
    AbstractForce: (SECTIONS,),
    AbstractBristle: (SECTIONS, BRISTLES),
    AbstractHysteresis: (SECTIONS, HYSTERESIS),
    AbstractLaw: (LAWS,),
    AbstractController: (SECTIONS,),
}


def register(name: str) -> Callable[[C], C]:
    """A decorator that registers a class: an element by the section ``name``, a law by its name.

    ``name``: small letters, digits, _ and -. The class is a :class:`jfric.elements.AbstractForce`
    (a smooth force), a :class:`jfric.elements.AbstractBristle` (friction with a state), a
    :class:`jfric.elements.AbstractHysteresis` (springs in series with sliders), a
    :class:`jfric.elements.AbstractController` or a :class:`jfric.laws.AbstractLaw`. Its fields say
    what they hold (:func:`jfric.holds`): files, messages, sweeps, fits, sketches and the manual
    read it from there. Files find classes of other packages by entry points of the group
    ``jfric.elements``. Raises :class:`jfric.ProblemError` for a name that is taken and for a class
    that is none of these. A spring that gets stiffer::

        >>> import equinox as eqx
        >>> @jfric.register("hard_spring")
        ... class HardSpring(jfric.elements.AbstractForce):
        ...     direction: jfric.Direction = eqx.field(converter=jfric.as_direction)
        ...     k: float = eqx.field(**jfric.holds("stiffness", at_least=0.0))
        ...
        ...     def force(self, axes, t, q, v):
        ...         w = self.direction.vector(axes)
        ...         return -w * self.k * jnp.sinh(w @ q)
        >>> system = {"mass": jfric.Mass("u", 1.0), "hard_spring": HardSpring("u", k="2 N/mm")}
        >>> problem = jfric.Problem("u", system, time=1.0)
        >>> float(jfric.get_parameter(problem, "hard_spring.k"))
        2000.0
    """

    def decorated(cls: C) -> C:
        kinds = [base for base in _KINDS if isinstance(cls, type) and issubclass(cls, base)]
        if not kinds or not hasattr(cls, "__dataclass_fields__"):
            allowed = ", ".join(f"jfric.{base.__name__}" for base in _KINDS)
            raise ProblemError(f"register: found {cls!r}, must be a subclass of one of {allowed}")
        if not _NAME.fullmatch(name):
            raise ProblemError(
                f"register: found the name {name!r}, names start with a small letter and hold "
                "small letters, digits, _ and -"
            )
        for known in _KINDS[kinds[0]]:
            if known.get(name, cls).__qualname__ != cls.__qualname__:
                raise ProblemError(
                    f"register: found the name {name!r}, which {known[name].__name__} has; take "
                    "another one"
                )
        for known in _KINDS[kinds[0]]:
            known[name] = cls
        return cls

    return decorated


@functools.cache
def register_installed() -> bool:
    """Register classes that installed packages announce by entry points; whether there are any."""
    found = entry_points(group=GROUP)
    for point in found:
        register(point.name)(point.load())
    return bool(found)

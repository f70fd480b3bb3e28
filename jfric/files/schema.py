"""The shape of a file, derived from the classes of the system's elements.

Only structure is checked here: keys, types, choices. Units are converted in ``build``, the meaning
is checked in :mod:`jfric.system.validation`.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Discriminator, Field, Tag, create_model
from pydantic.json_schema import GenerateJsonSchema

from jfric.files.data_tables import ControllerTable, DataTable, FitTable
from jfric.files.key_meanings import MEANINGS
from jfric.files.law_tables import Coefficient, Knots, PositionTable
from jfric.files.tables import (
    CheckTable,
    Coordinates,
    Count,
    DirectionValue,
    Dofs,
    Element,
    Elements,
    FreeElement,
    Function,
    Functions,
    Initial,
    MatricesTable,
    Number,
    Pair,
    PeriodicTable,
    Plane,
    Reference,
    ResponseTable,
    SolverTable,
    StaticsTable,
    Table,
    Time,
)
from jfric.system.dimensions import dimension
from jfric.system.direction import Direction
from jfric.system.elements import SECTIONS
from jfric.system.fields import about
from jfric.system.functions import AbstractFunction
from jfric.system.laws import LAWS, AbstractLaw

#: Sections that only Python can fill.
PYTHON_ONLY = ("force_field",)


F = TypeVar("F", bound=Callable)

#: A formula, or several.
_Formulas = Annotated[
    Annotated[str, Tag("@one")] | Annotated[list[str], Tag("@several")],
    Discriminator(lambda v: "@several" if isinstance(v, list) else "@one"),
]


def _unwrap(hint: Any) -> tuple[type, ...]:
    """The classes that a field's annotation admits."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(a for a in typing.get_args(hint) if isinstance(a, type))
    return (hint,) if isinstance(hint, type) else ()


def _while_known(function: F) -> F:
    """A cache that lasts while the same elements and laws are known."""

    @functools.cache
    def found(_, *arguments):
        return function(*arguments)

    @functools.wraps(function)
    def call(*arguments):
        return found((*SECTIONS.values(), *LAWS.values()), *arguments)

    return call  # pyright: ignore[reportReturnType]


@_while_known
def roles(section: str) -> dict[str, str]:
    """Fields of a section's element and what each holds: direction, plane, law, function, choice,
    or number, or what the field says of itself (:func:`jfric.system.fields.written`)."""
    cls = SECTIONS[section]
    hints, known = typing.get_type_hints(cls), about(cls)
    result = {}
    for f in dataclasses.fields(cls):
        classes = _unwrap(hints[f.name])
        if (form := known[f.name].form) is not None:
            result[f.name] = form
        elif f.name == "plane":
            result[f.name] = "plane"
        elif typing.get_origin(hints[f.name]) is Literal:
            result[f.name] = "choice"
        elif Direction in classes:
            result[f.name] = "direction"
        elif AbstractLaw in classes:
            result[f.name] = "law"
        elif AbstractFunction in classes:
            result[f.name] = "function"
        else:
            result[f.name] = "number"
    return result


def laws_of(section: str) -> dict[str, type[AbstractLaw]]:
    """Friction laws by name that a section's elements can have."""
    spins = "spin" in roles(section)
    return {name: law for name, law in LAWS.items() if spins or not law.spins}


def law_fields(section: str) -> tuple[str, ...]:
    """Keys of these laws."""
    laws = laws_of(section).values()
    return tuple(dict.fromkeys(f.name for law in laws for f in dataclasses.fields(law)))


def law_hint(key: str) -> Any:
    """Type of the value that the ``key`` of a friction law holds."""
    special: dict[str, Any] = {"speeds": list[Number], "curve": Knots}
    special |= {"monotone": bool, "radius": Number}
    return special.get(key, Coefficient)


def _or_none(hint: Any) -> Any:
    return hint | None


def _describe(section: str, field: str) -> str | None:
    units = {d.unit for k in ("translation", "rotation") if (d := dimension(section, field, k))}
    return f"[{' or '.join(sorted(u or '1' for u in units))}]" if units else None


@_while_known
def element_model(section: str) -> type[Element]:
    """The model of a section's elements."""
    cls = SECTIONS[section]
    hints = typing.get_type_hints(cls)
    fields: dict[str, Any] = {}
    for f in dataclasses.fields(cls):
        role = roles(section)[f.name]
        required = f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        default = ... if required else None
        info = Field(default, description=_describe(section, f.name))
        if role == "direction" and f.name == "direction":
            fields |= {
                "dof": (str | None, None),
                "between": (_or_none(Pair), None),
                "direction": (_or_none(DirectionValue), None),
            }
        elif role == "direction":
            fields[f.name] = (DirectionValue if required else _or_none(DirectionValue), info)
        elif role == "law":
            fields |= {
                k: (_or_none(law_hint(k)), Field(None, description=_describe("", k)))
                for k in law_fields(section)
            }
            fields["law"] = (_or_none(Literal[tuple(laws_of(section))]), None)
        else:
            in_plane = "plane" in roles(section)
            hint: Any = {
                "function": Functions if in_plane and f.name == "belt" else Function,
                "plane": Plane,
                "list": list[Number],
                "choice": hints[f.name],
                "formula": str,
                "formulas": dict[str, Number],
                "formula or several": _Formulas,
                "number": Number,
                "text": str,
                "texts": Pair,
                "bodies": Pair,
                "corners": list[str],
                "elements": Elements,
                "factor": PositionTable,
                "line": Reference,
                "flag": bool,
                "count": Count,
                "pair": Coordinates,
                "pairs": dict[str, Coordinates],
            }[role]
            fields[f.name] = (hint if required else _or_none(hint), info)
    attached = any(f.name == "direction" and f.default is not None for f in dataclasses.fields(cls))
    base = Element if attached or "plane" in roles(section) else FreeElement
    return create_model(cls.__name__, __base__=base, __doc__=cls.__doc__, **fields)


def is_flat(section: str, value: Any) -> bool:
    """Whether a section is written as one element, not as a table of named ones."""
    if not isinstance(value, dict):
        return True
    fields = element_model(section).model_fields
    return any(k in fields or not isinstance(v, dict) for k, v in value.items()) or not value


def _section_type(section: str) -> Any:
    element = element_model(section)
    return Annotated[
        Annotated[element, Tag("@flat")] | Annotated[dict[str, element], Tag("@named")],
        Discriminator(lambda v: "@flat" if is_flat(section, v) else "@named"),
    ]


@_while_known
def file_model() -> type[Table]:
    """The model of a whole file."""
    sections: dict[str, Any] = {
        name: (_or_none(_section_type(name)), None) for name in SECTIONS if name not in PYTHON_ONLY
    }
    return create_model(
        "File",
        __base__=Table,
        __doc__="A mechanical system with friction, gaps and impacts.",
        title=(str, ""),
        source=(str, ""),
        description=(str, ""),
        dofs=(Dofs | None, None),
        massless=(list[str], Field(default_factory=list)),
        time=(Time, ...),
        parameters=(dict[str, Number], Field(default_factory=dict)),
        **sections,
        initial=(dict[str, Initial], Field(default_factory=dict)),
        matrices=(MatricesTable, Field(default_factory=MatricesTable)),
        solver=(SolverTable, Field(default_factory=SolverTable)),
        statics=(StaticsTable | None, None),
        periodic=(PeriodicTable | None, None),
        response=(ResponseTable | None, None),
        data=(DataTable | None, None),
        controller=(ControllerTable | None, None),
        fit=(FitTable | None, None),
        check=(list[CheckTable], Field(default_factory=list)),
    )


class _WithoutNull(GenerateJsonSchema):
    """TOML has no null: what is not given is left out."""

    def nullable_schema(self, schema):
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema):
        result = super().default_schema(schema)
        return {k: v for k, v in result.items() if k != "default" or v is not None}


def json_schema() -> dict[str, Any]:
    """The JSON schema of a file, for completion and checks in editors."""
    schema = file_model().model_json_schema(schema_generator=_WithoutNull)
    for (table, key), meaning in MEANINGS.items():
        schema["$defs"][table]["properties"][key]["description"] = meaning
    return schema

"""One clear sentence for what is wrong with the shape of a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from jfric.errors import ProblemError, close_matches, quoted
from jfric.files.schema import PYTHON_ONLY, element_model, file_model
from jfric.system.dimensions import dimension
from jfric.system.elements import SECTIONS
from jfric.system.fields import About, about
from jfric.system.units import DIMENSIONS, expected

_DIRECTIONS = ("dof", "between", "direction", "normal", "tangent", "plane")

#: What to give for a field that refers to points of bodies.
_SHAPES = {
    "text": "a point such as 'rod.tip'",
    "bodies": "two bodies such as ['wheel', 'pinion']",
    "texts": "two points such as ['rod.tip', 'ground']",
    "corners": "corners such as ['box.a', 'box.b', 'box.c']",
    "line": "a line such as 'ground'",
    "pair": "two numbers such as [0.5, 0]",
}

_KINDS = {
    "dict_type": "a table",
    "model_type": "a table",
    "list_type": "a list",
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number in SI units, without a unit",
    "bool_type": "true or false",
}


def did_you_mean(found: str, allowed: Iterable[str]) -> str:
    """``; did you mean 'mu'?`` for the nearest of ``allowed``, or nothing."""
    names = list(allowed)
    close = close_matches(found, names)
    # Short names have no ratio to speak of: take one that starts alike.
    close = close or [n for n in names if found and n.lower().startswith(found.lower())][:1]
    return f"; did you mean {close[0]!r}?" if close else ""


def dotted(parts: Sequence[Any]) -> str:
    """``friction.pad.mu``, entries of lists as ``check[2]`` counted from 1; tags dropped."""
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part + 1}]"
        elif not str(part).startswith("@") and part != "[key]":
            text += f".{part}" if text else str(part)
    return text


def describe(value: Any) -> str:
    """A value of a file in words."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a number of {value.bit_length()} bits"  # too long for Python to write
    return str(value)


def shape_error(error: ValidationError) -> ProblemError:
    """The first mistake in the shape of a file; misspelt keys go before what they leave missing."""
    details = error.errors(include_url=False)
    unknown = [d for d in details if d["type"] == "extra_forbidden"]
    return ProblemError(_sentence((unknown or details)[0]))


def _sentence(detail: Any) -> str:
    parts, value, kind = detail["loc"], detail["input"], detail["type"]
    where, context = dotted(parts), detail.get("ctx", {})
    prefix = f"{where}: " if where else ""
    if kind == "extra_forbidden":
        return f"{where}: {_unknown(parts, value)}"
    if kind == "missing":
        model = _model(parts[:-1])
        section = parts[0] if len(parts) > 1 else ""
        holding = _expected(parts) if section in SECTIONS or section in ("time",) else None
        hint = f"; give {holding}" if holding else ""
        if model is file_model():
            hint = '; give [time] end = "4 s"'
        return f"{where}: missing{hint}"
    if kind == "literal_error":
        allowed = context["expected"].replace(" or ", ", ")
        names = [a.strip().strip("'") for a in allowed.split(",")]
        return f"{prefix}found {describe(value)}, allowed are {allowed}" + did_you_mean(
            str(value), names
        )
    if kind == "no_number":
        return f"{prefix}found {describe(value)}, expected {_expected(parts)}"
    if kind == "exactly_one":
        return f"{prefix}{detail['msg']}"
    if kind in _KINDS:
        return f"{prefix}found {describe(value)}, expected {_kind(parts, kind)}"
    if kind in ("too_short", "too_long"):
        return f"{prefix}found {len(value)} entries, needed are {_length(context)}"
    if kind == "finite_number":
        return f"{prefix}found {describe(value)}, must be finite"
    limits = {
        "greater_than": ("gt", "greater than"),
        "less_than": ("lt", "less than"),
        "greater_than_equal": ("ge", "at least"),
        "less_than_equal": ("le", "at most"),
    }
    if kind in limits:
        key, words = limits[kind]
        return f"{prefix}found {describe(value)}, must be {words} {context[key]:g}"
    return f"{prefix}found {describe(value)}, {detail['msg'][:1].lower()}{detail['msg'][1:]}"


def _kind(parts: Sequence[Any], kind: str) -> str:
    """Words for the value expected at ``parts``, where the value found has the wrong type."""
    named = [p for p in parts if isinstance(p, str) and not p.startswith("@")]
    if kind == "string_type" and named[-1] in _DIRECTIONS:
        return "a degree of freedom such as 'u'"
    if kind == "model_type" and named[0] == "initial":
        return "a table; write [initial.u] with q and v"
    if kind == "list_type" and named == ["check"]:
        return "a list of tables; write [[check]]"
    if kind == "list_type" and named in (["dofs"], ["massless"]):
        return 'a list such as ["u"]'
    return _KINDS[kind]


def _length(context: dict[str, Any]) -> int:
    return context.get("min_length", context.get("max_length", 0))


def _unknown(parts: Sequence[Any], value: Any) -> str:
    key = str(parts[-1])
    model = _model(parts[:-1])
    if len(parts) == 1 and key in PYTHON_ONLY:
        return "can only be given in Python, a file cannot hold a function"
    if model is file_model():
        names = list(model.model_fields)
        return f"unknown section, allowed are {', '.join(names)}{did_you_mean(key, names)}"
    names = list(model.model_fields) if model else []
    if (
        parts[0] in SECTIONS
        and "@flat" in parts[:2]
        and isinstance(value, dict)
        and ("dof" in names or "displacement" in names)
    ):
        section = parts[0]
        return (
            f"a table among the fields of {section}; write one [{section}] with fields, "
            f"or only named ones such as [{section}.{key}]"
        )
    return f"unknown field, allowed are {', '.join(names)}{did_you_mean(key, names)}"


def _model(parts: Sequence[Any]) -> type[BaseModel] | None:
    """The model of the table at ``parts``."""
    model: Any = file_model()
    for index, part in enumerate(parts):
        if index == 0 and part in SECTIONS:
            model = element_model(part)
            continue
        if not isinstance(part, str) or part.startswith("@") or not hasattr(model, "model_fields"):
            continue
        info = model.model_fields.get(part)
        if info is not None:
            model = _table_of(info.annotation) or model
    return model


def _table_of(annotation: Any) -> type[BaseModel] | None:
    """The model inside an annotation such as ``list[X] | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        if (found := _table_of(argument)) is not None:
            return found
    return None


def _expected(parts: Sequence[Any]) -> str:
    """Words for the value expected at ``parts``, such as the quantity that the field measures."""
    named = [p for p in parts if isinstance(p, str) and not p.startswith("@")]
    section, field = (
        named[0],
        next((p for p in named[1:] if dimension(named[0], p, "translation")), named[-1]),
    )
    if section == "time":
        return expected(DIMENSIONS["time"])
    known = about(SECTIONS[section]) if section in SECTIONS else {}
    if (form := known.get(named[-1], About()).form) in _SHAPES:
        return _SHAPES[form]
    if field in _DIRECTIONS:
        return "a degree of freedom such as 'u'"
    return expected(dimension(section, field, "translation"))

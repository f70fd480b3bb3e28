"""The reference of files: every key that the schema admits, with its unit, default and meaning."""

from __future__ import annotations

import inspect
import re
from typing import Any

from generators.rst import heading, literal, table
from jfric.files.codec import Key
from jfric.files.element_codec import element_codec
from jfric.files.read_toml import file_codec, json_schema
from jfric.system.elements import SECTIONS


def schema_keys() -> dict[str, list[str]]:
    """Keys of each table of the schema, by the name of the table."""
    schema = json_schema()
    tables = {name: list(part.get("properties", {})) for name, part in schema["$defs"].items()}
    return {"File": list(schema["properties"])} | {k: v for k, v in tables.items() if v}


def _named(definition: str) -> str | None:
    """The section whose elements a definition describes."""
    return next((s for s, c in SECTIONS.items() if c.__name__ == definition), None)


def _kind(part: dict[str, Any]) -> str:
    """What may stand for a key, in a few words."""
    if "$ref" in part:
        return f":ref:`{_title(part['$ref'].rsplit('/')[-1])} <{_label(part['$ref'])}>`"
    if "enum" in part:
        return " or ".join(literal(x) for x in part["enum"])
    options = part.get("anyOf") or part.get("oneOf") or part.get("allOf")
    if options:
        kinds = list(dict.fromkeys(_kind(x) for x in options))
        if kinds == ["number", "text"]:
            return "number"  # with its unit, or an expression
        return " or ".join(kinds).replace("number or text", "number")
    kind = part.get("type", "")
    if kind == "array":
        return f"list of {_kind(part.get('items', {}))}".replace("number", "numbers")
    if kind == "object":
        inner = part.get("additionalProperties")
        return f"table of {_kind(inner)}" if isinstance(inner, dict) else "table"
    words = {"string": "text", "integer": "whole number", "boolean": "``true`` or ``false``"}
    return words.get(kind, kind)


def _title(definition: str) -> str:
    return _named(definition) or definition.removesuffix("Table").lower()


def _label(reference: str) -> str:
    return f"key-{reference.rsplit('/')[-1].lower()}"


def _unit(key: Key) -> str:
    return " or ".join(f"``{unit}``" for unit in key.units)


def _default(value: Any) -> str:
    if value is None or value == "" or value == [] or value == {}:
        return ""
    return literal(str(value).lower() if isinstance(value, bool) else value)


def _comments(cls: type) -> dict[str, str]:
    """Comments for documentation above the fields of a class."""
    found: dict[str, str] = {}
    comment: list[str] = []
    for line in inspect.getsource(cls).splitlines():
        text = line.strip()
        if text.startswith("#:"):
            comment.append(text.removeprefix("#:").strip())
        elif (match := re.match(r"(\w+):", text)) and comment:
            found[match[1]], comment = " ".join(comment), []
    return found


def _without_examples(text: str) -> str:
    """A docstring without its Python examples and the sentences that lead to them: files are
    written otherwise."""
    kept: list[str] = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if not paragraph.lstrip().startswith(">>>"):
            kept.append(paragraph)
        elif kept and kept[-1].endswith("::"):
            before = re.match(r"(?s)(.*[.)`:])\s+[A-Z].*::$", kept.pop())
            kept += [before[1]] if before else []
    return "\n\n".join(kept) + "\n"


def _element(section: str, definition: str, part: dict[str, Any]) -> str:
    """One section: its docstring, and the keys that its tables take."""
    comments = _comments(SECTIONS[section])
    rows = []
    for name, key in element_codec(section).table.items():
        needed = "needed" if key.needed else _default(key.default)
        meaning = comments.get(name) or key.meaning or "see above"
        rows.append([literal(name), _kind(part["properties"][name]), _unit(key), needed, meaning])
    parts = [
        _introduction(section, definition),
        _without_examples(part.get("description", "")),
        f"In Python :class:`jfric.{definition}`.\n",
        _keys(rows),
    ]
    return "\n".join(parts)


def _keys(rows: list[list[str]]) -> str:
    return table(("Key", "Value", "Unit", "Default", "Meaning"), rows, "16 24 14 12 34")


def _introduction(name: str, definition: str) -> str:
    return f".. _{_label(definition)}:\n\n{heading(name)}"


def _table(definition: str, part: dict[str, Any]) -> str:
    """A table that is the same for all systems."""
    required = part.get("required", ())
    rows = []
    for key, value in part["properties"].items():
        default = "needed" if key in required else _default(value.get("default"))
        meaning = value["description"].replace("*", r"\*")
        rows.append([literal(key), _kind(value), "", default, meaning])
    description = inspect.cleandoc(part.get("description", ""))
    return "\n".join([_introduction(_title(definition), definition), description, "", _keys(rows)])


def page() -> str:
    """The text of the page."""
    schema, keys = json_schema(), file_codec().table
    definitions = schema["$defs"]
    top = []
    for key, value in schema["properties"].items():
        needed = "needed" if key in schema.get("required", ()) else ""
        meaning = keys[key].meaning.replace("`", "``") or _first(key)
        top.append([literal(key), _kind(value), needed, meaning])
    classes = {section: cls.__name__ for section, cls in SECTIONS.items()}
    elements = [(s, d) for s, d in classes.items() if d in definitions]
    parts = [
        heading("Keys of a file", "="),
        _INTRODUCTION,
        table(("Key", "Value", "Default", "Meaning"), top, "16 30 10 44"),
        heading("Tables of every file", "~"),
        *(_table(d, definitions[d]) for d in definitions if not _named(d)),
        heading("Elements", "~"),
        *(_element(section, name, definitions[name]) for section, name in elements),
    ]
    return "\n".join(parts)


def _first(section: str) -> str:
    line = (inspect.getdoc(SECTIONS[section]) or "").split("\n")[0]
    return line.removesuffix("::") + "." * line.endswith("::")


_INTRODUCTION = """\
Written from the schema, which ``jfric schema`` prints for editors. A number may carry its unit
(``"5 kN/m"``) or be an expression of shared values (``"$m*$g"``); bare numbers are SI. Where two
units are given, the second is that of an angle. A section describes one element, ``[spring]``, or
several by name, ``[spring.left]``.
"""

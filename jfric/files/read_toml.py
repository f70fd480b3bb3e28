"""Reading of TOML files: ``load`` gives the problem, ``load_config`` the whole content.

The shape of a file, its keys, types and choices, is checked first: sections by the classes of
elements, and the tables of every file. Numbers and units are read afterwards, and their meaning is
checked in :mod:`jfric.system.validation`.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

from jax.core import eval_context

from jfric.errors import ProblemError, quoted, within
from jfric.files import system_tables
from jfric.files.codec import Key, Place, ReadError, Text, did_you_mean, read_text
from jfric.files.config import Config
from jfric.files.settings_tables import CHECKS, TABLES, checks
from jfric.files.system_tables import BEFORE, BEHIND, sections
from jfric.files.table_codecs import Record
from jfric.system.elements import SECTIONS, register_installed
from jfric.system.problem import Problem


class File(Record):
    """A whole file."""

    def hint(self, key: Key, place: Place) -> str:
        return '; give [time] end = "4 s"'

    def unknown(self, name: str, value: Any, place: Place) -> str:
        if name in SECTIONS:
            return "can only be given in Python, a file cannot hold a function"
        names = list(self.table)
        return f"unknown section{did_you_mean(name, names)}, allowed are {', '.join(names)}"


def file_codec() -> File:
    """The shape of a file, with the sections and laws that are registered now."""
    keys = {
        "title": Key(Text(), "one line that says what the system is", ""),
        "source": Key(Text(), "who published it, where", ""),
        "description": Key(Text(), "anything else, for readers", ""),
        **BEFORE,
        **{name: Key(section) for name, section in sections().items()},
        **BEHIND,
        **TABLES,
        "check": Key(CHECKS, "numbers that a correct solution has, for `jfric verify`"),
    }
    return File("File", "A mechanical system with friction, gaps and impacts.", keys)


def shape_error(raw: dict[str, Any]) -> ProblemError | None:
    """The first mistake in the shape of a file; unknown keys come before keys that are missing."""
    mistakes = [*file_codec().mistakes(raw, Place())]
    first = sorted(mistakes, key=lambda mistake: not mistake.unknown)[:1]
    return ProblemError(first[0].sentence) if first else None


def json_schema() -> dict[str, Any]:
    """The JSON schema of a file, for completion and checks in editors."""
    definitions: dict[str, Any] = {}
    shape = file_codec().shape(definitions)
    return {"title": "File", **shape, "$defs": dict(sorted(definitions.items()))}


#: Largest nesting of tables and lists.
_DEEPEST = 40


def load(path: str | os.PathLike[str]) -> Problem:
    """The problem that the TOML file ``path`` describes.

    Quantities may carry units (``"5 kN/m"``); bare numbers are SI. Raises
    :class:`jfric.ProblemError` with one sentence that names the file and the field. The text of
    :func:`jfric.to_toml` gives the same problem::

        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "block.toml"
        >>> _ = path.write_text(jfric.to_toml(problem))
        >>> jfric.load(path).dofs
        {'u': 'translation'}
    """
    return load_config(path).problem


def load_config(path: str | os.PathLike[str]) -> Config:
    """Problem, outputs, solver settings and checks of the TOML file ``path``."""
    with within(f"{os.fspath(path)}: ", ReadError):
        text = read_text(Path(path))
    return loads(text, path)


def loads(text: str, path: str | os.PathLike[str] = "<text>") -> Config:
    """Configuration like that of :func:`load_config`, from TOML text; ``path`` is named in errors,
    and the paths of files in the text are relative to its folder."""
    # Numbers, not tracers, also inside a function that JAX traces.
    with within(f"{os.fspath(path)}: "), eval_context():
        return _config(text, path)


def _config(text: str, path: str | os.PathLike[str]) -> Config:
    raw = _parsed(text)
    wrong = shape_error(raw)
    # An unknown name may belong to another package.
    if wrong is not None and register_installed():
        wrong = shape_error(raw)
    if wrong is not None:
        raise wrong
    problem = system_tables.problem(raw, Path(path).parent)

    words = {key: raw[key] for key in ("title", "source", "description") if key in raw}
    tables: dict[str, Any] = {name: key.codec for name, key in TABLES.items() if name in raw}
    found = {name: table.of(raw[name], problem, name) for name, table in tables.items()}
    found["checks"] = checks(raw.get("check", []), problem)
    outputs = system_tables.outputs(raw["time"], problem)
    return Config(problem=problem, outputs=outputs, path=os.fspath(path), **words, **found)


def _parsed(text: str) -> dict[str, Any]:
    """The tables of a TOML text, with a nesting that recursion can follow."""
    try:
        raw = tomllib.loads(text)
    except RecursionError:
        raise ProblemError(f"tables and lists are nested too deep, {_DEEPEST} at most") from None
    except ValueError as error:  # of the syntax, or a number with thousands of digits
        # The parser names tables as tuples: ('friction', 'pad').
        message = re.sub(
            r"\((?:'[^']*',? ?)+\)",
            lambda m: "[" + ".".join(re.findall(r"'([^']*)'", m.group())) + "]",
            str(error),
        )
        at = re.search(r"at line (\d+)", message)
        line = text.splitlines()[int(at[1]) - 1].strip() if at else ""
        comma = " (a number has a point, not a comma)" * bool(re.search(r"=\s*[-+]?\d+,\d", line))
        said = f": {quoted(line)}{comma}" if line else ""
        raise ProblemError(f"not valid TOML: {message[:1].lower()}{message[1:]}{said}") from None
    level: list[Any] = [raw]
    for _ in range(_DEEPEST + 1):
        tables = [x.values() if isinstance(x, dict) else x for x in level]
        level = [x for table in tables for x in table if isinstance(x, dict | list)]
        if not level:
            return raw
    raise ProblemError(f"tables and lists are nested too deep, {_DEEPEST} at most")

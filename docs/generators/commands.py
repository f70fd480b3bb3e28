"""The reference of the command line, from the application itself."""

from __future__ import annotations

import re
import typing
from typing import Any

import typer

from generators.rst import heading, literal, table
from jfric.cli.main import app


def commands() -> dict[str, Any]:
    """Commands by name, in the order of ``jfric --help``."""
    group: Any = typer.main.get_command(app)
    return {name: command for name, command in group.commands.items() if not command.hidden}


def _plain(text: str | None) -> str:
    """Text without markup of the terminal, safe in reStructuredText."""
    text = re.sub(r"\[/?(?:bold|italic|dim|green|red|cyan|yellow)[^\]]*\]", "", text or "")
    text = text.replace("\\[", "[").replace("\b\n", "")
    return re.sub(r"([*|_`])", r"\\\1", text)


def _argument(parameter) -> list[str]:
    return [literal(_name(parameter)), "yes" if parameter.required else "", _help(parameter)]


def _name(parameter) -> str:
    return parameter.metavar or parameter.name.upper()


def _help(parameter) -> str:
    return _plain(getattr(parameter, "help", ""))


def _option(parameter) -> list[str]:
    names = ", ".join(literal(x) for x in (*parameter.opts, *parameter.secondary_opts))
    value = "" if parameter.is_flag else literal(parameter.metavar or _kind(parameter))
    default = getattr(parameter.default, "value", parameter.default)
    shown = default not in (None, False, "", (), []) and not callable(default)
    return [names, value, literal(default) if shown else "", _help(parameter)]


def _kind(parameter) -> str:
    """What the value of an option is, as ``--help`` says it."""
    annotation = parameter.type_descriptor.annotation
    if typing.get_origin(annotation) is list:
        annotation = typing.get_args(annotation)[0]
    if typing.get_origin(annotation) is typing.Literal:
        return "|".join(map(str, typing.get_args(annotation)))
    return {int: "INTEGER", float: "NUMBER", str: "TEXT"}.get(annotation, "PATH")


def _is_option(parameter) -> bool:
    return parameter.param_type_name == "option" and not parameter.hidden


def _paragraphs(text: str | None) -> str:
    return "\n\n".join(" ".join(p.split()) for p in re.split(r"\n\s*\n", _plain(text).strip()))


def page() -> str:
    """The text of the page."""
    parts = [
        heading("Commands", "="),
        "Each command prints the same with ``--help``. Exit status 0: done; 1: a run ended early,"
        " or a\ncheck failed; 2: bad input, with one sentence that says what.\n",
        "``jfric --install-completion`` completes commands and options in your shell;\n"
        "``jfric --version`` prints the versions that matter,\n"
        "``jfric --devices`` what JAX runs on.\n",
    ]
    for name, command in commands().items():
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        options = [p for p in command.params if _is_option(p)]
        parts += [
            f".. _command-{name}:\n",
            heading(f"jfric {name}"),
            _paragraphs(command.help) + "\n",
        ]
        usage = " ".join(["jfric", name, *map(_name, arguments), "[OPTIONS]"])
        parts.append(f".. code-block:: text\n\n   {usage}\n")
        if arguments:
            rows = [_argument(p) for p in arguments]
            parts.append(table(("Argument", "Required", "Meaning"), rows, "24 12 64"))
        if options:
            rows = [_option(p) for p in options]
            parts.append(table(("Option", "Value", "Default", "Meaning"), rows, "24 16 14 46"))
        if command.epilog:
            parts.append(_paragraphs(command.epilog) + "\n")
    return "\n".join(parts)

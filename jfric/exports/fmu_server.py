"""The process in which the system of a unit of co-simulation moves: a question and an answer in
each line of its input and output, as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any, TextIO

import jax

from jfric.errors import ProblemError, SimulationError
from jfric.exports.fmu import Unit
from jfric.numerics.compilation import compile_quickly


def answer(unit: Unit, asked: dict[str, Any]) -> dict[str, Any]:
    """Answer to a question; ``what`` is ``begin``, ``step``, ``kept`` or ``put_back``."""
    what = asked["what"]
    if what == "kept":
        return {"state": unit.kept()}
    if what == "put_back":
        unit.put_back(asked["state"])
        return {}
    unit.inputs, unit.numbers, wrong = asked["inputs"], asked["numbers"], ""
    try:
        if what == "begin":
            unit.begin(asked["t"])
        else:
            wrong = unit.step(asked["until"])
    except (ProblemError, SimulationError) as error:
        wrong = str(error)
    return {"wrong": wrong} | unit.seen()


def serve(folder: str, questions: TextIO, answers: TextIO) -> None:
    """Answer all ``questions`` about the unit in ``folder``."""
    unit = Unit(folder)
    for line in questions:
        answers.write(json.dumps(answer(unit, json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    compile_quickly()
    serve(sys.argv[1], sys.stdin, sys.stdout)

"""The program inside a unit of co-simulation; it is copied there and needs no other package.

The other tool runs it in a Python of its own. The system itself moves in a separate process, whose
Python has jfric (:mod:`jfric.exports.fmu_server`): neither disturbs the other.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement

#: Names of the types of variables in the libraries pythonfmu (2) and pythonfmu3 (3).
TYPES = {
    2: {"real": "Real", "integer": "Integer", "string": "String"},
    3: {"real": "Float64", "integer": "Int32", "string": "String"},
}


class Slave:
    """Behaviour of a unit in both versions, to be combined with ``Fmi2Slave`` or ``Fmi3Slave``.

    ``library``: the package that has this class; ``fmi``: the version.
    """

    library: Any
    fmi: int
    resources: str
    default_experiment: Any
    log: Callable[..., None]
    register_variable: Callable[..., None]

    def __init__(self, **options: Any):
        super().__init__(**options)
        names = Path(self.resources) / "names.json"
        #: What the unit knows: numbers, inputs, outputs, codes and events, each by name.
        self.now: dict[str, Any] = json.loads(names.read_text("utf-8"))
        self.server: Any = None
        start, stop = self.now["t"], self.now["stop"]
        self.default_experiment = self.library.DefaultExperiment(start, stop)
        if self.fmi == 3:
            self._add("real", "time", "independent", "continuous", lambda: {"time": self.now["t"]})
        groups = {
            "numbers": ("real", "parameter", "fixed"),
            "inputs": ("real", "input", "continuous"),
            "outputs": ("real", "output", "continuous"),
            "codes": ("integer", "output", "discrete"),
        }
        for group, (kind, causality, variability) in groups.items():
            for name in self.now[group]:
                self._add(kind, name, causality, variability, lambda group=group: self.now[group])
        for name, kind in {"event_count": "integer", "events": "string"}.items():
            self._add(kind, name, "output", "discrete", self._of_events)
        self._add("real", "last_event_time", "output", "continuous", self._of_events)

    def _of_events(self) -> dict[str, Any]:
        now = self.now
        listed = json.dumps(now["events"])
        return {"event_count": now["count"], "last_event_time": now["last"], "events": listed}

    def _named(self, name: str) -> Any:
        """An enumeration of the library."""
        enums = importlib.import_module(f"{self.library.__name__}.enums")
        return getattr(enums, f"Fmi{self.fmi}{name}")

    def _add(self, kind: str, name: str, causality: str, variability: str, values: Callable):
        """Register a variable that is an entry of what ``values`` returns."""

        def put(value: Any) -> None:
            values()[name] = value

        chosen: dict[str, Any] = {
            field: getattr(self._named(field.capitalize()), value)
            for field, value in (("causality", causality), ("variability", variability))
        }
        if causality == "parameter":
            chosen["initial"] = self._named("Initial").exact
        make = getattr(self.library, TYPES[self.fmi][kind])
        variable = make(name, getter=lambda: values()[name], **chosen)
        variable.setter = put if causality in ("parameter", "input") else None
        self.register_variable(variable, nested=False)

    def to_xml(self, *options: Any) -> Any:
        """The description of the unit; FMI 2 wants to know that outputs follow from the start."""
        root = super().to_xml(*options)  # pyright: ignore[reportAttributeAccessIssue]
        structure = root.find("ModelStructure")
        if self.fmi == 2 and structure.find("InitialUnknowns") is None:
            outputs = list(structure.iter("Unknown"))
            unknowns = SubElement(structure, "InitialUnknowns")
            for output in outputs:
                unknowns.append(Element("Unknown", index=output.get("index")))
        return root

    def _ask(self, what: str, **given: Any) -> dict[str, Any]:
        """Answer of the process in which the system moves, which begins with the first question."""
        if self.server is None:
            python = str(os.environ.get("JFRIC_PYTHON") or self.now["python"])
            self.server = subprocess.Popen(
                [python, "-m", "jfric.exports.fmu_server", self.resources],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        self.server.stdin.write(json.dumps({"what": what, **given}) + "\n")
        self.server.stdin.flush()
        line = self.server.stdout.readline()
        if not line:
            raise RuntimeError("the Python with jfric has ended; set JFRIC_PYTHON to one that runs")
        return json.loads(line)

    def _move(self, what: str, **given: Any) -> str:
        """Let the system move; a sentence where it could not."""
        inputs, numbers = self.now["inputs"], self.now["numbers"]
        found = self._ask(what, inputs=inputs, numbers=numbers, **given)
        wrong = found.pop("wrong")
        self.now |= found
        for time, name, before, after in self.now["events"]:
            self.log(f"{time!r} s: {name} {before} to {after}")
        if wrong:
            self.log(wrong, self._named("Status").error)
        return wrong

    def setup_experiment(self, start_time: float, *others: Any) -> None:
        """The start of the co-simulation [s]; functions of time in the system begin there."""
        del others
        self.now["t"] = float(start_time)

    def exit_initialization_mode(self) -> None:
        """Put the system at its start."""
        wrong = self._move("begin", t=self.now["t"])
        if wrong:
            raise ValueError(wrong)

    def do_step(self, current_time: float, step_size: float) -> Any:
        """Move to the next communication point."""
        wrong = self._move("step", until=current_time + step_size)
        if self.fmi == 2:
            return not wrong
        status = self._named("Status")
        return self.library.Fmi3StepResult(status.error if wrong else status.ok)

    def terminate(self) -> None:
        """End the process in which the system moved."""
        if self.server is not None:
            self.server.stdin.close()
            self.server.wait()
            self.server.stdout.close()
            self.server = None

    def _get_fmu_state(self) -> dict[str, Any]:
        state = self._ask("kept")["state"] if self.server is not None else None
        return {"now": json.dumps(self.now), "state": state}

    def _set_fmu_state(self, state: dict[str, Any]) -> None:
        self.now = json.loads(state["now"])
        if state["state"] is not None:
            self._ask("put_back", state=state["state"])

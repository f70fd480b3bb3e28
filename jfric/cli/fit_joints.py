"""``jfric fit --residual joints``: friction of all joints of a robot from its log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jfric.cli.app import answer, status, tell, wrote
from jfric.cli.fit_record import sources, write_record
from jfric.cli.run_fit import read_records
from jfric.errors import ProblemError
from jfric.files.config import Config
from jfric.files.output import versions
from jfric.files.write_toml import dump
from jfric.fits.robots.joint_friction import JointFriction, joint_friction
from jfric.fits.robots.joint_laws import described


def fit_joints(given: Any, config: Config, data: Sequence[Path]) -> bool:
    """Print and write the friction of all joints, and the robot with it as a file."""
    if given.free:
        raise ProblemError("--free: found with --residual joints, which chooses its own numbers")
    with status(f"friction of the joints of {Path(config.path).stem}"):
        found = joint_friction(config.problem, read_records(config, data))
    record = _record(found, config, data)
    path = write_record(given, "joints", record)
    robot = path.with_suffix(".toml")
    robot.write_text(dump(found.problem), "utf-8")
    answer(record | {"files": [path, robot]})
    tell(config.name, "bold")
    tell(str(found), whole=True)
    tell(found.numbers())
    wrote(path, robot)
    return True


def _record(found: JointFriction, config: Config, data: Sequence[Path]) -> dict[str, Any]:
    joints = {
        joint: {
            "law": described(law),
            "delay": found.delays[joint],
            "residual": found.residuals[joint],
            "left_out": dict(zip(("none", "plain", "law"), found.left_out[joint], strict=True)),
        }
        for joint, law in found.laws.items()
    }
    return {
        "title": config.title,
        "config": dump(config),
        "data": sources(config, data),
        "versions": versions(),
        "joints": joints,
        "values": dict(found.values),
        "half_widths": dict(found.half_widths),
        "remarks": list(found.remarks),
    }

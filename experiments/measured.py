"""Common parts of the experiments on measured data: the place of the data, and errors."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

DATA = Path("../shared/data")


def arguments(description: str | None, name: str) -> tuple[Path, Path]:
    """Path of the data and folder for figures; ends the program if the data are missing."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA / name, help="measured file")
    parser.add_argument("--out", type=Path, default=Path("results/figures"), help="folder")
    given = parser.parse_args()
    if not given.data.is_file():
        print(
            f"no measured data at {given.data}: they are not part of this project; give their "
            "place with --data",
            file=sys.stderr,
        )
        raise SystemExit(2)
    given.out.mkdir(parents=True, exist_ok=True)
    return given.data, given.out


def rms(values: np.ndarray) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(np.square(values))))

"""Processor time of ``jfric run``: how long a user waits for the first number of a file.

    python experiments/benchmarks/first_number.py [--configs ve0116,slider_crank]

Each file is run three times in separate processes: with an empty cache, once more, and with a
number that is 1 % larger, for which nothing is traced or compiled. The script prints processor
seconds (user and system), and those of the run itself, without start and compilation.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import jfric

CONFIGS = Path(__file__).parents[2] / "configs"
FILES = "ve0116,sdnd106,f3_incline,m5_lugre,g2_double_pendulum,slider_crank,g1_rimless_wheel"


def processor_seconds(arguments: list[str], cache: str) -> tuple[float, float]:
    """Processor seconds of a ``jfric run``, and of the simulation in it."""
    command = [sys.executable, "-c", "from jfric.cli.main import main; main()", "run", *arguments]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"JFRIC_CACHE_DIR": cache}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = re.search(r"run ([\d.e+-]+) ms", done.stdout)
    if said is None:
        raise SystemExit(f"jfric {' '.join(command[3:])}: {done.stderr[-300:]}")
    total = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return total, float(said[1]) / 1e3


def measured(name: str) -> dict[str, float]:
    """Processor seconds of the three processes, and of the simulation in the second."""
    with tempfile.TemporaryDirectory() as folder:
        file = [str(CONFIGS / f"{name}.toml"), "--out", f"{folder}/out"]
        numbers = jfric.parameters(jfric.load(file[0])).items()
        path, value = next((k, x) for k, x in numbers if not isinstance(x, jfric.Expression))
        runs = [file, file, [*file, "--set", f"{path}={1.01 * float(value)!r}"]]
        found = [processor_seconds(x, f"{folder}/cache") for x in runs]
    totals = dict(zip(("empty", "again", "other"), (total for total, _ in found), strict=True))
    return totals | {"run": found[1][1]}


def main() -> None:
    """Print a line for each file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--configs", default=FILES, help="names of files, separated by commas")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rows = {name: measured(name) for name in options.configs.split(",")}
    if options.json:
        print(json.dumps(rows))
        return
    print(f"{'processor seconds':24} {'empty':>8} {'again':>8} {'other':>8} {'run':>8}")
    for name, row in rows.items():
        print(f"{name:24} " + " ".join(f"{x:8.2f}" for x in row.values()))


if __name__ == "__main__":
    main()

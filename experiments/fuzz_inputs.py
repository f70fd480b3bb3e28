"""Malformed files and command lines: no traceback, no hang, no exit status except 0, 1 and 2.

The script makes them from the shipped files (``fuzz_cases.py``, reproducible by the seed) and gives
each to the command line, in a separate process that is replaced if a case hangs or ends it.

    python experiments/fuzz_inputs.py --cases 700 --seed 1
    python experiments/fuzz_inputs.py --seed 1 --only 17      # one of them, with its traceback
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import multiprocessing
import os
import resource
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any, NamedTuple

from fuzz_cases import SAMPLES, SMALL, Case, cases

#: Seconds of computation that a case may take, and seconds after which its process is ended.
LIMIT, PATIENCE = 10.0, 40.0
#: Bytes of memory of the process: a request beyond this fails instead of blocking the machine.
MEMORY = 24 * 2**30


class Outcome(NamedTuple):
    """Exit status of a case, the seconds it took, and the mistake in the outcome, if any."""

    code: int
    seconds: float
    failure: str = ""
    details: str = ""


def outcome(case: Case, folder: Path) -> Outcome:
    """Run a case in this process, in ``folder``."""
    from typer.testing import CliRunner

    from jfric.cli.main import app

    for name, content in case.files.items():
        (folder / name).write_bytes(content)
    start = time.perf_counter(), time.process_time()
    with contextlib.chdir(folder):
        result = CliRunner().invoke(app, case.arguments)
    # Other programs may use the machine as well.
    seconds = min(time.perf_counter() - start[0], time.process_time() - start[1])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        lines = traceback.format_exception(result.exception)
        return Outcome(result.exit_code, seconds, "traceback", "".join(lines))
    return Outcome(result.exit_code, seconds, *_judged(result, seconds))


def _judged(result: Any, seconds: float) -> tuple[str, str]:
    if result.exit_code not in (0, 1, 2):
        return "exit status", str(result.exit_code)
    if seconds > LIMIT:
        return "slow", result.stderr
    said = result.stderr.strip()
    if result.exit_code == 2 and not said:
        return "silent", result.output
    # Other messages come from the parser of options.
    if said.startswith("jfric: ") and len(said.splitlines()) > 1:
        return "several lines", said
    return "", said


def worker(connection: Any) -> None:
    """Run cases as they come."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    from jfric.sweeps import runner

    runner.PATIENCE = "1s"
    # Common compilation is no part of a case.
    with tempfile.TemporaryDirectory() as folder:
        for command in (["run", "x.toml", "--out", "o"], ["verify", "x.toml"]):
            outcome(Case("", command, {"x.toml": SMALL.encode()}), Path(folder))
        fit = ["fit", "x.toml", "--data", "x.csv", "--free", "spring.k=10:100", "--starts", "1"]
        outcome(Case("", fit, {"x.toml": SMALL.encode(), "x.csv": SAMPLES.encode()}), Path(folder))
    connection.send(None)
    while (case := connection.recv()) is not None:
        with tempfile.TemporaryDirectory() as folder:
            connection.send(outcome(case, Path(folder)))


class Workshop:
    """A process that runs cases and is replaced if one of them hangs or ends it."""

    def __init__(self) -> None:
        self.process: Any = None

    def _start(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.connection, other = spawn.Pipe()
        self.process = spawn.Process(target=worker, args=(other,), daemon=True)
        self.process.start()
        other.close()
        if not self.connection.poll(600.0):
            raise SystemExit("the process that runs the cases did not start")
        self.connection.recv()

    def run(self, case: Case) -> Outcome:
        """The outcome of a case."""
        if self.process is None:
            self._start()
        self.connection.send(case)
        try:
            if self.connection.poll(PATIENCE):
                return self.connection.recv()
            failure = Outcome(-1, PATIENCE, "hang")
        except EOFError:
            self.process.join(5.0)
            failure = Outcome(-1, 0.0, "crash", f"exit code {self.process.exitcode}")
        self.stop()
        return failure

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


def shown(case: Case) -> str:
    """The command line of a case, with long words cut."""
    return " ".join(x if len(x) < 60 else f"{x[:60]}..." for x in case.arguments)


def print_outcomes(every: list[Case], outcomes: list[Outcome]) -> int:
    """Print the table of outcomes by kind; returns the number of failures."""
    kinds = sorted({case.kind for case in every})
    heads = ("exit 0", "exit 1", "exit 2", "failures", "longest")
    print(f"{'kind':10}{'cases':>8}" + "".join(f"{head:>10}" for head in heads))
    for kind in [*kinds, "all"]:
        own = [o for c, o in zip(every, outcomes, strict=True) if kind in (c.kind, "all")]
        codes = collections.Counter(o.code for o in own if not o.failure)
        bad = sum(bool(o.failure) for o in own)
        longest = f"{max(o.seconds for o in own):.1f} s"
        row = f"{kind:10}{len(own):8}{codes[0]:10}{codes[1]:10}{codes[2]:10}{bad:10}{longest:>10}"
        print(row)
    return sum(bool(found.failure) for found in outcomes)


def run_all(every: list[Case]) -> list[Outcome]:
    """The outcomes of all cases; failures are printed as they are found."""
    shop, outcomes = Workshop(), []
    for case in every:
        found = shop.run(case)
        outcomes.append(found)
        if found.failure:
            last = (found.details.strip().splitlines() or [""])[-1][:200]
            print(f"case {case.number}: {found.failure}: {shown(case)}\n    {last}", flush=True)
    shop.stop()
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=700)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", help="only cases of this kind: file, data, command, run, system")
    parser.add_argument("--only", type=int, help="number of the only case to run, here")
    parser.add_argument("--keep", type=Path, help="folder for the files of the only case")
    options = parser.parse_args()
    if options.only is not None:
        case = cases(options.only + 1, options.seed)[-1]
        folder = options.keep or Path(tempfile.mkdtemp())
        folder.mkdir(parents=True, exist_ok=True)
        found = outcome(case, folder)
        print(
            shown(case), f"in {folder}", f"exit {found.code}, {found.seconds:.1f} s", found.failure
        )
        print(found.details)
        return
    every, start = cases(options.cases, options.seed), time.perf_counter()
    every = [case for case in every if options.kind in (None, case.kind)]
    outcomes = run_all(every)
    bad = print_outcomes(every, outcomes)
    print(f"{len(every)} cases, {bad} failures, {time.perf_counter() - start:.0f} s")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    os.environ.setdefault("JFRIC_CACHE_DIR", tempfile.gettempdir() + "/jfric-fuzz")
    main()

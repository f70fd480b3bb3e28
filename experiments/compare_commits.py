"""Answers of another commit of jfric that differ, on thousands of random systems.

    python experiments/compare_commits.py OTHER [--systems 2000] [--seed 1] [--kinds joints,planes]

``OTHER`` is a commit, which is unpacked next to this one, or the folder of another checkout.
Systems come from ``random_systems.py`` as TOML text; each side answers in a separate process with a
time limit, and a traceback, a crash or a hang is an answer, too. Every difference of status,
motion, events, flags and forces beyond rounding is counted by its class, and for each class the
smallest system with this difference is found by removing elements one after the other.

A difference is on an edge if this side itself answers differently when all numbers of the system
are changed by 1e-13 of themselves: rounding decides there. Answers are stored in ``--out`` by the
content of the package's files: an interrupted run can be continued, and an unchanged side is not
asked again. The exit status is 0 without differences, else 1.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import hashlib
import io
import json
import os
import queue
import re
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import answer_systems
import random_systems
from answer_systems import Answer
from compare_answers import difference, shrunk, status_name

ROOT = Path(__file__).resolve().parents[1]
#: Kinds whose programs take long to compile have fewer structures.
DEAR = ("planes", "floors", "discs", "polygons", "mechanisms")
#: Further solvers for systems of masses, in addition to the event-driven solver with its defaults.
ALSO = ("moreau-jean", "runge-kutta", "smoothed", "moreau-jean", "lowered", "quasi-static")
NUDGE = 1e-13
#: Number of hung systems of a group after which the others are not tried.
PATIENCE = 2


class Group(NamedTuple):
    """Systems of one structure, and the questions about them."""

    kind: str
    structure: int
    questions: list[str]
    texts: list[str]


def groups(
    count: int,
    seed: int,
    kinds: Iterable[str],
    size: int,
    typed: float,
    solvers: Iterable[str] = (),
) -> list[Group]:
    """About ``count`` systems, ``size`` of each structure; kinds take turns."""
    kinds, found = list(kinds), []
    for i in range(10 * (count // size + 1)):
        kind, turn = kinds[i % len(kinds)], i // len(kinds)
        if len(found) * size >= count:
            break
        if kind in DEAR and turn % 3 and len(kinds) > len(DEAR):
            continue
        structure = 100 * random_systems.KINDS.index(kind) + turn
        questions = ["event-driven", ALSO[(structure // 100 + turn) % len(ALSO)]]
        if kind in ("discs", "polygons", "mechanisms"):
            questions = ["event-driven"]
        questions = {"equilibria": ["equilibria", "rest"], "orbits": ["orbit"]}.get(kind, questions)
        questions = list(solvers) if solvers and "event-driven" in questions else questions
        texts = [
            random_systems.text(random_systems.system(seed, structure, j, kind, typed))
            for j in range(min(size, count - len(found) * size))
        ]
        found.append(Group(kind, structure, questions, texts))
    return found


# One side.


class Side:
    """A checkout of jfric, and the process that answers with it."""

    def __init__(self, name: str, tree: Path, python: str, cache: Path):
        self.name, self.tree, self.python, self.cache = name, tree, python, cache
        self.process: Any = None
        content = hashlib.sha256()
        for path in sorted((tree / "jfric").rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                content.update(path.relative_to(tree).as_posix().encode() + path.read_bytes())
        self.key = f"{name}-{content.hexdigest()[:12]}"

    def _start(self) -> None:
        flags = "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
        own = {"PYTHONPATH": str(self.tree), "JFRIC_CACHE_DIR": str(self.cache)}
        own |= {"OMP_NUM_THREADS": "1", "XLA_FLAGS": os.environ.get("XLA_FLAGS", flags)}
        self.process = subprocess.Popen(
            [self.python, str(ROOT / "experiments" / "answer_systems.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=os.environ | own, cwd=self.cache.parent,
        )  # fmt: skip
        self.lines: queue.Queue[str] = queue.Queue()
        stream, lines = self.process.stdout, self.lines
        threading.Thread(
            target=lambda: [*map(lines.put, stream), lines.put("")], daemon=True
        ).start()
        first = self.lines.get(timeout=300.0)
        if not first or Path(json.loads(first)) != self.tree.resolve():
            raise SystemExit(f"{self.name}: jfric came from {first.strip()}, not from {self.tree}")

    def answer(self, job: answer_systems.Job, limit: float) -> str:
        """Have a job done; returns an empty text, or how the process failed."""
        if self.process is None:
            self._start()
        try:
            self.process.stdin.write(json.dumps(job._asdict()) + "\n")
            self.process.stdin.flush()
            if self.lines.get(timeout=limit):
                return ""
            failure = f"crash: exit code {self.process.wait(10.0)}"
        except queue.Empty:
            failure = "hang"
        except BrokenPipeError:
            failure = "crash: the process had ended"
        self.stop()
        return failure

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def answers(
        self, texts: list[str], question: str, path: Path, limit: float, nudge: float = 0.0
    ) -> tuple[list[str], list[Answer]]:
        """Outcomes and arrays of systems: stored ones, or those of a batch. If the batch ends the
        process or takes four times as long, systems are answered one by one, with ``limit`` seconds
        each."""
        if not path.exists():
            job = answer_systems.Job(texts, question, str(path), nudge)
            failure = self.answer(job, 4.0 * limit)
            if failure and len(texts) == 1:
                answer_systems.save(str(path), [failure], [{}])
            elif failure:
                self._one_by_one(job, limit)
        return answer_systems.loaded(path)

    def _one_by_one(self, job: answer_systems.Job, limit: float) -> None:
        outcomes, found, failed = [], [], 0
        for text in job.texts:
            own = Path(job.path).with_suffix(".one")
            own.unlink(missing_ok=True)
            failure = "hang: not tried, as others of its structure did"
            if failed < PATIENCE:
                failure = self.answer(job._replace(texts=[text], path=str(own)), limit)
            failed += bool(failure)
            (outcome,), (answer,) = ([failure], [{}]) if failure else answer_systems.loaded(own)
            outcomes.append(outcome)
            found.append(answer)
            own.unlink(missing_ok=True)
        answer_systems.save(job.path, outcomes, found)


# The command.


class Found(NamedTuple):
    """A system whose two answers differ."""

    group: Group
    number: int
    question: str
    kind: str
    on_edge: bool


class Comparison:
    """Two sides, the systems, and a folder for the answers."""

    def __init__(self, sides: list[Side], every: list[Group], folder: Path, options: Any):
        self.sides, self.every, self.folder, self.options = sides, every, folder, options
        self.tasks = [(i, q) for i, group in enumerate(every) for q in group.questions]
        self.start = time.perf_counter()

    def answers(self, side: Side, task: tuple[int, str], nudge: float = 0.0):
        """The answers of a side to a group."""
        number, question = task
        folder = self.folder / (side.key if nudge == 0.0 else f"{side.key}-nudged")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{number:03d}-{question}.npz"
        group = self.every[number]
        return side.answers(group.texts, question, path, self.options.limit, nudge)

    def ask(self, side: Side) -> None:
        """Let a side answer all groups."""
        for k, task in enumerate(self.tasks):
            self.answers(side, task)
            group, passed = self.every[task[0]], time.perf_counter() - self.start
            line = f"{side.name:6} {k + 1}/{len(self.tasks)} {group.kind} {task[1]}"
            print(f"{line}, {passed:.0f} s", file=sys.stderr, flush=True)

    def both(self, call: Callable[[Side], Any]) -> list[Any]:
        """Results of ``call`` for both sides, executed at the same time."""
        results: dict[str, Any] = {}
        threads = [
            threading.Thread(target=lambda s=s: results.update({s.name: call(s)}), daemon=True)
            for s in self.sides
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [results[s.name] for s in self.sides]

    def differences(self) -> list[Found]:
        """All systems for which the two answers differ."""
        found = []
        for task in self.tasks:
            one, two = (zip(*self.answers(s, task), strict=True) for s in self.sides)
            pairs = [*zip(one, two, strict=True)]
            kinds = [difference(a, b, self.options.tolerance) for a, b in pairs]
            if any(kinds):
                near = [*zip(*self.answers(self.sides[0], task, NUDGE), strict=True)]
                for i, kind in enumerate(kinds):
                    edge = bool(kind) and difference(pairs[i][0], near[i], self.options.tolerance)
                    if kind:
                        found.append(Found(self.every[task[0]], i, task[1], kind, bool(edge)))
        return found

    def smallest(self, found: list[Found]) -> str:
        """The smallest system of a class of differences."""
        first = min(found, key=lambda f: (f.on_edge, len(f.group.texts[f.number])))
        trial = self.folder / "trial"
        trial.mkdir(exist_ok=True)

        def differs(text: str) -> bool:
            def ask(side: Side):
                path = trial / f"{side.name}.npz"
                path.unlink(missing_ok=True)
                return side.answers([text], first.question, path, self.options.limit)

            (a, x), (b, y) = self.both(ask)
            kind = difference((a[0], x[0]), (b[0], y[0]), self.options.tolerance)
            return kind == first.kind

        text = first.group.texts[first.number]
        if differs(text):
            text = shrunk(text, differs, self.options.trials)
            said = ""
        else:
            said = ", in a batch alone"
        where = f"{first.group.kind}, structure {first.group.structure}, system {first.number}"
        edge = ", on an edge" if first.on_edge else ""
        return f"# {first.kind} ({first.question}; {where}{edge}{said})\n{text}"


def report(comparison: Comparison, found: list[Found]) -> str:
    """Counts by kind, statuses and outcomes of both sides, differences by class."""
    lines = []
    systems: collections.Counter[str] = collections.Counter()
    answers = {s.name: collections.Counter() for s in comparison.sides}
    without: collections.Counter[str] = collections.Counter()
    for task in comparison.tasks:
        group = comparison.every[task[0]]
        systems[group.kind] += len(group.texts) * (task[1] == group.questions[0])
        for side in comparison.sides:
            for outcome, answer in zip(*comparison.answers(side, task), strict=True):
                word = outcome.split(":")[0]
                if "status" in answer:
                    code = answer["status"]
                    word = f"orbit {code}" if task[1] == "orbit" else status_name(code)
                answers[side.name][word] += 1
                # The numbers in a sentence depend on the system.
                sentence = re.sub(r"-?[\d.]+(e-?\d+)?", "#", outcome)
                without[sentence] += outcome != "answered"
    lines.append(f"{'kind':14}{'systems':>8}{'different':>10}{'on an edge':>11}")
    for kind, count in systems.items():
        own = [f for f in found if f.group.kind == kind]
        lines.append(f"{kind:14}{count:8}{len(own):10}{sum(f.on_edge for f in own):11}")
    lines.append(
        f"{'all':14}{sum(systems.values()):8}{len(found):10}{sum(f.on_edge for f in found):11}\n"
    )
    one, two = (answers[s.name] for s in comparison.sides)
    lines.append(f"{'answer':24}{'this':>8}{'other':>8}")
    lines += [f"{k:24}{one[k]:8}{two[k]:8}" for k in sorted(one | two)]
    lines.append("")
    lines += [f"{count:8}  {sentence[:150]}" for sentence, count in without.most_common(8) if count]
    classes = collections.Counter(f.kind for f in found)
    lines.append(f"\n{'difference (this -> other)':44}{'systems':>8}{'on an edge':>11}")
    for kind, count in classes.most_common():
        edge = sum(f.on_edge for f in found if f.kind == kind)
        lines.append(f"{kind:44}{count:8}{edge:11}")
    return "\n".join(lines) + "\n"


def checkout(commit: str, folder: Path) -> Path:
    """The folder of a checkout, or that of a commit unpacked into ``folder``."""
    if (Path(commit) / "jfric").is_dir():
        return Path(commit).resolve()
    found = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--verify", f"{commit}^{{commit}}"],
        capture_output=True, text=True,
    )  # fmt: skip
    if found.returncode:
        raise SystemExit(f"{commit}: neither a commit nor the folder of a checkout")
    tree = folder / found.stdout.strip()[:12]
    if not tree.exists():
        archive = ["git", "-C", str(ROOT), "archive", "--format=tar", found.stdout.strip()]
        packed = subprocess.run(archive, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            tar.extractall(f"{tree}.part", filter="data")
        os.replace(f"{tree}.part", tree)
    return tree.resolve()


def python_of(tree: Path, folder: Path) -> str:
    """The interpreter for a checkout: this one, or one with the versions that it requires."""
    wanted = tree / "constraints.txt"
    if not wanted.exists() or wanted.read_bytes() == (ROOT / "constraints.txt").read_bytes():
        return sys.executable
    own = folder / "environment"
    install = ["sh", str(tree / "scripts" / "install.sh"), "sweep,view"]
    subprocess.run(install, check=True, env=os.environ | {"JFRIC_VENV": str(own)})
    return str(own / "bin" / "python")


def systems_of(options: Any, folder: Path) -> list[Group]:
    """The systems, made once and stored."""
    path = folder / "systems.json"
    settings = {
        k: getattr(options, k) for k in ("systems", "seed", "kinds", "solvers", "size", "typed")
    }
    if path.exists():
        kept = json.loads(path.read_text("utf-8"))
        if kept["settings"] != settings:
            raise SystemExit(
                f"{folder}: holds other systems, {kept['settings']}; give another --out"
            )
        return [Group(*x) for x in kept["groups"]]
    kinds = [k for k in options.kinds.split(",") if k]
    solvers = [s for s in options.solvers.split(",") if s]
    made = groups(options.systems, options.seed, kinds, options.size, options.typed, solvers)
    path.with_suffix(".part").write_text(
        json.dumps({"settings": settings, "groups": made}), "utf-8"
    )
    path.with_suffix(".part").replace(path)
    return made


def main(arguments: list[str] | None = None) -> int:
    """Compare, print and write the report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", help="a commit, or the folder of a checkout")
    parser.add_argument("--systems", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(random_systems.KINDS))
    parser.add_argument("--solvers", default="", help="in place of those that take turns")
    parser.add_argument("--size", type=int, default=40, help="systems of a structure")
    parser.add_argument("--typed", type=float, default=random_systems.TYPED, help="share")
    parser.add_argument("--tolerance", type=float, default=1e-7, help="of the largest number")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for a system alone")
    parser.add_argument("--shrink", type=int, default=6, help="classes with a smallest system")
    parser.add_argument("--trials", type=int, default=24, help="for each of these")
    parser.add_argument("--out", type=Path, default=Path("results/compare"))
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.kinds.split(",")) - set(random_systems.KINDS))
    if unknown:
        raise SystemExit(
            f"--kinds: found {unknown[0]!r}, allowed: {', '.join(random_systems.KINDS)}"
        )
    folder = options.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    tree = checkout(options.other, folder)
    sides = [Side("this", ROOT, sys.executable, folder / "xla")]
    sides.append(Side("other", tree, python_of(tree, folder), folder / "xla"))
    comparison = Comparison(sides, systems_of(options, folder), folder, options)
    with contextlib.ExitStack() as ending:
        for side in sides:
            ending.callback(side.stop)
        comparison.both(comparison.ask)
        found = comparison.differences()
        text = report(comparison, found)
        print(text, flush=True)
        classes = collections.Counter(f.kind for f in found)
        for kind, _ in classes.most_common(options.shrink):
            smallest = comparison.smallest([f for f in found if f.kind == kind])
            print(smallest, flush=True)
            text += f"\n{smallest}"
    (folder / "report.txt").write_text(text, "utf-8")
    print(f"{len(found)} differences, {time.perf_counter() - comparison.start:.0f} s; {folder}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())

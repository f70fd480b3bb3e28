"""Malformed files and command lines made from the shipped files, reproducible by the seed."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from fuzz_values import (
    COUNTS,
    FALLING,
    LONG,
    MILD,
    NEEDED,
    NUMBERS,
    OPTIONS,
    QUANTITIES,
    SAMPLES,
    SMALL,
    TABLES,
    TEXTS,
)

from jfric.verification.configs import config_directory


class Case(NamedTuple):
    """A command line, and the files in its folder."""

    kind: str
    arguments: list[str]
    files: dict[str, bytes]
    number: int = 0


def shipped_texts() -> dict[str, str]:
    """Texts of the shipped files by name."""
    return {p.stem: p.read_text("utf-8") for p in sorted(config_directory().glob("*.toml"))}


def cases(count: int, seed: int) -> list[Case]:
    """``count`` cases: half of them files, the others command lines and data."""
    rng = random.Random(seed)
    texts = shipped_texts()
    makers = (file_case, file_case, file_case, command_case, command_case, data_case, run_case) * 2
    makers = (*makers[:-1], system_case)
    return [makers[i % len(makers)](rng, texts)._replace(number=i) for i in range(count)]


# Files


def file_case(rng: random.Random, texts: dict[str, str]) -> Case:
    """A shipped file with one to three mistakes, read and shown."""
    text = texts[rng.choice(sorted(texts))]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        text = rng.choice(MUTATIONS)(rng, text)
    return Case(
        "file", ["show", "x.toml"], {"x.toml": _encoded(rng, text), "data.csv": b"0,1\n1,2\n"}
    )


def _encoded(rng: random.Random, text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.05:
        place = rng.randrange(len(data) + 1)
        return data[:place] + rng.choice((b"\xff\xfe", b"\x00", b"\xc3", b"\r")) + data[place:]
    return data


def _entries(text: str) -> list[tuple[int, int]]:
    """Places of the values of a file."""
    return [m.span(1) for m in re.finditer(r"(?m)^[\w.\"]+ = (.+)$", text)]


def hostile_value(rng: random.Random, text: str) -> str:
    """A file with another value for one of the keys."""
    spans = _entries(text)
    if not spans:
        return text
    start, end = rng.choice(spans)
    pool = rng.choice((NUMBERS, TABLES, TEXTS, TEXTS, QUANTITIES))
    value = rng.choice(pool)
    value = f'"{value}"' if pool in (TEXTS, QUANTITIES) else value
    return text[:start] + value + text[end:]


def nudged_number(rng: random.Random, text: str) -> str:
    """A file with another number in place of one, also within lists and quantities."""
    spans = [m.span() for m in re.finditer(r"(?<![\w.])-?\d+\.?\d*(?:e-?\d+)?", text)]
    if not spans:
        return text
    start, end = rng.choice(spans)
    return text[:start] + rng.choice((*MILD, *MILD, "1e400", "-0", "nan", "")) + text[end:]


def other_word(rng: random.Random, text: str) -> str:
    """A file with a word misspelt, or replaced by another one."""
    words = list(re.finditer(r"[A-Za-z_]\w+", text))
    if not words:
        return text
    chosen, other = rng.choice(words), rng.choice(words)
    wrong = rng.choice(
        (chosen[0][:-1], chosen[0] * 2, other[0], chosen[0].upper(), "é", "a" * LONG)
    )
    return text[: chosen.start()] + wrong + text[chosen.end() :]


def moved_line(rng: random.Random, text: str) -> str:
    """A file with a line removed, doubled, or moved."""
    lines = text.splitlines(keepends=True) or [text]
    line = lines.pop(rng.randrange(len(lines)))
    again = rng.choice((0, 0, 1, 2))
    for _ in range(again):
        lines.insert(rng.randrange(len(lines) + 1), line)
    return "".join(lines)


def cut(rng: random.Random, text: str) -> str:
    """The beginning of a file, or a file without a part."""
    start = rng.randrange(len(text) + 1)
    return text[:start] + (text[start + rng.randrange(1, 60) :] if rng.random() < 0.5 else "")


def odd_character(rng: random.Random, text: str) -> str:
    """A file with a special character in a wrong place."""
    place = rng.randrange(len(text) + 1)
    return text[:place] + rng.choice("\"[]{}=.,#$()\n\t\\'*/^&é∞\u0000") + text[place:]


def odd_table(rng: random.Random, text: str) -> str:
    """A file with a section that is no section, or with one twice."""
    name = rng.choice(
        ("friction", "contact", "solver", "statics", "check", "x.y", "base", "stop", "data")
    )
    field, value = (
        rng.choice(("mu", "normal", "dof", "x", "vary", "name")),
        rng.choice(NUMBERS + TABLES),
    )
    bracket = rng.choice(("[{}]", "[[{}]]", "[{}.a]", "[{}", "[a.{}.b.c]"))
    return f"{text}\n{bracket.format(name)}\n{field} = {value}\n"


MUTATIONS: tuple[Callable[[random.Random, str], str], ...] = (
    *(hostile_value, hostile_value, hostile_value, nudged_number, nudged_number),
    *(other_word, moved_line, cut, odd_character, odd_table),
)  # fmt: skip


# Data


def data_case(rng: random.Random, texts: dict[str, str]) -> Case:
    """A fit to damaged samples; or a matrix, or a function of time, from a damaged file."""
    kind = rng.choice(("csv", "csv", "npz", "mat", "parquet", "npy", "mtx", "function", "column"))
    if kind in ("npy", "mtx"):
        text = SMALL + f'[matrices]\nK = "x.{kind}"\n'
        return Case(
            "data", ["show", "x.toml"], {"x.toml": text.encode(), f"x.{kind}": _damaged(rng, kind)}
        )
    if kind == "function":
        text = SMALL.replace('F = "2 N"', 'F = {table = {file = "x.csv"}}')
        return Case(
            "data", ["show", "x.toml"], {"x.toml": text.encode(), "x.csv": _damaged(rng, "csv")}
        )
    text = SMALL
    if kind == "column":
        kind, text = "csv", hostile_value(rng, SMALL[: SMALL.index("[[check]]")])
    files = {"x.toml": text.encode(), f"x.{kind}": _damaged(rng, kind)}
    return Case(
        "data",
        ["fit", "x.toml", "--data", f"x.{kind}", "--free", "mass.m=-1:1", "--starts", "1"],
        files,
    )


def _damaged(rng: random.Random, kind: str) -> bytes:
    """A file of a kind that was cut, or whose bytes were changed."""
    data = bytearray(_whole(kind))
    for _ in range(rng.randrange(1, 6)):
        if data:
            data[rng.randrange(len(data))] = rng.randrange(256)
    form = rng.random()
    if form < 0.3:
        data = data[: rng.randrange(len(data) + 1)]
    elif form < 0.5:
        place = rng.randrange(len(data) + 1)
        odd = rng.choice((b"inf", b"nan", b"1e400", b",,", b'"', b"\x00", b"2" * 200_000, b"\n\n"))
        data[place:place] = odd
    return bytes(data)


def _whole(kind: str) -> bytes:
    rows = np.loadtxt(io.StringIO(SAMPLES), delimiter=",", skiprows=1)
    table = dict(zip("txF", rows.T, strict=True))
    buffer = io.BytesIO()
    if kind == "npz":
        np.savez(buffer, **table)
    elif kind == "npy":
        np.save(buffer, np.eye(1))
    elif kind == "mat":
        from scipy.io import savemat

        savemat(buffer, table)
    elif kind == "parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table(table), buffer)
    elif kind == "mtx":
        return b"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2.0\n"
    else:
        return SAMPLES.encode()
    return buffer.getvalue()


# Command lines


def _value(rng: random.Random) -> str:
    pool = rng.choice((NUMBERS, TEXTS, TABLES, QUANTITIES, COUNTS))
    # No program can be started with a zero byte in its arguments.
    return rng.choice(pool).replace("\\u0000", "\\n")


def _path(rng: random.Random) -> str:
    paths = (
        "mass.m",
        "parameters.a",
        "spring.k",
        "friction.mu",
        "friction.N",
        "load.F",
        "time.end",
    )
    return rng.choice(
        (*paths, "initial.q", "friction.friction.mu", "x", "", "a" * LONG, "mass", "contact.e")
    )


def _given(rng: random.Random, form: str) -> str:
    """A form such as ``PATH=VALUE`` filled in, or nonsense in its place."""
    if rng.random() < 0.15:
        return _value(rng)
    fill = {"PATH": _path, "VALUE": _value, "COUNT": _count, "NAME": _name, "MILD": _mild}
    return re.sub("|".join(fill), lambda m: fill[m[0]](rng), form)


def _count(rng: random.Random) -> str:
    return rng.choice(COUNTS)


def _mild(rng: random.Random) -> str:
    return rng.choice(MILD)


def _name(rng: random.Random) -> str:
    names = ("max_steps", "max_events", "dt", "width", "rtol", "atol", "theta", "law", "method")
    return rng.choice((*names, "flow", "increments", "contact_stiffness", "name", "x", "max-steps"))


def command_case(rng: random.Random, texts: dict[str, str]) -> Case:
    """A command with an option that is wrong in most cases."""
    command = rng.choice(sorted(OPTIONS))
    given = [_given(rng, x) if x.isupper() or "=" in x else x for x in rng.choice(OPTIONS[command])]
    text = texts["janovsky_static_fold"] if command in ("trace", "equilibria") else SMALL
    where = rng.choice(("data.csv", "x.toml", ".", "none")) if command == "plot" else "x.toml"
    # Options given twice are mostly refused: leave out those that the case gives.
    needed = list(_without(NEEDED.get(command, []), given))
    return Case(
        "command",
        [command, where, *needed, *given],
        {"x.toml": text.encode(), "data.csv": SAMPLES.encode()},
    )


def _without(needed: list[str], given: list[str]) -> Iterator[str]:
    for option, value in zip(needed[::2], needed[1::2], strict=True):
        if option not in given or option == "--vary":
            yield from (option, value)


def run_case(rng: random.Random, texts: dict[str, str]) -> Case:
    """The small system with other numbers, simulated in few steps."""
    text = rng.choice((SMALL, FALLING))
    for _ in range(rng.choice((1, 1, 2))):
        text = rng.choice((nudged_number, nudged_number, hostile_value))(rng, text)
    command = rng.choice(
        (["run", "x.toml", "--out", "out", "--option", "max_steps=50"], ["verify", "x.toml"])
    )
    return Case("run", command, {"x.toml": _encoded(rng, text), "data.csv": SAMPLES.encode()})


#: Shipped systems that compile quickly.
SYSTEMS = ("c7_bouncing_ball", "p4_elastic_floor", "ssnd116", "c4_belt", "c8_incline", "ve0119")


def system_case(rng: random.Random, texts: dict[str, str]) -> Case:
    """A shipped system with another number, simulated in few steps."""
    text = nudged_number(rng, texts[rng.choice(SYSTEMS)])
    command = ["run", "x.toml", "--out", "out", "--option", "max_steps=200"]
    return Case("system", command, {"x.toml": text.encode()})

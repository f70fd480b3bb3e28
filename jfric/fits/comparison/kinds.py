"""Kinds of records, and the records that a comparison leaves out together.

A law that is judged on records of the kind to which it was fitted may fail on any other kind. Two
records are of one kind if nothing that drives them differs by more than :data:`SAME`, in parts of
the larger one. What drives a record: the reference of its controller, else its measured inputs,
else its motion, and its known numbers. Of each signal the mean counts, and the root mean square in
bands of frequency, so that two records of one noise are of one kind, and two sizes of one motion
are not.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

import numpy as np

from jfric.errors import ProblemError
from jfric.fits.data.experiment import Experiment
from jfric.fits.memory import without_history
from jfric.fits.sampled_model import REFERENCE

#: Relative difference up to which two records are of one kind: in size or frequency.
SAME = 0.4
#: Middles of the bands in octaves of 1 Hz, and their half width in octaves.
OCTAVES, WIDTH = np.arange(-12, 21), 2.0
#: Words for groups: every record alone, or all of one kind together.
FILE, EXCITATION = "file", "excitation"
#: Number of records of one kind from which whole records are left out.
ENOUGH_RECORDS = 3

Group = list[Experiment]


def groups_of(
    experiments: Sequence[Experiment], groups: str | Sequence[str] | None
) -> list[Group] | None:
    """Records that are left out together: ``"file"``, each alone; ``"excitation"``, all of one
    kind; or patterns of their names, one for each group. By default kinds, if there are several,
    else each alone, if there are at least three; None for fewer, of which pieces are left out.
    Raises :class:`jfric.ProblemError` for a record in no group, and for fewer than two groups."""
    kinds = kinds_of(experiments)
    if groups is None:
        if len(kinds) > 1:
            return kinds
        return [[e] for e in experiments] if len(experiments) >= ENOUGH_RECORDS else None
    patterns = [groups] if isinstance(groups, str) else list(groups)
    if patterns == [FILE]:
        found = [[e] for e in experiments]
    else:
        found = kinds if patterns == [EXCITATION] else _by_patterns(experiments, patterns)
    if len(found) < 2:
        raise ProblemError(
            f"groups: all {len(experiments)} records are in one group, at least 2 are needed"
        )
    return found


def _by_patterns(experiments: Sequence[Experiment], patterns: Sequence[str]) -> list[Group]:
    found: dict[str, Group] = {pattern: [] for pattern in patterns}
    for i, e in enumerate(experiments):
        name = e.name or f"record {i + 1}"
        fits = [pattern for pattern in patterns if fnmatch.fnmatchcase(name, pattern)]
        if not fits:
            raise ProblemError(
                f"groups: {name!r} matches none of {', '.join(map(repr, patterns))}; allowed are "
                f"patterns of names, {FILE!r} and {EXCITATION!r}"
            )
        found[fits[0]].append(e)
    return [group for group in found.values() if group]


def kinds_of(experiments: Sequence[Experiment]) -> list[Group]:
    """Records by kind, in the order of the first of each kind."""
    kinds: list[tuple[dict[str, np.ndarray], Group]] = []
    for e in experiments:
        own = _driving(e)
        for first, group in kinds:
            if _differ(first, own) <= SAME:
                group.append(e)
                break
        else:
            kinds.append((own, [e]))
    return [group for _, group in kinds]


def remarks_on_kinds(kinds: Sequence[Group], groups: Sequence[Group] | None) -> list[str]:
    """Remarks on what a comparison cannot say of records of another kind; ``groups``: records that
    were left out together, None for pieces of each record."""
    if len(kinds) == 1:
        return [
            f"all records are of one kind of excitation ({_names(kinds[0])}): no law was judged on "
            "a record of another kind, where the recommended one may fail"
        ]
    apart = [
        _names(kind)
        for kind in kinds
        if groups is None or len([g for g in groups if any(e in g for e in kind)]) > 1
    ]
    if not apart:
        return []
    return [
        f"records of one kind of excitation ({'; '.join(apart)}) were fitted and judged in turns; "
        f"groups={EXCITATION!r} (--group {EXCITATION}) leaves whole kinds out"
    ]


def drives_of(e: Experiment) -> dict[str, np.ndarray]:
    """Signals that drive a record: the reference of its controller, else its inputs."""
    inputs = without_history(e.u)
    return {REFERENCE: inputs[REFERENCE]} if REFERENCE in inputs else dict(inputs)


def _names(kind: Group) -> str:
    names = [e.name or "unnamed" for e in kind]
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(names[:2]) + more


def _driving(e: Experiment) -> dict[str, np.ndarray]:
    """Mean and sizes by frequency of each signal that drives a record, and its known numbers."""
    signals = drives_of(e) or e.y
    own = {f"known.{path}": np.array([x]) for path, x in (e.known or {}).items()}
    return own | {name: _sizes(e.t, np.asarray(x, float)) for name, x in signals.items()}


def _sizes(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The mean, and the root mean square in each band, of samples with gaps or uneven times."""
    there = np.isfinite(x)
    even = np.interp(np.linspace(t[0], t[-1], t.size), t[there], x[there])
    mean = float(np.mean(even))
    weight = np.hanning(t.size + 2)[1:-1]
    power = np.abs(np.fft.rfft((even - mean) * weight)[1:]) ** 2
    power = 2.0 * power / (t.size * np.sum(weight**2))
    octave = np.log2(np.fft.rfftfreq(t.size, (t[-1] - t[0]) / (t.size - 1))[1:])
    hats = np.maximum(1.0 - np.abs(octave - OCTAVES[:, None]) / WIDTH, 0.0) / WIDTH
    return np.append(mean, np.sqrt(hats @ power))


def _differ(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> float:
    """Largest relative difference of what drives two records."""
    if one.keys() != other.keys():
        return np.inf
    sizes = [float(max(np.linalg.norm(x), np.linalg.norm(other[k]))) for k, x in one.items()]
    off = [float(np.linalg.norm(x - other[k])) for k, x in one.items()]
    return max((d / s for d, s in zip(off, sizes, strict=True) if s > 0.0), default=0.0)

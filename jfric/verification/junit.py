"""Verification results as JUnit XML, which continuous-integration servers read."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jfric.verification.result import Result

#: Characters that XML 1.0 cannot hold.
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


def write_junit(path: Path, results: Sequence[Result], seconds: float) -> None:
    """Write one test case for each check, one suite for each case and solver."""
    failures = sum(not r.passed for r in results)
    root = ET.Element(
        "testsuites",
        name="jfric verify",
        tests=str(len(results)),
        failures=str(failures),
        time=f"{seconds:.3f}",
    )
    groups: dict[tuple[str, str], list[Result]] = {}
    for r in results:
        groups.setdefault((r.case, r.solver), []).append(r)
    for (case, solver), group in groups.items():
        failed = sum(not r.passed for r in group)
        suite = ET.SubElement(
            root,
            "testsuite",
            name=_clean(f"{case} {solver}"),
            tests=str(len(group)),
            failures=str(failed),
        )
        for r in group:
            test = ET.SubElement(
                suite, "testcase", classname=_clean(f"{case}.{solver}"), name=_clean(r.quantity)
            )
            if not r.passed:
                message = (
                    f"{r.quantity}: {r.value!r} instead of {r.expected!r}, "
                    f"error {r.error:.3g} exceeds {r.tolerance:.3g}"
                )
                ET.SubElement(test, "failure", message=_clean(message)).text = _clean(r.source)
    ET.indent(root)
    path.parent.mkdir(parents=True, exist_ok=True)
    ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("?", text)

"""Formulas in quantities of a motion: ``x - 0.2 m``, ``-0.5*v.x``, ``lambda_n.floor - $limit``.

A formula computes like an :class:`Expression`. Names stand for quantities. Units may follow numbers
and brackets, and end at the next space or bracket: ``0.2 m``, ``(1/3) m``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from jfric.errors import ProblemError, nearest, quoted
from jfric.system.expression import WORDS, Expression, Folded, folded
from jfric.system.units import dimensions_of, is_known, measure_of, to_si

_UNIT = r"[^\W\d_][^\s()+\-,*/]*|[°%]"
_TOKEN = re.compile(
    r"(?P<parameter>\$[A-Za-z_]\w*)|(?P<name>[^\W\d]\w*(?:\.\w+)*)"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|\))"
    rf"(?:\s*(?P<unit>(?:{_UNIT})(?:[*/](?:{_UNIT}))*))?"
)
#: A fraction of numbers with a unit, which may belong to the fraction or to the denominator.
_UNCLEAR = re.compile(rf"(?<![\w.$])([\d.]+)\s*/\s*([\d.]+)\s*({_UNIT})")


class Formula(NamedTuple):
    """An expression whose parameters stand for quantities, by name, and for numbers with a unit."""

    text: str
    expression: Expression
    #: Names of quantities by the parameters that stand for them.
    names: Mapping[str, str]
    #: Value in SI units and dimensionality of numbers with a unit, by their parameters.
    quantities: Mapping[str, tuple[float, Any]]

    @property
    def references(self) -> tuple[str, ...]:
        """Names of the shared parameters."""
        held = (*self.names, *self.quantities)
        return tuple(r for r in self.expression.references if r not in held)

    def value(self, quantity: Callable[[str], Any], parameters: Mapping[str, Any]) -> Any:
        """Value of the formula; ``quantity`` returns the value of a quantity by its name."""
        values = {k: v for k, (v, _) in self.quantities.items()}
        values |= {k: quantity(name) for k, name in self.names.items()}
        return self.expression.value(values | {r: parameters[r] for r in self.references})

    def folded(self, known: Mapping[str, Any], quantities: Collection[str]) -> Folded:
        """The formula in ``quantities`` alone, with all ``known`` parts computed; names without
        ``$`` may also stand for known values."""
        values = {k: v for k, (v, _) in self.quantities.items()}
        values |= {r: known[r] for r in self.references}
        own = {k: n for k, n in self.names.items() if n not in quantities and n in known}
        values |= {k: known[name] for k, name in own.items()}
        found = folded(self.expression.text, values)
        return found._replace(names=tuple(self.names[k] for k in found.names))

    def dimensionality(self, unit: Callable[[str], str]) -> Any:
        """Dimensionality of the formula where ``unit`` gives the units of quantities; None where it
        is not known. Raises :class:`UnitError` where terms of different dimension are added."""
        return self.measured(lambda n: None if n.startswith("$") else dimensions_of(unit(n)))

    def measured(self, of: Callable[[str], Any]) -> Any:
        """Dimensionality of the formula where ``of`` gives that of quantities, and of shared
        parameters by ``$name``; None where it is not known."""
        known = {k: d for k, (_, d) in self.quantities.items()}
        known |= {k: of(name) for k, name in self.names.items()}
        known |= {name: of(f"${name}") for name in self.references}
        body, names = self.expression.tree
        found = measure_of(body, [known.get(name) for name in names])
        return found if is_known(found) else None


@functools.lru_cache(maxsize=512)
def read_formula(text: str) -> Formula:
    """The formula in ``text``. Raises ``ValueError`` for anything else."""
    names: dict[str, str] = {}
    quantities: dict[str, tuple[float, Any]] = {}
    prefix = "_quantity"
    while f"${prefix}" in text:
        prefix += "_"

    if unclear := _UNCLEAR.search(text):
        above, below, unit = unclear.groups()
        raise ValueError(
            f"the formula {quoted(text)} can be read in two ways; write ({above}/{below}) {unit} "
            f"or {above}/({below} {unit})"
        )

    def replaced(match: re.Match) -> str:
        label = f"{prefix}{len(names) + len(quantities)}"
        if match["unit"]:
            bracket = match["number"] == ")"
            value = to_si(f"{1 if bracket else match['number']} {match['unit']}")
            quantities[label] = float(value), dimensions_of(match["unit"])  # type: ignore[arg-type]
            return f")*${label}" if bracket else f"${label}"
        if match["name"] and match["name"] not in WORDS:
            if match["name"] in names.values():
                label = next(k for k, v in names.items() if v == match["name"])
            names[label] = match["name"]
            return f"${label}"
        return match[0]

    plain = _TOKEN.sub(replaced, text)
    try:
        return Formula(text, Expression(plain), names, quantities)
    except ValueError as error:
        reason = re.search(r"has more than .*|has no finite value", str(error))
        why = (
            reason[0]
            if reason
            else (
                "cannot be read; it may hold names of quantities, numbers with units, $parameters, "
                f"+ - * / ** ^, parentheses and {', '.join(sorted(WORDS))}"
            )
        )
        raise ValueError(f"the formula {quoted(text)} {why}") from None


def require_formula(where: str, text: str, declared: Collection[str]) -> Formula:
    """The formula of ``text``. Raises :class:`jfric.ProblemError`, which starts with ``where``, if
    the text is no formula or refers to a shared parameter that is not ``declared``."""
    try:
        formula = read_formula(text)
    except ValueError as error:
        raise ProblemError(f"{where}: {error}") from None
    require_declared(where, text, formula.references, declared)
    return formula


def require_declared(
    where: str, text: str, references: Collection[str], declared: Collection[str]
) -> None:
    """Raise :class:`jfric.ProblemError` for a shared parameter that is not ``declared``."""
    for reference in references:
        if reference not in declared:
            raise ProblemError(
                f"{where}: {text!r} refers to the parameter {reference!r}, which is not declared"
                f"{nearest(reference, declared)}; declared are {', '.join(declared) or 'none'}"
            )

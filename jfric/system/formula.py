"""Formulas in quantities of a motion: ``x - 0.2 m``, ``-0.5*v.x``, ``lambda_n.floor - $limit``.

What can be computed is what an :class:`Expression` can; names stand for quantities, and numbers
may carry units, which end at the next space or bracket. ``x^2`` is ``x**2``.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from jfric.errors import ProblemError, nearest, quoted
from jfric.system.expression import WORDS, Expression
from jfric.system.units import UnitError, dimensions_of, named, to_si

_UNIT = r"[^\W\d_][^\s()+\-,*/]*|[°%]"
_TOKEN = re.compile(
    r"(?P<parameter>\$[A-Za-z_]\w*)|(?P<name>[^\W\d]\w*(?:\.\w+)*)"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    rf"(?:\s*(?P<unit>(?:{_UNIT})(?:[*/](?:{_UNIT}))*))?"
)
#: A number without a unit, and what is not known.
_BARE, _UNKNOWN = "bare", None


class Formula(NamedTuple):
    """An expression whose parameters stand for quantities, by name, and for numbers with a unit."""

    text: str
    expression: Expression
    #: Names of quantities by what stands for them.
    names: Mapping[str, str]
    #: Value in SI units and dimensionality of what stands for numbers with a unit.
    quantities: Mapping[str, tuple[float, Any]]

    @property
    def references(self) -> tuple[str, ...]:
        """Shared parameters."""
        held = (*self.names, *self.quantities)
        return tuple(r for r in self.expression.references if r not in held)

    def value(self, quantity: Callable[[str], Any], parameters: Mapping[str, Any]) -> Any:
        """Value where ``quantity`` gives those named."""
        values = {k: v for k, (v, _) in self.quantities.items()}
        values |= {k: quantity(name) for k, name in self.names.items()}
        return self.expression.value(values | {r: parameters[r] for r in self.references})

    def dimensionality(self, unit: Callable[[str], str]) -> Any:
        """What the formula measures, where ``unit`` gives the units of quantities; None where that
        is not known. Raises :class:`UnitError` where unlike things are added."""
        return self.measured(lambda n: None if n.startswith("$") else dimensions_of(unit(n)))

    def measured(self, of: Callable[[str], Any]) -> Any:
        """The same where ``of`` gives the dimensionality of quantities, and of shared parameters
        by ``$name``; None where it is not known."""
        known = {k: d for k, (_, d) in self.quantities.items()}
        known |= {k: of(name) for k, name in self.names.items()}
        known |= {name: of(f"${name}") for name in self.references}
        body, names = self.expression.tree
        found = _measures(body, [known.get(name) for name in names])
        return found if _is_known(found) else None


@functools.lru_cache(maxsize=512)
def read_formula(text: str) -> Formula:
    """The formula that ``text`` holds. Raises ``ValueError`` for anything else."""
    names: dict[str, str] = {}
    quantities: dict[str, tuple[float, Any]] = {}
    prefix = "_quantity"
    while f"${prefix}" in text:
        prefix += "_"

    def replaced(match: re.Match) -> str:
        label = f"{prefix}{len(names) + len(quantities)}"
        if match["unit"]:
            value = to_si(f"{match['number']} {match['unit']}")
            quantities[label] = float(value), dimensions_of(match["unit"])  # type: ignore[arg-type]
        elif match["name"] and match["name"] not in WORDS:
            if match["name"] in names.values():
                label = next(k for k, v in names.items() if v == match["name"])
            names[label] = match["name"]
        else:
            return match[0]
        return f"${label}"

    plain = _TOKEN.sub(replaced, text).replace("^", "**")
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
    """The formula of ``text``; raises :class:`jfric.ProblemError`, which starts with ``where``,
    where there is none, or where it refers to a shared parameter that is not ``declared``."""
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


def _is_known(what: Any) -> bool:
    return what is not _BARE and what is not _UNKNOWN


def _measures(node: ast.expr, known: list[Any]) -> Any:
    match node:
        case ast.Name(id=name) if name.rpartition("_")[2].isdecimal():
            return known[int(name.rpartition("_")[2])]
        case ast.UnaryOp():
            return _measures(node.operand, known)
        case ast.Call():
            inside = _measures(node.args[0], known)
            pure = dimensions_of("")
            if isinstance(node.func, ast.Name) and node.func.id == "sqrt":
                return inside**0.5 if _is_known(inside) else inside
            if _is_known(inside) and inside != pure:
                raise UnitError(f"found {ast.unparse(node.func)} of something with a unit")
            return pure
        case ast.BinOp(op=ast.Pow()):
            base, power = _measures(node.left, known), node.right
            if not _is_known(base):
                return base
            return base**power.value if isinstance(power, ast.Constant) else _UNKNOWN
        case ast.BinOp():
            a, b = _measures(node.left, known), _measures(node.right, known)
            if isinstance(node.op, ast.Add | ast.Sub):
                sides = [x for x in (a, b) if _is_known(x)]
                if len(sides) == 2 and a != b:
                    raise UnitError(f"adds{named(a)} and{named(b)}")
                return sides[0] if sides else (a if a is b else _UNKNOWN)
            if a is _UNKNOWN or b is _UNKNOWN:
                return _UNKNOWN
            if b is _BARE:
                return a
            b = b if isinstance(node.op, ast.Mult) else b**-1
            return b if a is _BARE else a * b
    return _BARE

"""Formulas that users wrote in their files, as MathML."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from generators.manual import mathml as m
from jfric.system.expression import Expression
from jfric.system.formula import read_formula

_SIGNS = {ast.Add: "+", ast.Sub: m.MINUS}
#: How tightly the parts of a formula hold together.
_SUM, _PRODUCT, _POWER, _ATOM = range(4)


def formula(text: str) -> str:
    """The formula ``text``; what cannot be read is shown as it stands."""
    try:
        found = read_formula(text)
    except ValueError:
        return m.text(text)
    shown = {k: _quantity(name) for k, name in found.names.items()}
    shown |= {k: m.number(value) for k, (value, _) in found.quantities.items()}
    return _drawn(found.expression, shown)


def expression(value: Expression) -> str:
    """An expression in shared parameters."""
    return _drawn(value, {})


def _drawn(value: Expression, shown: dict[str, str]) -> str:
    body, names = value.tree

    def leaf(node: ast.Name) -> str:
        place = re.fullmatch(r"_p_(\d+)", node.id)
        if place is None:
            return m.symbol(node.id)
        name = names[int(place[1])]
        return shown.get(name, m.symbol(name))

    return _set(body, leaf)[0]


def _quantity(name: str) -> str:
    """``v.x`` is a velocity, ``a.x`` an acceleration, another word before a point a function."""
    first, _, rest = name.partition(".")
    if not rest:
        return m.symbol(first)
    if first in ("v", "a"):
        return m.dotted(m.symbol(rest), 1 if first == "v" else 2)
    return m.sub(m.symbol(first), rest)


def _set(node: ast.expr, leaf: Callable[[ast.Name], str]) -> tuple[str, int]:
    """MathML of a part, and how tightly it holds together."""

    def within(part: ast.expr, least: int) -> str:
        text, tight = _set(part, leaf)
        return text if tight >= least else m.bracketed(text)

    match node:
        case ast.Constant(value=int() | float() as value):
            return m.number(float(value), 10), _ATOM
        case ast.Name():
            return leaf(node), _ATOM
        case ast.UnaryOp(op=sign, operand=inner):
            shown = m.MINUS if isinstance(sign, ast.USub) else "+"
            return m.row(m.op(shown), within(inner, _PRODUCT)), _SUM
        case ast.Call(func=ast.Name(id="sqrt"), args=[inner]):
            return m.root(_set(inner, leaf)[0]), _ATOM
        case ast.Call(func=ast.Name(id=name), args=[inner]):
            shown = {"atan": "arctan", "log": "ln"}.get(name, name)
            inside = m.bracketed(_set(inner, leaf)[0])
            return m.row(f'<mi mathvariant="normal">{shown}</mi>', inside), _POWER
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return m.fraction(_set(left, leaf)[0], _set(right, leaf)[0]), _PRODUCT
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return m.power(within(left, _ATOM), _set(right, leaf)[0]), _POWER
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            between = m.op("·") if isinstance(right, ast.Constant) else '<mspace width="0.15em"/>'
            minus = isinstance(left, ast.UnaryOp)
            first = _set(left, leaf)[0] if minus else within(left, _PRODUCT)
            tight = _SUM if minus else _PRODUCT
            return m.row(first, between, within(right, _PRODUCT)), tight
        case ast.BinOp(left=left, op=sign, right=right):
            tight = _PRODUCT if isinstance(sign, ast.Sub) else _SUM
            shown = m.op(_SIGNS[type(sign)])
            return m.row(within(left, _SUM), shown, within(right, tight)), _SUM
    return m.text(ast.unparse(node)), _ATOM

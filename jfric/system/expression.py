"""Fields that refer to shared parameters: small arithmetic expressions such as ``$m*$g``."""

from __future__ import annotations

import ast
import operator
import re
from typing import Any

import equinox as eqx
import jax.numpy as jnp

_BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos}
_FUNCTIONS = {"sin": jnp.sin, "cos": jnp.cos, "tan": jnp.tan, "sqrt": jnp.sqrt}
_CONSTANTS = {"pi": 3.141592653589793}
_REFERENCE = re.compile(r"\$([A-Za-z_]\w*)")


class Expression(eqx.Module):
    """A value computed from shared parameters.

    ``text`` holds numbers, ``$name`` references, ``+ - * / **``, parentheses and the functions
    ``sin cos tan sqrt``. It is parsed, never executed. Sweeps, fits and derivatives act on the
    shared parameters it refers to.

    Raises ``ValueError`` if the text holds anything else.
    """

    text: str = eqx.field(static=True)

    def __check_init__(self) -> None:
        _check(_parse(self.text), self.text)

    @property
    def references(self) -> tuple[str, ...]:
        """Names of the shared parameters used, in order of appearance."""
        return tuple(dict.fromkeys(_REFERENCE.findall(self.text)))

    def value(self, parameters):
        """Value for ``parameters`` (a mapping from name to number or array)."""
        return _evaluate(_parse(self.text), parameters)


def is_expression(x) -> bool:
    """Whether ``x`` is an :class:`Expression` (for ``is_leaf``)."""
    return isinstance(x, Expression)


def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(_REFERENCE.sub(r"_p_\1", text).strip(), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"cannot read the expression {text!r}") from error


def _check(node: ast.expr, text: str) -> None:
    match node:
        case ast.Constant(value=int() | float()):
            return
        case ast.Name(id=name) if name.startswith("_p_") or name in _CONSTANTS:
            return
        case ast.BinOp(op=op) if type(op) in _BINARY:
            _check(node.left, text)
            _check(node.right, text)
            return
        case ast.UnaryOp(op=op) if type(op) in _UNARY:
            _check(node.operand, text)
            return
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in _FUNCTIONS:
            _check(argument, text)
            return
    raise ValueError(
        f"the expression {text!r} may hold numbers, $parameters, + - * / **, parentheses, pi and "
        f"{', '.join(_FUNCTIONS)}, but it holds {ast.unparse(node)!r}"
    )


def _evaluate(node: ast.expr, parameters) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return _CONSTANTS[name] if name in _CONSTANTS else parameters[name[3:]]
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_evaluate(left, parameters), _evaluate(right, parameters))
        case ast.UnaryOp(op=op, operand=operand):
            return _UNARY[type(op)](_evaluate(operand, parameters))
        case ast.Call(func=ast.Name(id=name), args=[argument]):
            return _FUNCTIONS[name](_evaluate(argument, parameters))
    raise AssertionError(node)

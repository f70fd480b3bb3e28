"""Fields that refer to shared parameters: small arithmetic expressions such as ``$m*$g``."""

from __future__ import annotations

import ast
import functools
import math
import operator
import re
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jfric.errors import quoted

_BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos}
#: Functions of plain numbers (in double precision, whatever JAX uses), of arrays and of tracers.
_FUNCTIONS = {
    "sin": (math.sin, np.sin, jnp.sin),
    "cos": (math.cos, np.cos, jnp.cos),
    "tan": (math.tan, np.tan, jnp.tan),
    "sqrt": (math.sqrt, np.sqrt, jnp.sqrt),
    "atan": (math.atan, np.arctan, jnp.arctan),
    "exp": (math.exp, np.exp, jnp.exp),
    "log": (math.log, np.log, jnp.log),
}
_CONSTANTS = {"pi": math.pi}
#: Words that a text without ``$`` may hold and still be arithmetic, not a quantity with a unit.
WORDS = frozenset((*_FUNCTIONS, *_CONSTANTS))
_REFERENCE = re.compile(r"\$([A-Za-z_]\w*)")
#: Stands for a reference while Python reads the text, followed by its number.
_PLACE = "_p_"
#: Texts are read and computed by recursion: their size is bounded before.
LONGEST, DEEPEST = 1000, 100
#: Whole exponents up to this stay whole: powers of negative numbers have derivatives then.
_WHOLE = 64


class Expression(eqx.Module):
    """A value computed from shared parameters.

    ``text`` holds numbers in SI units, ``$name`` references, ``+ - * /``, powers (``^`` or ``**``),
    parentheses and the functions ``sin cos tan sqrt atan exp log``; at most 1,000 characters and
    100 operations inside each other. It is parsed, never executed. Sweeps, fits and derivatives act
    on the shared parameters it refers to.

    Raises ``ValueError`` if the text holds anything else, or a part without parameters that has
    no finite value::

        >>> weight = jfric.Expression("$m*9.81")
        >>> weight.references, weight.value({"m": 2.0})
        (('m',), 19.62)
    """

    text: str = eqx.field(static=True)

    def __check_init__(self) -> None:
        read = _read(self.text)
        _check(read.body, read, 1)

    @property
    def references(self) -> tuple[str, ...]:
        """Names of the shared parameters used, in order of appearance."""
        return _references(self.text)

    @property
    def tree(self) -> tuple[ast.expr, tuple[str, ...]]:
        """The expression as Python reads it, and the parameters that its placeholders number."""
        read = _read(self.text)
        return read.body, read.names

    def value(self, parameters):
        """Value for ``parameters`` (a mapping from name to number or array)."""
        read = _read(self.text)
        values = [parameters[name] for name in read.names]
        known = [isinstance(x, jax.Array) and not isinstance(x, Tracer) for x in values]
        if not values or not all(known):
            return _evaluate(read.body, values)
        # Known numbers need no compiled program.
        with np.errstate(all="ignore"):
            found = np.asarray(_evaluate(read.body, [np.asarray(x) for x in values]))
        return jnp.asarray(found, jnp.result_type(float))


class Folded(NamedTuple):
    """An expression in some of its references; all other parts are computed.

    ``text``: in Python's notation, with placeholders for the ``names``, then for the ``parts``.
    """

    text: str
    names: tuple[str, ...]
    parts: tuple[Any, ...]


def folded(text: str, known: Mapping[str, Any]) -> Folded:
    """The expression ``text`` in which each part with ``known`` references only is computed once.
    Whole exponents stay."""
    read = _read(text)
    names = tuple(name for name in read.names if name not in known)
    values = [_known(known.get(name)) for name in read.names]
    place = {i: names.index(name) for i, name in enumerate(read.names) if name in names}
    parts: list[Any] = []
    body = _fold(read.body, place, values, parts)
    return Folded(ast.unparse(ast.fix_missing_locations(body)), names, tuple(parts))


def _known(value: Any) -> Any:
    """An array whose numbers are known, as one of NumPy: its operations are not compiled."""
    is_known = isinstance(value, jax.Array) and not isinstance(value, Tracer)
    return np.asarray(value)[()] if is_known else value


def evaluated(text: str, values: Sequence[Any]) -> Any:
    """Value of :attr:`Folded.text` for the ``values`` of all placeholders."""
    return _evaluate(_parsed(text), values)


@functools.lru_cache(maxsize=512)
def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _fold(node: ast.expr, place: Mapping[int, int], values, parts: list[Any]) -> ast.expr:
    """Tree of ``node`` with known parts replaced; ``place``: new numbers of placeholders left."""
    if not _refers(node, place):
        parts.append(_evaluate(node, values))
        return ast.Name(f"{_PLACE}{len(set(place.values())) + len(parts) - 1}")
    match node:
        case ast.Name(id=name):
            return ast.Name(f"{_PLACE}{place[int(name[len(_PLACE) :])]}")
        case ast.BinOp(left=left, op=op, right=right):
            base = _fold(left, place, values, parts)
            if isinstance(op, ast.Pow) and not _refers(right, place):
                power = _exponent(right, values)
                if isinstance(power, int):
                    return ast.BinOp(base, op, ast.Constant(power))
            return ast.BinOp(base, op, _fold(right, place, values, parts))
        case ast.UnaryOp(op=op, operand=operand):
            return ast.UnaryOp(op, _fold(operand, place, values, parts))
        case ast.Call(func=function, args=[argument]):
            return ast.Call(function, [_fold(argument, place, values, parts)], [])
    raise AssertionError(node)


def _refers(node: ast.expr, place: Mapping[int, int]) -> bool:
    names = (x.id for x in ast.walk(node) if isinstance(x, ast.Name))
    return any(x.startswith(_PLACE) and int(x[len(_PLACE) :]) in place for x in names)


def is_expression(x) -> bool:
    """Whether ``x`` is an :class:`Expression` (for ``is_leaf``)."""
    return isinstance(x, Expression)


class _Read(NamedTuple):
    """A text as parsed by Python, and the parameters that its placeholders stand for."""

    text: str
    body: ast.expr
    names: tuple[str, ...]


def _references(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_REFERENCE.findall(text)))


@functools.lru_cache(maxsize=512)
def _read(text: str) -> _Read:
    if len(text) > LONGEST:
        raise ValueError(
            f"the expression {quoted(text)} has {len(text)} characters, at most {LONGEST} are "
            "allowed"
        )
    names = _references(text)
    # Python takes some letters of other alphabets for the same name.
    others = unicodedata.normalize("NFKC", _REFERENCE.sub(" ", text))
    if _PLACE in others:
        found = next(word for word in re.findall(r"\w+", others) if _PLACE in word)
        raise _not_allowed(text, found)
    plain = _REFERENCE.sub(lambda m: f"{_PLACE}{names.index(m[1])}", text).strip()
    plain = plain.replace("^", "**")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SyntaxWarnings for what is refused below
            return _Read(text, ast.parse(plain, mode="eval").body, names)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"cannot read the expression {quoted(text)}; it {_ALLOWED}") from None


_ALLOWED = (
    "may hold numbers in SI units without their unit, $parameters, + - * / ^, parentheses, "
    f"pi and {', '.join(_FUNCTIONS)}"
)


def _not_allowed(text: str, found: str) -> ValueError:
    return ValueError(f"the expression {quoted(text)} {_ALLOWED}, but it holds {quoted(found)}")


def _check(node: ast.expr, read: _Read, depth: int) -> float | None:
    """The value of a part without references, None with references; anything else is refused."""
    if depth > DEEPEST:
        raise ValueError(
            f"the expression {quoted(read.text)} has more than {DEEPEST} operations inside each "
            "other or in a row"
        )
    parts: list[ast.expr] = []
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            pass
        case ast.Name(id=name) if name in _CONSTANTS:
            pass
        case ast.Name(id=name) if name.startswith(_PLACE) and name[len(_PLACE) :].isdecimal():
            return None
        case ast.BinOp(op=op) if type(op) in _BINARY:
            parts = [node.left, node.right]
        case ast.UnaryOp(op=op) if type(op) in _UNARY:
            parts = [node.operand]
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in _FUNCTIONS:
            parts = [argument]
        case _:
            raise _not_allowed(read.text, _as_written(node, read))
    values = [_check(part, read, depth + 1) for part in parts]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and values[1] == 0.0:
        raise _no_value(node, read)
    return None if None in values else _finite(node, read)


def _finite(node: ast.expr, read: _Read) -> float:
    try:
        value = _evaluate(node, ())
    except (ArithmeticError, ValueError):  # division by zero, overflow, root of a negative number
        value = math.nan
    if isinstance(value, complex) or not math.isfinite(value):
        raise _no_value(node, read)
    return value


def _no_value(node: ast.expr, read: _Read) -> ValueError:
    part = quoted(_as_written(node, read))
    return ValueError(f"the expression {quoted(read.text)} has no finite value: {part}")


def _as_written(node: ast.expr, read: _Read) -> str:
    try:
        text = ast.unparse(node)
    except RecursionError:
        return "a part that is nested too deep"
    return re.sub(
        rf"{_PLACE}(\d+)",
        lambda m: f"${read.names[int(m[1])]}" if int(m[1]) < len(read.names) else m[0],
        text,
    )


def _evaluate(node: ast.expr, values) -> Any:
    match node:
        case ast.Constant(value=int() | float() as value):
            # Powers and products of whole numbers may have any number of digits.
            return float(value)
        case ast.Name(id=name):
            return _CONSTANTS[name] if name in _CONSTANTS else values[int(name[len(_PLACE) :])]
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _evaluate(left, values) ** _exponent(right, values)
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_evaluate(left, values), _evaluate(right, values))
        case ast.UnaryOp(op=op, operand=operand):
            return _UNARY[type(op)](_evaluate(operand, values))
        case ast.Call(func=ast.Name(id=name), args=[argument]):
            x = _evaluate(argument, values)
            of_numbers, of_arrays, of_traced = _FUNCTIONS[name]
            if isinstance(x, (np.ndarray, np.generic)):
                return of_arrays(x)
            return of_numbers(x) if isinstance(x, float) else of_traced(x)
    raise AssertionError(node)


def _exponent(node: ast.expr, values) -> Any:
    power = _evaluate(node, values)
    whole = isinstance(power, float) and abs(power) <= _WHOLE and power == int(power)
    return int(power) if whole else power

"""Formulas as MathML, which browsers and printers of pages set without a script."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

#: Names that are Greek letters.
GREEK = {
    **{"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "zeta": "ζ"},
    **{"eta": "η", "theta": "θ", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ"},
    **{"pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "chi": "χ", "psi": "ψ"},
    **{"omega": "ω", "Omega": "Ω", "Delta": "Δ", "Phi": "Φ"},
}
MINUS = "−"
SPACE = '<mspace width="0.2em"/>'
#: Vectors and matrices. Plain MathML has no attribute for bold letters.
_BOLD = dict(zip("qfhMCKWΦλ", "𝐪𝐟𝐡𝐌𝐂𝐊𝐖𝚽𝛌", strict=True))


def symbol(name: str) -> str:
    """A name: Greek where it is that of a letter, digits and what follows ``_`` as an index."""
    head, _, rest = name.partition("_")
    letters = head.rstrip("0123456789")
    index = ", ".join(x for x in (head[len(letters) :], rest.replace("_", " ")) if x)
    known = GREEK.get(letters, letters)
    upright = ' mathvariant="normal"' if len(known) > 1 else ""
    base = f"<mi{upright}>{html.escape(known)}</mi>"
    return f"<msub>{base}<mtext>{html.escape(index)}</mtext></msub>" if index else base


def bold(letter: str) -> str:
    """A vector or a matrix."""
    return f"<mi>{_BOLD[letter]}</mi>"


def transposed(letter: str, index: str = "") -> str:
    """A matrix, transposed."""
    top = "<mi>⊤</mi>"
    if index:
        return f"<msubsup>{bold(letter)}<mi>{index}</mi>{top}</msubsup>"
    return f"<msup>{bold(letter)}{top}</msup>"


def of(what: str, *arguments: str) -> str:
    """A function of arguments."""
    return row(what, bracketed(op(",").join(arguments)))


def dotted(inner: str, order: int = 1) -> str:
    """A derivative by time."""
    # Accents of MathML sit where a font for mathematics says; on a letter they are part of it.
    letter = re.match(r"((?:<msub>)?)<mi>([^<])</mi>(.*)", inner)
    if letter:
        accent = "\u0307" if order == 1 else "\u0308"
        return f'{letter[1]}<mi class="dotted">{letter[2]}{accent}</mi>{letter[3]}'
    dots = "˙" if order == 1 else "¨"
    return f'<mover accent="true">{inner}<mo stretchy="false">{dots}</mo></mover>'


def with_sign(inner: str, sign: str) -> str:
    """A symbol with an index, and a sign above it."""
    return inner.replace("<msub>", "<msubsup>", 1).replace("</msub>", f"{op(sign)}</msubsup>", 1)


def number(value: float, digits: int = 6) -> str:
    """A number in decimal places or as a power of ten."""
    text = f"{float(value):.{digits}g}"
    mantissa, _, exponent = text.partition("e")
    shown = f"<mn>{mantissa.removeprefix('-')}</mn>"
    if exponent:
        power = f"<mn>{abs(int(exponent))}</mn>"
        power = f"<mrow><mo>{MINUS}</mo>{power}</mrow>" if int(exponent) < 0 else power
        shown = f"<mrow>{shown}<mo>·</mo><msup><mn>10</mn>{power}</msup></mrow>"
    return f"<mrow><mo>{MINUS}</mo>{shown}</mrow>" if text.startswith("-") else shown


def quantity(value: float, unit: str = "") -> str:
    """A number with its unit."""
    return number(value) + (SPACE + text(units(unit)) if unit else "")


def units(unit: str) -> str:
    """``N·m`` for ``N m``, ``m/s²`` for ``m/s^2``."""
    for plain, set_ in (("^2", "²"), ("^3", "³"), (" ", "·"), ("*", "·")):
        unit = unit.replace(plain, set_)
    return unit


def text(words: str) -> str:
    """Words within a formula."""
    return f"<mtext>{html.escape(words)}</mtext>"


def op(sign: str) -> str:
    """An operator."""
    return f"<mo>{html.escape(sign)}</mo>"


def row(*parts: str) -> str:
    """Parts one after the other."""
    return f"<mrow>{''.join(parts)}</mrow>"


def times(factor: float, what: str) -> str:
    """A product with a number; nothing is written for 1."""
    if factor in (1.0, -1.0):
        return what if factor > 0 else row(op(MINUS), what)
    return row(number(factor), '<mspace width="0.15em"/>', what)


def added(parts: Sequence[str]) -> str:
    """Terms added, those that begin with a minus subtracted; zero if there are none."""
    text, minus = "", f"<mo>{MINUS}</mo>"
    for part in parts:
        negative = part.replace("<mrow>", "").startswith(minus)
        text += part if not text or negative else op("+") + part
    return row(text) if text else "<mn>0</mn>"


def fraction(above: str, below: str) -> str:
    """A fraction."""
    return f"<mfrac>{row(above)}{row(below)}</mfrac>"


def power(base: str, exponent: str) -> str:
    """A power."""
    return f"<msup>{row(base)}{row(exponent)}</msup>"


def sub(base: str, index: str) -> str:
    """A symbol with words for an index."""
    return f"<msub>{base}<mtext>{html.escape(index)}</mtext></msub>"


def root(inner: str) -> str:
    """A square root."""
    return f"<msqrt>{inner}</msqrt>"


def bracketed(inner: str, left: str = "(", right: str = ")") -> str:
    """In brackets."""
    return f"<mrow><mo>{left}</mo>{inner}<mo>{right}</mo></mrow>"


# Brackets and braces are borders that the page's style draws: not every machine has a font whose
# brackets grow.
def matrix(rows: Sequence[Sequence[str]]) -> str:
    """A matrix."""
    lines = "".join(f"<mtr>{''.join(f'<mtd>{x}</mtd>' for x in r)}</mtr>" for r in rows)
    return f'<mtable class="matrix">{lines}</mtable>'


def cases(rows: Sequence[tuple[str, str]]) -> str:
    """Values and the conditions under which they hold."""
    lines = "".join(f"<mtr>{''.join(f'<mtd>{x}</mtd>' for x in r)}</mtr>" for r in rows)
    return f'<mtable class="cases">{lines}</mtable>'


def display(*parts: str) -> str:
    """A formula on a line of its own."""
    return f'<math display="block">{row(*parts)}</math>'

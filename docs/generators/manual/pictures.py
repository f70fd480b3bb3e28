"""Pictures that are part of a page, for light and dark screens and for paper."""

from __future__ import annotations

import base64
import hashlib
import html
import io
import re
from typing import TYPE_CHECKING

from jfric.figures.style import LINES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Larger drawings [bytes] are stored as pixels.
LARGEST = 300_000
#: Ink of figures, which takes the colour of the page's text.
_INK = ("#000000", "#222222", "#333333")


def picture(figure: Figure, what: str) -> str:
    """``figure`` as an element of HTML; ``what`` describes it to those who cannot see it."""
    drawn = _svg(figure, what)
    if len(drawn) <= LARGEST:
        return f'<figure class="drawn">{drawn}</figure>'
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    data = base64.b64encode(buffer.getvalue()).decode()
    return (
        f'<figure class="pixels"><img alt="{html.escape(what)}" '
        f'src="data:image/png;base64,{data}"></figure>'
    )


def _svg(figure: Figure, what: str) -> str:
    import matplotlib as mpl

    buffer = io.StringIO()
    # Names inside must differ from those of other drawings of a page, and be the same every time.
    salt = hashlib.sha256(what.encode()).hexdigest()[:8]
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        # The time of writing would make each page a new one.
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{salt}-\1"', text)
    text = re.sub(r'(xlink:href="|url\()#', rf"\1#{salt}-", text)
    for ink in _INK:
        text = text.replace(ink, "currentColor")
    for i, colour in enumerate(LINES):  # brighter ones on dark pages
        text = text.replace(f"stroke: {colour}", f"stroke: var(--line{i}, {colour})")
    # Text names no colour of its own, and is black where nothing says otherwise.
    width, height = figure.get_size_inches() * 72.0
    pixels = width / 72.0 * 96.0
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'role="img" aria-label="{html.escape(what)}" fill="currentColor" '
        f'viewBox="0 0 {width:g} {height:g}" style="max-width: {pixels:.0f}px; '
        f'min-width: min({pixels:.0f}px, 40rem)">'
    )
    return opening + text[text.index(">") + 1 :]

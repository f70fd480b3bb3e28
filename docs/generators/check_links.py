"""Links of a built site lead to files and places that are there, and it loads nothing from afar."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Elements that load what they refer to, and the attribute that does.
_LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


class _Page(HTMLParser):
    """Places, links and loaded files of one page."""

    def __init__(self, text: str):
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.places |= {found[k] for k in ("id", "name") if found.get(k)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in _LOADS and found.get(_LOADS[tag]) and found.get("rel") != "canonical":
            self.loaded.append(found[_LOADS[tag]])


def complaints(folder: Path) -> list[str]:
    """One sentence for each link that leads nowhere, and for what is loaded from a network."""
    folder = folder.resolve()
    # The theme brings templates of its own, which are no pages.
    files = [p for p in sorted(folder.rglob("*.html")) if folder / "_static" not in p.parents]
    pages = {path: _Page(path.read_text("utf-8")) for path in files}
    found = [] if pages else [f"{folder}: no pages"]
    for path, page in pages.items():
        said = [f"loads {target}" for target in page.loaded if urlsplit(target).netloc]
        said += [s for x in (*page.links, *page.loaded) if (s := _complaint(path, x, pages))]
        found += [f"{path.relative_to(folder)}: {sentence}" for sentence in said]
    return found


def _complaint(path: Path, target: str, pages: dict[Path, _Page]) -> str | None:
    """What is wrong with a link of the page at ``path``."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return None
    file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not file.exists():
        return f"{target} is not there"
    if parts.fragment and file in pages and unquote(parts.fragment) not in pages[file].places:
        return f"{target} names no place"
    return None


if __name__ == "__main__":
    problems = complaints(Path(sys.argv[1]))
    print("\n".join(problems) or "all links lead somewhere", file=sys.stderr)
    sys.exit(bool(problems))

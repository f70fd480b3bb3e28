"""The site; ``sh scripts/site.sh`` builds it."""

import os
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
# Examples that run at build find the package here, too.
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])

# Kernels that run pages warn of their sockets, once for each page: only their errors are shown.
_kernels = tempfile.TemporaryDirectory()
_profile = Path(_kernels.name, "profile_default")
_profile.mkdir()
(_profile / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 'ERROR'\n")
os.environ["IPYTHONDIR"] = _kernels.name

from generators import gallery  # noqa: E402
from generators.manual.site import built  # noqa: E402
from generators.write import FOLDER, with_links_of_the_site, write  # noqa: E402
from sphinx.errors import ExtensionError  # noqa: E402

project = "jfric"
author = copyright = "The jfric developers"
release = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))["project"]["version"]
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_design", "generators.mathml"]
exclude_patterns = ["generators"]
smartquotes = False

html_theme = "pydata_sphinx_theme"
html_title = "jfric"
html_math_renderer = "mathml"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {"start": []}  # it has no pages below it
html_theme_options = {
    **{"show_prev_next": True, "navigation_with_keys": False, "show_toc_level": 2},
    "header_links_before_dropdown": 8,
}

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
# JFRIC_DOCS_EXECUTE=off leaves out what pages compute, figures too: a look at the text in seconds.
nb_execution_mode = os.environ.get("JFRIC_DOCS_EXECUTE", "auto")
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_ipywidgets_js: dict = {}

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"


def _correct_links(app, docname, source):
    if not docname.startswith(FOLDER) and (HERE / f"{docname}.md").is_file():
        source[0] = with_links_of_the_site(source[0], f"docs/{docname}.md", f"{docname}.md")


def _indent_examples(app, what, name, thing, options, lines):
    """Examples that are all of a docstring stand without indentation; their output then, too."""
    inside = False
    for i, line in enumerate(lines):
        inside = bool(line) and (inside or line.startswith(">>>"))
        if inside:
            lines[i] = f"    {line}"


def _write_pages(app, config):
    write()
    try:
        with built():
            gallery.build()
    except RuntimeError as error:
        raise ExtensionError(str(error)) from None


def setup(app):
    """Write the generated pages before any is read."""
    app.connect("config-inited", _write_pages)
    app.connect("source-read", _correct_links)
    app.connect("autodoc-process-docstring", _indent_examples)

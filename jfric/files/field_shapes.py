"""How the fields of elements are written in a file, where their class does not say it."""

#: Fields that hold a list of numbers.
LISTS = {
    *(("diagram_spring", "x"), ("diagram_spring", "F"), ("polynomial_spring", "k")),
    *(("maxwell_slip", "k"), ("maxwell_slip", "R"), ("masing_spring", "x"), ("masing_spring", "F")),
}

#: Fields that hold a formula, or formulas by the name of what they give.
FORMULAS = {
    ("event", "when"): "formula",
    ("event", "change"): "formulas",
    ("lagrangian", "kinetic"): "formula",
    ("lagrangian", "potential"): "formula",
    ("lagrangian", "dissipation"): "formula",
    ("friction", "sliding"): "formula",
    ("contact", "sliding"): "formula",
    ("joint", "constraint"): "formula or several",
    ("joint", "sliding"): "formula",
    ("velocity", "moves"): "formulas",
    ("state", "rate"): "formula",
    ("state", "force"): "formula",
}

#: Fields that refer to points of bodies or to elements, those that hold pairs of numbers, and
#: numbers of parts.
SHAPES = {
    ("iwan", "count"): "count",
    ("state", "unit"): "text",
    ("state", "stiff"): "flag",
    ("friction", "load"): "elements",
    ("friction", "position"): "factor",
    ("contact", "point"): "text",
    ("contact", "circle"): "text",
    ("contact", "polygon"): "corners",
    ("contact", "line"): "line",
    ("contact", "inside"): "flag",
    ("link_spring", "points"): "texts",
    ("jenkins_coupling", "elements"): "texts",
    ("pin", "points"): "texts",
    ("weld", "points"): "texts",
    ("gear", "bodies"): "texts",
    ("gear", "radii"): "pair",
    ("slider", "point"): "text",
    ("slider", "line"): "line",
    ("slider", "turns"): "flag",
    ("rolling", "point"): "text",
    ("rolling", "circle"): "text",
    ("rolling", "line"): "line",
    ("rolling", "inside"): "flag",
    ("body", "at"): "pair",
    ("body", "v"): "pair",
    ("body", "points"): "pairs",
    ("ground", "points"): "pairs",
}

"""What is approved of figures tells pictures apart."""

import approval
import numpy as np
import pytest
from matplotlib.figure import Figure


def drawn(**changed) -> list:
    given = {"slope": 1.0, "color": "#123456", "label": "x = 1.0", "width": 0.2, "size": 20}
    given |= changed
    axis = Figure().subplots()
    x = np.linspace(0.0, 1.0, 11)
    axis.plot(x, given["slope"] * x**2, color=given["color"])
    axis.bar([0.5], [0.3], width=given["width"], color=given["color"])
    axis.scatter(x, x, s=given["size"], color=[given["color"]] * 5 + ["#ff0000"] * 6)
    axis.text(0.5, 0.5, given["label"])
    axis.legend(axis.lines, [given["label"]])
    return [approval.described(axis.figure)]


def test_the_same_picture_has_no_difference():
    assert approval.difference(drawn(), drawn()) == ""
    rounded = {"slope": 1.0 + 1e-5, "label": "x = 1.0001"}
    assert approval.difference(drawn(**rounded), drawn()) == ""


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"slope": 1.05}, "limits[3]"),
        ({"color": "#123457"}, "lines[0].style"),
        ({"label": "x = 2.0"}, "texts[0]"),
        ({"label": "y = 1.0"}, "texts[0]"),
        ({"width": 0.3}, "patches[0].places"),
    ],
)
def test_another_picture_is_told_by_what_differs(changed, where):
    assert where in approval.difference(drawn(**changed), drawn())

"""Differences that derivatives are held to."""


def fourth_order(values, h):
    """Difference at zero of what ``values`` of a shift gives, with an error of fourth order."""
    near, far = (values(d) - values(-d) for d in (h, 2 * h))
    return (8.0 * near - far) / (12.0 * h)

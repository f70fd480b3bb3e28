"""The one place that decides contact: masked reaction equations, pivoting, impacts, residuals."""

from jfric.contact.residual import contact_residual, motion_residual

__all__ = [
    "contact_residual",
    "motion_residual",
]

"""Contact decisions, in one place: masked reaction equations, pivoting, impacts, residuals."""

from .residual import contact_residual as contact_residual
from .residual import motion_residual as motion_residual

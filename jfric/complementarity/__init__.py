"""The one place that decides contact: masked reaction equations, pivoting, impacts, residuals."""

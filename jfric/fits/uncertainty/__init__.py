"""Uncertainty of estimates: covariance, bootstrap, profiles, posterior."""

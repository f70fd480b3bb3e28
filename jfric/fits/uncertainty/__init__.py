"""How uncertain estimates are: covariance, bootstrap, profiles, posterior."""

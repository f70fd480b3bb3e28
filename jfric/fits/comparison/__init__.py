"""Comparison of friction laws: candidates fitted to some records and judged on others."""

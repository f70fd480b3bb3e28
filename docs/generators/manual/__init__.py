"""The verification manual: a page for each case, written from what was computed.

``python -m generators.manual`` in ``docs/`` writes it for the site, or for files of one's own.
"""

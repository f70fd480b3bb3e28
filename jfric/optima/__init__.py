"""Optimal inputs, gains and dimensions, by exact derivatives through stick and slip."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Files: TOML descriptions of a system, read into a Problem and written from it; results."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

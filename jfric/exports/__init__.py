"""Exports to other simulators: fitted joints as their models, with the measured difference.

:func:`jfric.export_mjcf` writes a model of MuJoCo.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

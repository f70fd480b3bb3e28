"""Out to other simulators: fitted joints as their models, with the difference measured.

:func:`jfric.export_mjcf` writes a model of MuJoCo.
"""

from .export import MjcfExport as MjcfExport
from .export import export_mjcf as export_mjcf

"""Out to other simulators: fitted joints as their models, with the difference measured.

:func:`jfric.export_mjcf` writes a model of MuJoCo.
"""

from jfric.exports.export import MjcfExport as MjcfExport
from jfric.exports.export import export_mjcf as export_mjcf

__all__ = ["MjcfExport", "export_mjcf"]

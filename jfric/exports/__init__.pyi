"""Out to other simulators: fitted joints as their models, with the difference measured.

:func:`jfric.export_mjcf` writes a model of MuJoCo, :func:`jfric.export_fmu` a unit of
co-simulation.
"""

from .export import MjcfExport as MjcfExport
from .export import export_mjcf as export_mjcf
from .fmu import FmuExport as FmuExport
from .fmu import export_fmu as export_fmu

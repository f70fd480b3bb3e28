"""Out to other simulators: fitted joints as their models, with the difference measured.

:func:`jfric.export_mjcf` writes a model of MuJoCo, :func:`jfric.export_fmu` a unit of
co-simulation.
"""

from .export import MjcfExport as MjcfExport
from .export import UrdfExport as UrdfExport
from .export import export_mjcf as export_mjcf
from .export import export_urdf as export_urdf
from .fmu import FmuExport as FmuExport
from .fmu import export_fmu as export_fmu

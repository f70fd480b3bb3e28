"""What every solver returns, and what is observed of it by name."""

from . import observables as observables
from .columns import spring_forces as spring_forces
from .dense import Moment as Moment
from .modes import Mode as Mode
from .solution import Events as Events
from .solution import Solution as Solution
from .status import Flag as Flag
from .status import Status as Status

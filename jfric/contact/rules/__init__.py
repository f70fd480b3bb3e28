"""The rules of one contact: every decision about it, written once for all solvers.

The functions work element by element, on numbers (one contact) and on arrays (one element for each
contact), without any solver's data. Facts that are known at compile time may be given as Python
bools (:class:`Kind`); they leave no trace in the compiled code.

Signs: the sliding velocity ``gamma`` is positive in ``SLIP_POS``, where friction is
``-mu N``; a gap is positive when open; normal forces are positive when they push.
"""

from jfric.contact.rules.discs import disc_friction as disc_friction
from jfric.contact.rules.discs import disc_gauge as disc_gauge
from jfric.contact.rules.discs import disc_holding as disc_holding
from jfric.contact.rules.discs import disc_nearest as disc_nearest
from jfric.contact.rules.guards import Flag as Flag
from jfric.contact.rules.guards import GuardSign as GuardSign
from jfric.contact.rules.guards import Kind as Kind
from jfric.contact.rules.guards import arrives_unseen as arrives_unseen
from jfric.contact.rules.guards import comes_to_rest as comes_to_rest
from jfric.contact.rules.guards import guard_order as guard_order
from jfric.contact.rules.guards import guard_sign as guard_sign
from jfric.contact.rules.guards import is_tie as is_tie
from jfric.contact.rules.guards import may_stay_at_zero as may_stay_at_zero
from jfric.contact.rules.guards import sign_of_order as sign_of_order
from jfric.contact.rules.guards import slides as slides
from jfric.contact.rules.guards import slip as slip
from jfric.contact.rules.guards import touches_limit as touches_limit
from jfric.contact.rules.guards import turns_at_zero as turns_at_zero
from jfric.contact.rules.guards import zero_acceleration as zero_acceleration
from jfric.contact.rules.impacts import AfterImpact as AfterImpact
from jfric.contact.rules.impacts import Hit as Hit
from jfric.contact.rules.impacts import drowns as drowns
from jfric.contact.rules.impacts import element_after_impact as element_after_impact
from jfric.contact.rules.impacts import ends_chatter as ends_chatter
from jfric.contact.rules.impacts import energy_gain as energy_gain
from jfric.contact.rules.impacts import hit as hit
from jfric.contact.rules.impacts import hits_in_step as hits_in_step
from jfric.contact.rules.impacts import impulse_energy as impulse_energy
from jfric.contact.rules.impacts import is_loose as is_loose
from jfric.contact.rules.impacts import is_unannounced as is_unannounced
from jfric.contact.rules.impacts import is_unique as is_unique
from jfric.contact.rules.impacts import known_after_impact as known_after_impact
from jfric.contact.rules.impacts import mode_after_impact as mode_after_impact
from jfric.contact.rules.impacts import moment_of_touch as moment_of_touch
from jfric.contact.rules.impacts import restitution as restitution
from jfric.contact.rules.impacts import rests_after_step as rests_after_step
from jfric.contact.rules.impacts import slides_through as slides_through
from jfric.contact.rules.impacts import time_of_bounces as time_of_bounces
from jfric.contact.rules.modes import Drift as Drift
from jfric.contact.rules.modes import NextMode as NextMode
from jfric.contact.rules.modes import Trial as Trial
from jfric.contact.rules.modes import closed_mode as closed_mode
from jfric.contact.rules.modes import has_jumped as has_jumped
from jfric.contact.rules.modes import holds_next as holds_next
from jfric.contact.rules.modes import known_zeros as known_zeros
from jfric.contact.rules.modes import next_mode as next_mode
from jfric.contact.rules.modes import predicted_mode as predicted_mode
from jfric.contact.rules.modes import projected_mode as projected_mode
from jfric.contact.rules.modes import released as released
from jfric.contact.rules.modes import reported_mode as reported_mode
from jfric.contact.rules.modes import sliding_in_mode as sliding_in_mode
from jfric.contact.rules.modes import starts_open as starts_open
from jfric.contact.rules.planes import Disc as Disc
from jfric.contact.rules.planes import Ellipse as Ellipse
from jfric.contact.rules.planes import cone_margin as cone_margin
from jfric.contact.rules.planes import holding_friction as holding_friction
from jfric.contact.rules.planes import kinetic_ratio as kinetic_ratio
from jfric.contact.rules.planes import limits_are_unique as limits_are_unique
from jfric.contact.rules.planes import onset as onset
from jfric.contact.rules.planes import pin_limits as pin_limits
from jfric.contact.rules.planes import plane_mode as plane_mode
from jfric.contact.rules.planes import ratio_of as ratio_of
from jfric.contact.rules.planes import sliding_limits as sliding_limits
from jfric.contact.rules.planes import speed_of as speed_of
from jfric.contact.rules.planes import time_to_stop as time_to_stop

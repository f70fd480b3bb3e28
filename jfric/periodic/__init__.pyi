"""Steady states: orbits and their paths, harmonic balance, sections, exponents, basins."""

from .basins import Basins as Basins
from .basins import FoundAttractor as FoundAttractor
from .basins import basins as basins
from .continuation import continue_orbit as continue_orbit
from .harmonic_balance import harmonic_balance as harmonic_balance
from .harmonic_balance_result import BalanceStatus as BalanceStatus
from .harmonic_balance_result import HarmonicBalance as HarmonicBalance
from .lyapunov import Exponent as Exponent
from .lyapunov import lyapunov_exponent as lyapunov_exponent
from .lyapunov import lyapunov_exponents as lyapunov_exponents
from .minimise_peak import LowestPeak as LowestPeak
from .minimise_peak import minimise_peak as minimise_peak
from .orbit import PeriodicOrbit as PeriodicOrbit
from .orbit_status import OrbitStatus as OrbitStatus
from .path import OrbitPath as OrbitPath
from .path import OrbitPoint as OrbitPoint
from .response import frequency_response as frequency_response
from .response_curve import ResponseCurve as ResponseCurve
from .response_peak import ResponsePeak as ResponsePeak
from .response_result import FrequencyResponse as FrequencyResponse
from .section_runs import PoincareSection as PoincareSection
from .section_runs import bifurcation_diagram as bifurcation_diagram
from .section_runs import poincare_section as poincare_section
from .solving import periodic_orbit as periodic_orbit
from .special_curve import SpecialCurve as SpecialCurve
from .special_curve import continue_special as continue_special

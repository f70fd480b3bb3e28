"""Steady states: orbits and their paths, harmonic balance, sections, exponents, basins."""

from jfric.periodic.basins import Basins as Basins
from jfric.periodic.basins import FoundAttractor as FoundAttractor
from jfric.periodic.basins import basins as basins
from jfric.periodic.continuation import continue_orbit as continue_orbit
from jfric.periodic.harmonic_balance import harmonic_balance as harmonic_balance
from jfric.periodic.harmonic_balance_result import BalanceStatus as BalanceStatus
from jfric.periodic.harmonic_balance_result import HarmonicBalance as HarmonicBalance
from jfric.periodic.lyapunov import Exponent as Exponent
from jfric.periodic.lyapunov import lyapunov_exponent as lyapunov_exponent
from jfric.periodic.lyapunov import lyapunov_exponents as lyapunov_exponents
from jfric.periodic.minimise_peak import LowestPeak as LowestPeak
from jfric.periodic.minimise_peak import minimise_peak as minimise_peak
from jfric.periodic.orbit import PeriodicOrbit as PeriodicOrbit
from jfric.periodic.orbit_status import OrbitStatus as OrbitStatus
from jfric.periodic.path import OrbitPath as OrbitPath
from jfric.periodic.path import OrbitPoint as OrbitPoint
from jfric.periodic.response import frequency_response as frequency_response
from jfric.periodic.response_curve import ResponseCurve as ResponseCurve
from jfric.periodic.response_peak import ResponsePeak as ResponsePeak
from jfric.periodic.response_result import FrequencyResponse as FrequencyResponse
from jfric.periodic.section_runs import PoincareSection as PoincareSection
from jfric.periodic.section_runs import bifurcation_diagram as bifurcation_diagram
from jfric.periodic.section_runs import poincare_section as poincare_section
from jfric.periodic.solving import periodic_orbit as periodic_orbit
from jfric.periodic.special_curve import SpecialCurve as SpecialCurve
from jfric.periodic.special_curve import continue_special as continue_special

__all__ = [
    "BalanceStatus",
    "Basins",
    "Exponent",
    "FoundAttractor",
    "FrequencyResponse",
    "HarmonicBalance",
    "LowestPeak",
    "OrbitPath",
    "OrbitPoint",
    "OrbitStatus",
    "PeriodicOrbit",
    "PoincareSection",
    "ResponseCurve",
    "ResponsePeak",
    "SpecialCurve",
    "basins",
    "bifurcation_diagram",
    "continue_orbit",
    "continue_special",
    "frequency_response",
    "harmonic_balance",
    "lyapunov_exponent",
    "lyapunov_exponents",
    "minimise_peak",
    "periodic_orbit",
    "poincare_section",
]

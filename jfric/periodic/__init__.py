"""Steady states: harmonic balance, sections, exponents and basins of attraction."""

from jfric.periodic.basins import Basins as Basins
from jfric.periodic.basins import FoundAttractor as FoundAttractor
from jfric.periodic.basins import basins as basins
from jfric.periodic.harmonic_balance import harmonic_balance as harmonic_balance
from jfric.periodic.harmonic_balance_result import BalanceStatus as BalanceStatus
from jfric.periodic.harmonic_balance_result import HarmonicBalance as HarmonicBalance
from jfric.periodic.lyapunov import Exponent as Exponent
from jfric.periodic.lyapunov import lyapunov_exponent as lyapunov_exponent
from jfric.periodic.lyapunov import lyapunov_exponents as lyapunov_exponents
from jfric.periodic.section_runs import PoincareSection as PoincareSection
from jfric.periodic.section_runs import bifurcation_diagram as bifurcation_diagram
from jfric.periodic.section_runs import poincare_section as poincare_section

__all__ = [
    "BalanceStatus",
    "Basins",
    "Exponent",
    "FoundAttractor",
    "HarmonicBalance",
    "PoincareSection",
    "basins",
    "bifurcation_diagram",
    "harmonic_balance",
    "lyapunov_exponent",
    "lyapunov_exponents",
    "poincare_section",
]

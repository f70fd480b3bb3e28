"""jfric: exact, batched and differentiable simulation of dry friction, gaps and impacts.

``jfric.__all__`` lists what most work needs, in groups; the submodules named last in it hold
everything else by subject. All public names are found here as well.
"""

from jfric import contact as contact
from jfric import exports as exports
from jfric import figures as figures
from jfric import files as files
from jfric import fits as fits
from jfric import functions as functions
from jfric import laws as laws
from jfric import periodic as periodic
from jfric import results as results
from jfric import solvers as solvers
from jfric import statics as statics
from jfric import structures as structures
from jfric import sweeps as sweeps
from jfric import verification as verification
from jfric.contact import contact_residual as contact_residual
from jfric.contact import motion_residual as motion_residual
from jfric.errors import ProblemError as ProblemError
from jfric.errors import SimulationError as SimulationError
from jfric.exports import MjcfExport as MjcfExport
from jfric.exports import export_mjcf as export_mjcf
from jfric.figures import animate as animate
from jfric.figures import plot as plot
from jfric.figures import plot_basins as plot_basins
from jfric.figures import plot_friction_curve as plot_friction_curve
from jfric.figures import plot_mechanism as plot_mechanism
from jfric.figures import plot_orbits as plot_orbits
from jfric.figures import plot_path as plot_path
from jfric.figures import plot_response as plot_response
from jfric.figures import plot_returns as plot_returns
from jfric.figures import plot_sweep as plot_sweep
from jfric.files import load as load
from jfric.files import to_toml as to_toml
from jfric.fits import AbstractModel as AbstractModel
from jfric.fits import CurveFit as CurveFit
from jfric.fits import Experiment as Experiment
from jfric.fits import ExperimentDesign as ExperimentDesign
from jfric.fits import FitResult as FitResult
from jfric.fits import Free as Free
from jfric.fits import HierarchicalFit as HierarchicalFit
from jfric.fits import LawComparison as LawComparison
from jfric.fits import Regression as Regression
from jfric.fits import SampledModel as SampledModel
from jfric.fits import SteadyModel as SteadyModel
from jfric.fits import candidate_laws as candidate_laws
from jfric.fits import check as check
from jfric.fits import closed_loop as closed_loop
from jfric.fits import compare_laws as compare_laws
from jfric.fits import design_experiment as design_experiment
from jfric.fits import fit as fit
from jfric.fits import fit_batch as fit_batch
from jfric.fits import fit_curve as fit_curve
from jfric.fits import fit_hierarchical as fit_hierarchical
from jfric.fits import inverse_regression as inverse_regression
from jfric.fits import read_experiments as read_experiments
from jfric.fits import steady_states as steady_states
from jfric.numerics import compilation as compilation
from jfric.numerics.compilation import compile_quickly as compile_quickly
from jfric.numerics.cores import use_cores as use_cores
from jfric.periodic import BalanceStatus as BalanceStatus
from jfric.periodic import Basins as Basins
from jfric.periodic import Exponent as Exponent
from jfric.periodic import FoundAttractor as FoundAttractor
from jfric.periodic import FrequencyResponse as FrequencyResponse
from jfric.periodic import HarmonicBalance as HarmonicBalance
from jfric.periodic import LowestPeak as LowestPeak
from jfric.periodic import OrbitPath as OrbitPath
from jfric.periodic import OrbitPoint as OrbitPoint
from jfric.periodic import OrbitStatus as OrbitStatus
from jfric.periodic import PeriodicOrbit as PeriodicOrbit
from jfric.periodic import PoincareSection as PoincareSection
from jfric.periodic import ResponseCurve as ResponseCurve
from jfric.periodic import ResponsePeak as ResponsePeak
from jfric.periodic import SpecialCurve as SpecialCurve
from jfric.periodic import basins as basins
from jfric.periodic import bifurcation_diagram as bifurcation_diagram
from jfric.periodic import continue_orbit as continue_orbit
from jfric.periodic import continue_special as continue_special
from jfric.periodic import frequency_response as frequency_response
from jfric.periodic import harmonic_balance as harmonic_balance
from jfric.periodic import lyapunov_exponent as lyapunov_exponent
from jfric.periodic import lyapunov_exponents as lyapunov_exponents
from jfric.periodic import minimise_peak as minimise_peak
from jfric.periodic import periodic_orbit as periodic_orbit
from jfric.periodic import poincare_section as poincare_section
from jfric.results import Events as Events
from jfric.results import Flag as Flag
from jfric.results import Mode as Mode
from jfric.results import Moment as Moment
from jfric.results import Solution as Solution
from jfric.results import Status as Status
from jfric.results import observables as observables
from jfric.results import spring_forces as spring_forces
from jfric.solvers import AbstractFixedStep as AbstractFixedStep
from jfric.solvers import AbstractSolver as AbstractSolver
from jfric.solvers import BristleBias as BristleBias
from jfric.solvers import EventDriven as EventDriven
from jfric.solvers import Local as Local
from jfric.solvers import Midpoint as Midpoint
from jfric.solvers import MoreauJean as MoreauJean
from jfric.solvers import QuasiStatic as QuasiStatic
from jfric.solvers import Smoothed as Smoothed
from jfric.solvers import SmoothingBias as SmoothingBias
from jfric.solvers import StabilisedMidpoint as StabilisedMidpoint
from jfric.solvers import bristle_bias as bristle_bias
from jfric.solvers import simulate as simulate
from jfric.solvers import smoothing_bias as smoothing_bias
from jfric.statics import Branch as Branch
from jfric.statics import Equilibria as Equilibria
from jfric.statics import EquilibriumPath as EquilibriumPath
from jfric.statics import LimitLoad as LimitLoad
from jfric.statics import RestStates as RestStates
from jfric.statics import SpecialPoint as SpecialPoint
from jfric.statics import equilibria as equilibria
from jfric.statics import limit_load as limit_load
from jfric.statics import trace as trace
from jfric.structures import CondensedStructure as CondensedStructure
from jfric.structures import ReducedStructure as ReducedStructure
from jfric.structures import Structure as Structure
from jfric.structures import condense as condense
from jfric.structures import load_structure as load_structure
from jfric.structures import reduce_structure as reduce_structure
from jfric.sweeps import Range as Range
from jfric.sweeps import observe as observe
from jfric.sweeps import open_sweep as open_sweep
from jfric.sweeps import sweep as sweep
from jfric.system.body import Body as Body
from jfric.system.body import Gravity as Gravity
from jfric.system.body import Ground as Ground
from jfric.system.body import LinkSpring as LinkSpring
from jfric.system.bristle import BoucWen as BoucWen
from jfric.system.bristle import Dahl as Dahl
from jfric.system.bristle import LuGre as LuGre
from jfric.system.bristle import RateState as RateState
from jfric.system.controller import Controller as Controller
from jfric.system.direction import Direction as Direction
from jfric.system.direction import along as along
from jfric.system.direction import between as between
from jfric.system.elements import Base as Base
from jfric.system.elements import Contact as Contact
from jfric.system.elements import Damper as Damper
from jfric.system.elements import DiagramSpring as DiagramSpring
from jfric.system.elements import Friction as Friction
from jfric.system.elements import GapSpring as GapSpring
from jfric.system.elements import Lagrangian as Lagrangian
from jfric.system.elements import Load as Load
from jfric.system.elements import Mass as Mass
from jfric.system.elements import Spring as Spring
from jfric.system.elements import Stop as Stop
from jfric.system.elements import Velocity as Velocity
from jfric.system.event import Event as Event
from jfric.system.expression import Expression as Expression
from jfric.system.functions import Constant as Constant
from jfric.system.functions import Harmonic as Harmonic
from jfric.system.functions import PiecewiseLinear as PiecewiseLinear
from jfric.system.functions import Ramp as Ramp
from jfric.system.functions import Steps as Steps
from jfric.system.functions import Sum as Sum
from jfric.system.hysteresis import Iwan as Iwan
from jfric.system.hysteresis import Jenkins as Jenkins
from jfric.system.hysteresis import JenkinsCoupling as JenkinsCoupling
from jfric.system.hysteresis import MasingSpring as MasingSpring
from jfric.system.hysteresis import MaxwellSlip as MaxwellSlip
from jfric.system.joint import Joint as Joint
from jfric.system.laws import Contensou as Contensou
from jfric.system.laws import Coulomb as Coulomb
from jfric.system.laws import Directional as Directional
from jfric.system.laws import FrictionCurve as FrictionCurve
from jfric.system.laws import PerAxis as PerAxis
from jfric.system.laws import StaticDynamic as StaticDynamic
from jfric.system.laws import Stribeck as Stribeck
from jfric.system.laws import VelocityWeakening as VelocityWeakening
from jfric.system.linkage import Gear as Gear
from jfric.system.linkage import Pin as Pin
from jfric.system.linkage import Rolling as Rolling
from jfric.system.linkage import Slider as Slider
from jfric.system.linkage import Weld as Weld
from jfric.system.massless import eliminate_massless as eliminate_massless
from jfric.system.naming import get_parameter as get_parameter
from jfric.system.naming import parameters as parameters
from jfric.system.naming import set_parameters as set_parameters
from jfric.system.nonlinear import Drag as Drag
from jfric.system.nonlinear import ForceField as ForceField
from jfric.system.nonlinear import Pendulum as Pendulum
from jfric.system.nonlinear import PolynomialSpring as PolynomialSpring
from jfric.system.position_factor import PeriodicFactor as PeriodicFactor
from jfric.system.position_factor import SplineFactor as SplineFactor
from jfric.system.problem import InitialState as InitialState
from jfric.system.problem import Matrices as Matrices
from jfric.system.problem import Problem as Problem
from jfric.system.problem import TimeSpan as TimeSpan
from jfric.system.state import State as State
from jfric.system.wrapped import Clipped as Clipped
from jfric.system.wrapped import Until as Until
from jfric.verification import verify as verify

__all__ = [  # noqa: RUF022
    # A system: described in Python, or in a file.
    "Problem", "InitialState", "TimeSpan", "Matrices", "load", "to_toml", "ProblemError",
    "parameters", "get_parameter", "set_parameters", "eliminate_massless",
    # Its elements.
    "Mass", "Spring", "Damper", "PolynomialSpring", "DiagramSpring", "GapSpring", "Stop", "Drag",
    # Friction with memory, and other states.
    "Jenkins", "JenkinsCoupling", "MaxwellSlip", "MasingSpring", "Iwan", "Dahl", "BoucWen", "LuGre",
    "RateState", "State",
    "ForceField", "Lagrangian", "Pendulum", "Friction", "Contact", "Joint", "Velocity",
    "Load", "Base", "Event", "Controller", "Direction", "along", "between",
    # Bodies in the plane, and what joins them.
    "Body", "Ground", "Gravity", "LinkSpring", "Pin", "Slider", "Weld", "Gear", "Rolling",
    # Friction laws and functions of time; all of them: jfric.laws, jfric.functions.
    "Coulomb", "StaticDynamic", "Stribeck", "FrictionCurve",
    "Harmonic", "PiecewiseLinear", "Ramp", "Steps", "Expression",
    # Its motion.
    "simulate", "EventDriven", "MoreauJean", "QuasiStatic", "Smoothed",
    "Solution", "Status", "Flag", "Mode", "observe", "plot",
    "plot_mechanism", "animate",
    # Its equilibria.
    "equilibria", "limit_load", "trace",
    # Its steady states.
    "periodic_orbit", "continue_orbit", "frequency_response", "minimise_peak",
    "plot_response", "harmonic_balance", "poincare_section", "bifurcation_diagram",
    "plot_returns", "lyapunov_exponent", "lyapunov_exponents", "basins", "plot_basins",
    # Many motions at once.
    "sweep", "Range", "open_sweep", "plot_sweep", "compile_quickly", "use_cores",
    # Parameters from measurements.
    "fit", "Free", "Experiment", "FitResult", "read_experiments",
    "fit_curve", "CurveFit", "plot_friction_curve", "design_experiment", "ExperimentDesign",
    "compare_laws", "LawComparison", "fit_hierarchical", "HierarchicalFit",
    # Out to other simulators.
    "export_mjcf",
    # Published cases.
    "verify",
    # By subject.
    "exports", "figures", "files", "fits", "functions", "laws", "periodic", "results",
    "solvers", "statics", "structures", "sweeps", "verification",
]  # fmt: skip

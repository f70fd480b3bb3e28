"""jfric: exact, batched and differentiable simulation of dry friction, gaps and impacts.

``jfric.__all__`` lists what most work needs, in groups; the submodules named last in it hold
everything else by subject. All public names are found here as well.
"""

from jfric import functions as functions
from jfric import laws as laws
from jfric import solvers as solvers
from jfric import statics as statics
from jfric import structures as structures
from jfric import verification as verification
from jfric.columns import spring_forces as spring_forces
from jfric.compilation import compile_quickly as compile_quickly
from jfric.complementarity.residual import contact_residual as contact_residual
from jfric.complementarity.residual import motion_residual as motion_residual
from jfric.config.dump import to_toml as to_toml
from jfric.config.load import load as load
from jfric.dense import Moment as Moment
from jfric.ensemble import observables as observables
from jfric.ensemble.maps import plot_sweep as plot_sweep
from jfric.ensemble.ranges import Range as Range
from jfric.ensemble.store import open_sweep as open_sweep
from jfric.ensemble.sweep import sweep as sweep
from jfric.ensemble.trajectory import observe as observe
from jfric.errors import ProblemError as ProblemError
from jfric.errors import SimulationError as SimulationError
from jfric.identify.batch import fit_batch as fit_batch
from jfric.identify.check import check as check
from jfric.identify.experiment import Experiment as Experiment
from jfric.identify.files import read_experiments as read_experiments
from jfric.identify.fit import fit as fit
from jfric.identify.free import Free as Free
from jfric.identify.inverse import Regression as Regression
from jfric.identify.inverse import inverse_regression as inverse_regression
from jfric.identify.ladder import cross_validate as cross_validate
from jfric.identify.ladder import friction_ladder as friction_ladder
from jfric.identify.model import AbstractModel as AbstractModel
from jfric.identify.result import FitResult as FitResult
from jfric.identify.sampled_model import SampledModel as SampledModel
from jfric.identify.sampled_model import closed_loop as closed_loop
from jfric.modes import Mode as Mode
from jfric.plotting import plot as plot
from jfric.smoothing_bias import SmoothingBias as SmoothingBias
from jfric.smoothing_bias import smoothing_bias as smoothing_bias
from jfric.solution import Events as Events
from jfric.solution import Solution as Solution
from jfric.solvers.base import AbstractSolver as AbstractSolver
from jfric.solvers.base import Local as Local
from jfric.solvers.event_driven.solver import EventDriven as EventDriven
from jfric.solvers.fixed_step import AbstractFixedStep as AbstractFixedStep
from jfric.solvers.quasi_static.solver import QuasiStatic as QuasiStatic
from jfric.solvers.simulate import simulate as simulate
from jfric.solvers.smoothed.solver import Smoothed as Smoothed
from jfric.solvers.time_stepping.schemes import Midpoint as Midpoint
from jfric.solvers.time_stepping.schemes import MoreauJean as MoreauJean
from jfric.solvers.time_stepping.schemes import StabilisedMidpoint as StabilisedMidpoint
from jfric.statics.branch import Branch as Branch
from jfric.statics.branch import EquilibriumPath as EquilibriumPath
from jfric.statics.branch import SpecialPoint as SpecialPoint
from jfric.statics.equilibria import Equilibria as Equilibria
from jfric.statics.equilibria import equilibria as equilibria
from jfric.statics.figure import plot_path as plot_path
from jfric.statics.limit_load import LimitLoad as LimitLoad
from jfric.statics.limit_load import limit_load as limit_load
from jfric.statics.rest_states import RestStates as RestStates
from jfric.statics.trace import trace as trace
from jfric.status import Flag as Flag
from jfric.status import Status as Status
from jfric.structures.condensation import CondensedStructure as CondensedStructure
from jfric.structures.condensation import condense as condense
from jfric.structures.reduction import ReducedStructure as ReducedStructure
from jfric.structures.reduction import reduce_structure as reduce_structure
from jfric.structures.structure import Structure as Structure
from jfric.structures.structure import load_structure as load_structure
from jfric.system.controller import Controller as Controller
from jfric.system.direction import Direction as Direction
from jfric.system.direction import along as along
from jfric.system.direction import between as between
from jfric.system.elements import Base as Base
from jfric.system.elements import Contact as Contact
from jfric.system.elements import Damper as Damper
from jfric.system.elements import DiagramSpring as DiagramSpring
from jfric.system.elements import Drag as Drag
from jfric.system.elements import ForceField as ForceField
from jfric.system.elements import Friction as Friction
from jfric.system.elements import GapSpring as GapSpring
from jfric.system.elements import Load as Load
from jfric.system.elements import Mass as Mass
from jfric.system.elements import Pendulum as Pendulum
from jfric.system.elements import PolynomialSpring as PolynomialSpring
from jfric.system.elements import Spring as Spring
from jfric.system.elements import Stop as Stop
from jfric.system.expression import Expression as Expression
from jfric.system.functions import Constant as Constant
from jfric.system.functions import Harmonic as Harmonic
from jfric.system.functions import PiecewiseLinear as PiecewiseLinear
from jfric.system.functions import Steps as Steps
from jfric.system.functions import Sum as Sum
from jfric.system.laws import Coulomb as Coulomb
from jfric.system.laws import Directional as Directional
from jfric.system.laws import StaticDynamic as StaticDynamic
from jfric.system.laws import Stribeck as Stribeck
from jfric.system.laws import VelocityWeakening as VelocityWeakening
from jfric.system.naming import get_parameter as get_parameter
from jfric.system.naming import parameters as parameters
from jfric.system.naming import set_parameters as set_parameters
from jfric.system.problem import InitialState as InitialState
from jfric.system.problem import Matrices as Matrices
from jfric.system.problem import Problem as Problem
from jfric.system.problem import TimeSpan as TimeSpan
from jfric.system.wrapped import Clipped as Clipped
from jfric.system.wrapped import Until as Until
from jfric.verification.run import verify as verify

__all__ = [  # noqa: RUF022
    # A system: described in Python, or in a file.
    "Problem", "InitialState", "TimeSpan", "Matrices", "load", "to_toml", "ProblemError",
    "parameters", "get_parameter", "set_parameters",
    # Its elements.
    "Mass", "Spring", "Damper", "PolynomialSpring", "DiagramSpring", "GapSpring", "Stop", "Drag",
    "ForceField", "Pendulum", "Friction", "Contact", "Load", "Base", "Controller",
    "Direction", "along", "between",
    # Friction laws and functions of time; all of them: jfric.laws, jfric.functions.
    "Coulomb", "StaticDynamic", "Stribeck", "Harmonic", "PiecewiseLinear", "Steps", "Expression",
    # Its motion.
    "simulate", "EventDriven", "MoreauJean", "QuasiStatic", "Smoothed",
    "Solution", "Status", "Flag", "Mode", "observe", "plot",
    # Its equilibria.
    "equilibria", "limit_load", "trace",
    # Many motions at once.
    "sweep", "Range", "open_sweep", "plot_sweep", "compile_quickly",
    # Parameters from measurements.
    "fit", "Free", "Experiment", "FitResult", "read_experiments",
    # Published cases.
    "verify",
    # By subject.
    "functions", "laws", "solvers", "statics", "structures", "verification",
]  # fmt: skip

"""Fits: parameters of a problem from measured trajectories, with their uncertainty."""

from .batch import fit_batch as fit_batch
from .comparison.candidates import candidate_laws as candidate_laws
from .comparison.compare_laws import compare_laws as compare_laws
from .comparison.result import LawComparison as LawComparison
from .curve_fit import CurveFit as CurveFit
from .curve_fit import fit_curve as fit_curve
from .data.experiment import Experiment as Experiment
from .data.measured_files import read_experiments as read_experiments
from .design.experiment_design import design_experiment as design_experiment
from .design.result import ExperimentDesign as ExperimentDesign
from .fit_result import FitResult as FitResult
from .fitting import fit as fit
from .free import Free as Free
from .hierarchical import HierarchicalFit as HierarchicalFit
from .hierarchical import fit_hierarchical as fit_hierarchical
from .identifiability import check as check
from .inverse import Regression as Regression
from .inverse import inverse_regression as inverse_regression
from .model import AbstractModel as AbstractModel
from .sampled_model import SampledModel as SampledModel
from .sampled_model import closed_loop as closed_loop
from .steady_model import SteadyModel as SteadyModel
from .steady_model import steady_states as steady_states

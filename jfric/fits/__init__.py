"""Fits: parameters of a problem from measured trajectories, with their uncertainty."""

from jfric.fits.batch import fit_batch
from jfric.fits.comparison.candidates import candidate_laws
from jfric.fits.comparison.compare_laws import compare_laws
from jfric.fits.comparison.result import LawComparison
from jfric.fits.curve_fit import CurveFit, fit_curve
from jfric.fits.data.experiment import Experiment
from jfric.fits.data.measured_files import read_experiments
from jfric.fits.design.experiment_design import design_experiment
from jfric.fits.design.result import ExperimentDesign
from jfric.fits.fit_result import FitResult
from jfric.fits.fitting import fit
from jfric.fits.free import Free
from jfric.fits.hierarchical import HierarchicalFit, fit_hierarchical
from jfric.fits.identifiability import check
from jfric.fits.inverse import Regression, inverse_regression
from jfric.fits.model import AbstractModel
from jfric.fits.sampled_model import SampledModel, closed_loop
from jfric.fits.steady_model import SteadyModel, steady_states

__all__ = [
    "AbstractModel",
    "CurveFit",
    "Experiment",
    "ExperimentDesign",
    "FitResult",
    "Free",
    "HierarchicalFit",
    "LawComparison",
    "Regression",
    "SampledModel",
    "SteadyModel",
    "candidate_laws",
    "check",
    "closed_loop",
    "compare_laws",
    "design_experiment",
    "fit",
    "fit_batch",
    "fit_curve",
    "fit_hierarchical",
    "inverse_regression",
    "read_experiments",
    "steady_states",
]

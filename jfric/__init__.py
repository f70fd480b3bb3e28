"""jfric: exact, batched and differentiable simulation of dry friction, gaps and impacts.

``jfric.__all__`` lists what first pages use: the parts of a common system, and one function for
each question with the classes that it takes and returns. The submodules named last in it hold all
public names by subject; each of them is found here as well.
"""

# Names come from the stub next to this file.
# pyright: reportUnsupportedDunderAll=false
import lazy_loader

__getattr__, _, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [  # noqa: RUF022
    # A system: described in Python, or in a file.
    "Problem", "InitialState", "TimeSpan", "Matrices", "load", "to_toml", "build", "Model",
    "ProblemError", "parameters", "get_parameter", "set_parameters", "eliminate_massless",
    # Its parts; all elements: jfric.elements.
    "Mass", "Spring", "Damper", "Stop", "Friction", "Contact", "Joint", "Load", "Base",
    "Controller", "LuGre", "Body", "Ground", "Gravity", "Pin", "Slider",
    # Friction laws and functions of time; all of them: jfric.laws, jfric.functions.
    "Coulomb", "StaticDynamic", "Stribeck", "Harmonic", "PiecewiseLinear", "Ramp",
    # Its motion.
    "simulate", "EventDriven", "MoreauJean", "QuasiStatic", "Smoothed",
    "Solution", "Status", "Flag", "Mode", "SimulationError", "observe", "plot", "animate",
    # Its equilibria.
    "equilibria", "limit_load", "trace",
    # Its steady states.
    "periodic_orbit", "continue_orbit", "frequency_response", "harmonic_balance", "basins",
    # Many motions at once.
    "sweep", "Range", "open_sweep", "compile_quickly", "use_cores",
    # Parameters from measurements.
    "fit", "Free", "Experiment", "FitResult", "read_experiments", "fit_curve", "compare_laws",
    "design_experiment",
    # Published cases.
    "verify",
    # By subject.
    "contact", "elements", "exports", "figures", "files", "fits", "functions", "laws", "optima",
    "periodic", "results", "solvers", "statics", "structures", "sweeps", "verification",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__

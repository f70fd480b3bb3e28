"""jfric: exact, batched and differentiable simulation of dry friction, gaps and impacts.

``jfric.__all__`` lists what most work needs, in groups; the submodules named last in it hold
everything else by subject. All public names are found here as well.
"""

# Names come from the stub beside this file.
# pyright: reportUnsupportedDunderAll=false
import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [  # noqa: RUF022
    # A system: described in Python, or in a file.
    "Problem", "InitialState", "TimeSpan", "Matrices", "build", "Model", "load", "to_toml",
    "ProblemError", "parameters", "get_parameter", "set_parameters", "eliminate_massless",
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
    "elements", "exports", "figures", "files", "fits", "functions", "laws", "periodic", "results",
    "solvers", "statics", "structures", "sweeps", "verification",
]  # fmt: skip

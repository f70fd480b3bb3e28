"""What the keys of a file mean, one sentence each: for editors, through the schema, and for the
reference. Fields of elements are described by their classes."""

from __future__ import annotations

#: Keys that say where an element acts; exactly one of them is given.
ATTACHMENT = {
    "dof": "the degree of freedom on which it acts",
    "between": "the pair of degrees of freedom between which it acts, from the first to the "
    'second; "ground" stands still',
    "direction": "any other direction, {a = 1, b = -0.5}; a coefficient with a unit is a lever arm",
}

#: Fields of friction laws, in every section that takes a law.
LAW_KEYS = {
    "mu": "coefficient of Coulomb's law",
    "mu_s": "coefficient in stick",
    "mu_d": "coefficient in sliding; with Stribeck and velocity weakening that of fast sliding",
    "v_s": "velocity over which the coefficient falls from mu_s to mu_d",
    "exponent": "exponent of v/v_s in Stribeck's law",
    "mu_v": "increase of the coefficient with the sliding velocity",
    "peak": "static limit over mu_s, where it exceeds that of sliding",
    "speeds": "sliding velocities at the knots of a friction curve, beginning with 0",
    "curve": "coefficients at these knots, or {positive = [...], negative = [...]}",
    "monotone": "whether the curve turns only where its values at the knots do",
    "law": "the law, where the fields fit more than one",
}

#: Keys of the file itself that are not sections of elements.
TOP = {
    "title": "one line that says what the system is",
    "source": "who published it, where",
    "description": "anything else, for readers",
    "dofs": 'names of the degrees of freedom; {phi = "rotation"} for angles',
    "time": "simulated time and outputs",
    "parameters": 'shared values, used as "$name" in expressions',
    "initial": "initial position and velocity of degrees of freedom, by their names",
    "matrices": "full matrices beside the elements",
    "solver": "settings of the solver",
    "statics": "what `jfric trace` and checks of limit loads follow",
    "periodic": "what `jfric periodic` and checks of periodic motion look for",
    "response": "what `jfric response` and checks of frequency responses look for",
    "data": "which columns of measured files hold what",
    "controller": "a sampled controller that drives a load",
    "check": "numbers that a correct solution has, for `jfric verify`",
}

#: Keys of tables that are the same for every system.
MEANINGS: dict[tuple[str, str], str] = {
    ("Time", "end"): "end of the simulated time [s]",
    ("Time", "start"): "its start [s]",
    ("Time", "outputs"): "number of outputs from start to end, or their times",
    ("Initial", "q"): "initial position",
    ("Initial", "v"): "initial velocity",
    ("MatricesTable", "M"): "masses, added to those of the elements",
    ("MatricesTable", "C"): "damping, added to that of the elements",
    ("MatricesTable", "K"): "stiffness, added to that of the elements",
    ("SolverTable", "name"): "which solver",
    ("SolverTable", "flow"): "flow of the event-driven solver between events",
    ("SolverTable", "rtol"): "relative tolerance of a step",
    ("SolverTable", "max_steps"): "most passes or steps; the status is max_steps beyond",
    ("SolverTable", "max_events"): "room in the event log",
    ("SolverTable", "increments"): "parts of a quasi-static load history",
    ("SolverTable", "dt"): "length of a step [s], of fixed-step solvers",
    ("SolverTable", "theta"): "weight of the end of a step in the equation of motion",
    ("SolverTable", "sliding_weight"): "weight of the end of a step in the friction law",
    ("SolverTable", "law"): "curve that stands for the sign of the sliding velocity",
    ("SolverTable", "width"): "sliding velocity over which that curve rises [m/s]",
    ("SolverTable", "contact_stiffness"): "stiffness that stands for a rigid contact [N/m]",
    ("SolverTable", "method"): "method for the contact problem of a step, or the Runge-Kutta "
    "method of the smoothed solver",
    ("SolverTable", "atol"): "absolute tolerance of the smoothed solver",
    ("StaticsTable", "vary"): "path of the parameter",
    ("StaticsTable", "start"): "its value where the path begins",
    ("StaticsTable", "stop"): "its value where the path ends",
    ("StaticsTable", "seeds"): "values at which branches are looked for, or their number",
    ("PeriodicTable", "period"): "period [s]; that of the loads unless given",
    ("PeriodicTable", "state"): "positions, then velocities, near the orbit",
    ("PeriodicTable", "transient"): "time [s] simulated before the search; a whole number counts "
    "periods where loads have one",
    ("PeriodicTable", "section"): "formula whose zero closes a cycle without periodic loads",
    ("PeriodicTable", "cycles"): "periods of the load, or returns to the section, in one orbit",
    ("PeriodicTable", "segments"): "parts of the cycle that are solved side by side",
    ("PeriodicTable", "harmonics"): "number of harmonics, for harmonic balance",
    ("PeriodicTable", "vary"): "path of a parameter over which orbits are followed",
    ("PeriodicTable", "start"): "its value where the path begins",
    ("PeriodicTable", "stop"): "its value where the path ends",
    ("ResponseTable", "load"): "load, support or belt whose frequency varies",
    ("ResponseTable", "start"): "first frequency [rad/s]",
    ("ResponseTable", "stop"): "last frequency [rad/s]",
    ("ResponseTable", "quantity"): "what the peak is of; the amplitude of the first degree of "
    "freedom unless given",
    ("ColumnTable", "column"): "name of the column",
    ("ColumnTable", "unit"): 'its unit, with a factor if need be ("35.15 N")',
    ("ColumnTable", "offset"): "added to the value in SI units",
    ("DataTable", "time"): "column of the times; without it rows are steady states",
    ("DataTable", "y"): "measured quantities by name",
    ("DataTable", "u"): "measured inputs by the path of the load",
    ("DataTable", "records"): "pattern of the names of records in one file",
    ("DataTable", "start"): "first time that is used [s]",
    ("DataTable", "end"): "last time that is used [s]",
    ("DataTable", "missing_inputs"): "what happens to missing samples of inputs",
    ("ControllerTable", "reads"): "the degree of freedom that is measured",
    ("ControllerTable", "drives"): "path of the load that it sets",
    ("ControllerTable", "kp"): "proportional gain",
    ("ControllerTable", "ki"): "integral gain, per second",
    ("ControllerTable", "kd"): "derivative gain, times seconds",
    ("ControllerTable", "limit"): "largest output",
    ("ControllerTable", "gain"): "force of one unit of output",
    ("ControllerTable", "delay"): "delay [samples]",
    ("ControllerTable", "on"): "what the derivative is taken of",
    ("ControllerTable", "mean"): "samples over which the derivative is averaged",
    ("CheckTable", "quantity"): "the number that is checked, by the name it has in sweeps",
    ("CheckTable", "expected"): "its value",
    ("CheckTable", "tolerance"): "allowed error, absolute, in SI units; or relative",
    ("CheckTable", "relative"): "allowed error as a part of the value; or tolerance",
    ("CheckTable", "source"): "where the value is from",
    ("Harmonic", "amplitude"): "amplitude, in the unit of what it stands for",
    ("Harmonic", "omega"): "angular frequency [rad/s]; or frequency",
    ("Harmonic", "frequency"): "frequency [Hz]; or omega",
    ("Harmonic", "phase"): "phase [rad]",
    ("Samples", "file"): "path of the file, relative to that of the system",
    ("Samples", "hold"): "what holds between samples",
    ("UntilTable", "function"): "the function before the end",
    ("UntilTable", "end"): "the time up to which it counts [s]",
    ("UntilTable", "after"): "the value from then on",
    ("ClippedTable", "function"): "the function that is cut off at zero",
    ("ClippedTable", "end"): "time up to which a harmonic is followed [s]; or periods",
    ("ClippedTable", "periods"): "periods for which a harmonic is followed; or end",
    ("FunctionTable", "steps"): "piecewise constant",
    ("FunctionTable", "linear"): "straight lines through points",
    ("FunctionTable", "table"): "samples in a file",
    ("FunctionTable", "harmonic"): "a sine",
    ("FunctionTable", "sum"): "the sum of several functions",
    ("FunctionTable", "until"): "a function that ends",
    ("FunctionTable", "clipped"): "a function cut off at zero",
    ("DirectionalTable", "positive"): "coefficient where the sliding velocity is positive",
    ("DirectionalTable", "negative"): "coefficient where it is negative",
    ("PositionTable", "period"): "displacement after which the factor repeats itself",
    ("PositionTable", "cosine"): "cosines of the factor 1 + ..., those of the period first",
    ("PositionTable", "sine"): "its sines",
    ("PositionTable", "x"): "displacements at the knots of a factor, which is constant beyond them",
    ("PositionTable", "factor"): "factors at these knots",
    ("DirectionalKnots", "positive"): "values where the sliding velocity is positive",
    ("DirectionalKnots", "negative"): "values where it is negative",
    ("Along", "dof"): "a degree of freedom, or the name of a base",
    ("Between", "between"): "a pair of them, from the first to the second",
}
for _table in ("Steps", "Linear", "Samples"):
    MEANINGS[_table, "unit"] = "unit of the values, where they are bare numbers"
    MEANINGS[_table, "time_unit"] = "unit of the times, where they are bare numbers"
for _table in ("Steps", "Linear"):
    MEANINGS[_table, "times"] = "times, increasing"
    MEANINGS[_table, "values"] = "values, one for each time"

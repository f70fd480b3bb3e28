"""Mistakes in files: each gives one literal sentence, and never a traceback of a library."""

import pytest

import jfric
from jfric.files.read_toml import load_config, loads
from jfric.files.settings_tables import SOLVER
from jfric.files.solver_choice import SOLVERS

GOOD = """
dofs = ["u"]
[time]
end = "4 s"
[mass]
dof = "u"
m = "100 kg"
[spring]
dof = "u"
k = "5 kN/m"
[friction]
dof = "u"
mu = 0.1
N = "1 kN"
"""

ONE_OF_THEM = (
    ": N, the normal force, or limit, the friction force itself (write N = 1 N where mu_s and mu_d "
    "are forces in newtons)"
)

#: Text to replace in the good file (None: append), the text to put there, and the sentence.
MISTAKES = [
    (
        "mu = 0.1",
        "mv = 0.1",
        (
            "friction.mv: unknown field (did you mean 'mu_v'?), allowed are dof, between, "
            "direction, mu, mu_s, mu_d, "
            "v_s, exponent, mu_v, peak, speeds, curve, monotone, radius, law, N, limit, belt, "
            "reaction, sliding, plane, load, kappa, position, spin"
        ),
    ),
    (
        'k = "5 kN/m"',
        'K = "5 kN/m"',
        "spring.K: unknown field (did you mean 'k'?), allowed are dof, between, direction, k, x0",
    ),
    (
        "[spring]",
        "[sprin]",
        (
            "sprin: unknown section (did you mean 'spring'?), allowed are title, source, "
            "description, dofs, massless, "
            "robot, time, parameters, body, link, ground, gravity, link_spring, mass, "
            "lagrangian, spring, damper, diagram_spring, gap_spring, stop, jenkins, maxwell_slip, "
            "masing_spring, iwan, jenkins_coupling, dahl, "
            "bouc_wen, lugre, rate_state, directional_loss, state, friction, contact, load, "
            "motor, transmission, "
            "base, joint, velocity, pin, slider, weld, gear, rolling, pendulum, "
            "polynomial_spring, drag, force, "
            "event, controller, state_feedback, initial, "
            "matrices, solver, statics, periodic, response, lyapunov, basins, data, fit, "
            "optimise, check"
        ),
    ),
    ('"5 kN/m"', '"5 kN"', "spring.k: found 'kN' (a force), expected a stiffness such as '5 kN/m'"),
    ('"5 kN/m"', '"5 kNn/m"', "spring.k: found the unknown unit 'kNn/m'"),
    (
        '"5 kN/m"',
        '"stiff"',
        ("spring.k: found 'stiff', which is no quantity; expected a stiffness such as '5 kN/m'"),
    ),
    (
        '"5 kN/m"',
        '"k + "',
        ("spring.k: found 'k + ', which is no quantity; expected a stiffness such as '5 kN/m'"),
    ),
    ('"5 kN/m"', "true", "spring.k: found true, expected a stiffness such as '5 kN/m'"),
    ('"5 kN/m"', "[1,2]", "spring.k: found a list, expected a stiffness such as '5 kN/m'"),
    ('"100 kg"', "-5", "mass.m: found -5, must not be negative"),
    ("mu = 0.1", "", "friction: N is given without mu; give mu, or mu_s and mu_d"),
    ('k = "5 kN/m"', "", "spring.k: missing; give a stiffness such as '5 kN/m'"),
    (
        'N = "1 kN"',
        'N = "1 kN"\nlimit = "2 N"',
        "friction: found both of N and limit, exactly one is needed" + ONE_OF_THEM,
    ),
    (
        'N = "1 kN"',
        "",
        "friction: found neither of N and limit, exactly one is needed" + ONE_OF_THEM,
    ),
    ('N = "1 kN"', "N = [1,2]", "friction.N: found a list, expected a force such as '1.5 kN'"),
    (
        'N = "1 kN"',
        "N = {step = 3}",
        (
            "friction.N.step: unknown field (did you mean 'steps'?), allowed are steps, linear, "
            "ramp, table, harmonic, "
            "sum, until, clipped"
        ),
    ),
    (
        'N = "1 kN"',
        "N = {}",
        (
            "friction.N: found none, exactly one of steps, linear, ramp, table, harmonic, sum, "
            "until, clipped is needed"
        ),
    ),
    (
        'N = "1 kN"',
        'N = {ramp = {rate = "2 N"}}',
        "friction.N.ramp.rate: found 'N' (a force), expected a force per time such as '1.5 kN/s'",
    ),
    (
        'N = "1 kN"',
        'N = {harmonic = {amplitude = 1, omega = "2 Hz"}}',
        (
            "friction.N.harmonic.omega: found 'Hz' (a frequency), expected an angular "
            "velocity such as '2 rad/s'"
        ),
    ),
    (
        'N = "1 kN"',
        'N = {harmonic = {amplitude = 1, frequency = "2 rad/s"}}',
        (
            "friction.N.harmonic.frequency: found 'rad/s' (an angular velocity), "
            "expected a frequency such as '2 Hz'"
        ),
    ),
    (
        'N = "1 kN"',
        'N = {harmonic = {amplitude = 1, frequency = "60 rpm"}}',
        (
            "friction.N.harmonic.frequency: found 'rpm' (an angular velocity), "
            "expected a frequency such as '2 Hz'"
        ),
    ),
    (
        'N = "1 kN"',
        'N = {harmonic = {amplitude = 1, frequency = "60 deg/s"}}',
        (
            "friction.N.harmonic.frequency: found 'deg/s' (an angular velocity), "
            "expected a frequency such as '2 Hz'"
        ),
    ),
    (
        'N = "1 kN"',
        "N = {harmonic = {amplitude = 1}}",
        "friction.N.harmonic: found none, exactly one of omega, frequency is needed",
    ),
    (
        'N = "1 kN"',
        "N = {harmonic = {amplitude = 1, omega = 2}}",
        "friction.N: found -1 at t = 2.35619 s, must not be negative",
    ),
    (
        'N = "1 kN"',
        "N = {steps = {times = [2, 1], values = [0, 1, 2]}}",
        "friction.N.steps.times: found [2.0, 1.0], times must increase strictly",
    ),
    (
        'N = "1 kN"',
        "N = {steps = {times = [2], values = [0]}}",
        (
            "friction.N.steps.values: found 1 values for 1 times, needed are 2 (the "
            "value before the first time comes first)"
        ),
    ),
    (
        'N = "1 kN"',
        'N = {table = {file = "none.csv"}}',
        ("friction.N.table.file: cannot read 'configs/none.csv' (No such file or directory)"),
    ),
    (
        'N = "1 kN"',
        'N = {table = {file = "none.csv", hold = "zero"}}',
        (
            "friction.N.table.hold: found 'zero' (did you mean 'zero-order'?), allowed are "
            "'linear', 'zero-order'"
        ),
    ),
    ('N = "1 kN"', 'N = "-1 kN"', "friction.N: found -1000 at t = 0 s, must not be negative"),
    (
        'N = "1 kN"',
        'N = "$m*$g"',
        (
            "friction.N: '$m*$g' refers to the parameter 'm', which is not declared; "
            "declared are none"
        ),
    ),
    (
        'N = "1 kN"',
        'N = "$m*foo"',
        (
            "friction.N: the expression '$m*foo' may hold numbers in SI units without their unit, "
            "$parameters, + - * / ^, parentheses, pi and sin, cos, tan, sqrt, atan, exp, log, but "
            "it holds 'foo'"
        ),
    ),
    (
        'N = "1 kN"',
        'N = "$m*9.81 m/s^2"',
        "friction.N: cannot read the expression '$m*9.81 m/s^2'; it may hold numbers in SI units "
        "without their unit, $parameters, + - * / ^, parentheses, pi and sin, cos, tan, sqrt, "
        "atan, exp, log",
    ),
    (
        "mu = 0.1",
        "mu_s = 0.1\nmu_d = 0.3",
        "friction.mu_d: found 0.3, must not exceed mu_s (0.1, positive direction)",
    ),
    (
        "mu = 0.1",
        "mu_s = 0.1",
        "friction: found mu_s, a friction law needs mu, or mu_s and mu_d, or mu_s and mu_d and "
        "v_s, or mu_s and v_s, or speeds and curve, or mu and radius",
    ),
    (
        "mu = 0.1",
        "mu = {positive = 0.1}",
        "friction.mu.negative: missing; give a coefficient of friction such as 0.3",
    ),
    (
        "mu = 0.1",
        'mu = "0.1 m"',
        "friction.mu: found 'm' (a length), expected a coefficient of friction such as 0.3",
    ),
    ('dof = "u"\nk', 'dof = "x"\nk', "spring.dof: no degree of freedom 'x'; declared are u"),
    ('dof = "u"\nk', 'between = ["u"]\nk', "spring.between: found 1 entries, needed are 2"),
    (
        'dof = "u"\nk',
        'between = ["u", "u"]\nk',
        "spring.between: found 'u' twice, the two ends must differ",
    ),
    (
        'dof = "u"\nk',
        'between = ["u", "grund"]\nk',
        (
            "spring.between: no degree of freedom 'grund' (did you mean 'ground'?); "
            "declared are u, ground"
        ),
    ),
    (
        'dof = "u"\nk',
        'dof = "u"\nbetween = ["u", "ground"]\nk',
        ("spring: found dof and between, exactly one of dof, between, direction is needed"),
    ),
    ('dof = "u"\nk', "k", "spring: found none, exactly one of dof, between, direction is needed"),
    ('dof = "u"\nk', "direction = {u = 0}\nk", "spring.direction: all coefficients are zero"),
    ('dofs = ["u"]', 'dofs = ["u", "u"]', "dofs: found 'u' twice, names must differ"),
    ('dofs = ["u"]', "dofs = []", "dofs: found none, at least one degree of freedom is needed"),
    ('dofs = ["u"]', "", 'dofs: missing; give dofs = ["u"], or a [body], [link] or [robot]'),
    (
        'dofs = ["u"]',
        'dofs = {u = "rotate"}',
        (
            "dofs.u: found 'rotate' (did you mean 'rotation'?), allowed are 'translation', "
            "'rotation'"
        ),
    ),
    (
        'dofs = ["u"]',
        'dofs = {u = "rotation"}',
        ("mass.m: found 'kg' (a mass), expected a moment of inertia such as '0.5 kg*m^2'"),
    ),
    ('dofs = ["u"]', 'dofs = "u"', "dofs: found 'u', expected a list such as [\"u\"]"),
    ('end = "4 s"', "end = -1", "time.end: found -1 s, must be later than time.start (0 s)"),
    ('end = "4 s"', "", "time.end: missing; give a time such as '4 s'"),
    ('end = "4 s"', 'end = "4 m"', "time.end: found 'm' (a length), expected a time such as '4 s'"),
    ('end = "4 s"', "end = 4\noutputs = 0", "time.outputs: found 0, must be at least 2"),
    ('end = "4 s"', "end = 4\noutputs = 10.5", "time.outputs: found 10.5, expected a whole number"),
    (
        'end = "4 s"',
        "end = 4\noutputs = [0, 5]",
        "time.outputs: found times from 0 s to 5 s, must lie between 0 s and 4 s",
    ),
    (
        'end = "4 s"',
        'end = 4\noutputs = "many"',
        "time.outputs: found 'many', expected a whole number",
    ),
    (
        "[time]",
        "[time\n",
        (
            "not valid TOML: expected ']' at the end of a table declaration (at line 3, column "
            "6): '[time'"
        ),
    ),
    ('[time]\nend = "4 s"', "", 'time: missing; give [time] end = "4 s"'),
    (
        None,
        '[spring.second]\ndof="u"\nk=1\n',
        (
            "spring.second: a table among the fields of spring; write one [spring] with "
            "fields, or only named ones such as [spring.second]"
        ),
    ),
    (
        None,
        "[mass]\n",
        "not valid TOML: cannot declare [mass] twice (at line 15, column 6): '[mass]'",
    ),
    (
        None,
        '[contact]\nnormal = "u"\ngap = -1\n',
        (
            "initial: the contact 'contact' starts with a gap of -1, must not be "
            "negative; move the initial position or the gap"
        ),
    ),
    (None, '[contact]\nnormal = "u"\ne = 1.5\n', "contact.e: found 1.5, must lie between 0 and 1"),
    (
        None,
        '[contact]\nnormal = "u"\nimpact = "coulom"\n',
        ("contact.impact: found 'coulom' (did you mean 'coulomb'?), allowed are 'coulomb', 'none'"),
    ),
    (
        None,
        '[contact]\nnormal = "u"\nmu = 0.3\n',
        ("contact: mu is given without tangent; give both, or neither for a frictionless contact"),
    ),
    (
        None,
        '[contact]\nnormal = {dof = "x"}\n',
        "contact.normal: no degree of freedom 'x'; declared are u",
    ),
    (
        None,
        "[contact]\nnormal = 3\n",
        "contact.normal: found 3, expected a degree of freedom such as 'u'",
    ),
    (
        None,
        "[contact]\nnormal = {u = 1}\ntangnt = {u = 1}\n",
        (
            "contact.tangnt: unknown field (did you mean 'tangent'?), allowed are normal, "
            "tangent, mu, mu_s, mu_d, "
            "v_s, exponent, mu_v, peak, speeds, curve, monotone, law, gap, e, belt, impact, "
            "sliding, point, line, circle, polygon, radius, circle_radius, inside, plane, surface, "
            "sphere, sphere_radius, contact_radius"
        ),
    ),
    (
        None,
        "[contact]\ngap = 1\n",
        (
            "contact.normal: found none; give a degree of freedom such as 'y', or the gap "
            "as a function of positions such as 'y - r*cos(phi)', or the point of a body"
        ),
    ),
    (None, "[initial.w]\nq = 1\n", "initial.w: no degree of freedom 'w'; declared are u"),
    (
        None,
        '[initial.u]\nq = "1 kg"\n',
        "initial.u.q: found 'kg' (a mass), expected a length such as '10 mm'",
    ),
    (None, "[initial.u]\nx = 1\n", "initial.u.x: unknown field, allowed are q, v"),
    (
        None,
        "[initial.u]\nq = {a = 1}\n",
        "initial.u.q: found a table, expected a length such as '10 mm'",
    ),
    (
        None,
        "[initial]\nq = 1\n",
        "initial.q: found 1, expected a table; write [initial.u] with q and v",
    ),
    (
        None,
        "[matrices]\nK = [[1, 2]]\n",
        (
            "matrices.K: found 1 x 2 entries, needed are 1 x 1 (a row and a column for "
            "each degree of freedom)"
        ),
    ),
    (
        None,
        "[matrices]\nK = [[1, 2], [3, 4]]\n",
        (
            "matrices.K: found 2 x 2 entries, needed are 1 x 1 (a row and a column for "
            "each degree of freedom)"
        ),
    ),
    (None, '[matrices]\nK = "K.npy"\n', "matrices.K: no file 'configs/K.npy'"),
    (
        None,
        '[matrices]\nK = "K.csv"\n',
        "matrices.K: found 'K.csv', allowed are files .npy and .mtx",
    ),
    (
        None,
        '[matrices]\nK = [["1 kg"]]\n',
        "matrices.K[1][1]: found 'kg' (a mass), expected a stiffness such as '5 kN/m'",
    ),
    (None, "[matrices]\nK = 3\n", "matrices.K: found 3, expected a list"),
    (
        None,
        '[parameters]\nm = "$k"\n',
        ("parameters.m: found the expression '$k', parameters hold numbers and quantities only"),
    ),
    (
        None,
        '[parameters]\n"a b" = 1\n',
        (
            "parameters: found the name 'a b', names start with a letter and hold "
            "letters, digits and _"
        ),
    ),
    (
        None,
        "[parameters]\nm = [1]\n",
        "parameters.m: found a list, expected a number or a quantity such as '5 kN'",
    ),
    (
        None,
        "[force_field]\nfunction = 1\n",
        "force_field: can only be given in Python, a file cannot hold a function",
    ),
    (
        'dofs = ["u"]',
        'dofs = ["u", "dof"]',
        "dofs.dof: the name 'dof' is reserved; rename it",
    ),
    (
        None,
        "[base.dof]\ndisplacement = 0\n",
        "base.dof: the name 'dof' is reserved; rename it",
    ),
    (
        'dofs = ["u"]',
        'dofs = ["u", "between"]',
        "dofs.between: the name 'between' is reserved; rename it",
    ),
    (
        None,
        "[base.between]\ndisplacement = 0\n",
        "base.between: the name 'between' is reserved; rename it",
    ),
    (
        'dofs = ["u"]',
        'dofs = ["u", "ground"]',
        "dofs.ground: the name 'ground' is reserved; rename it",
    ),
    (
        None,
        "[base.ground]\ndisplacement = 0\n",
        "base.ground: the name 'ground' is reserved; rename it",
    ),
    (
        None,
        "[base.u]\ndisplacement = 0\n",
        "base.u: 'u' is a degree of freedom as well; names must differ",
    ),
    (
        None,
        '[base.pull]\ndisplacement = 0\n[load]\ndof="pull"\nF=1\n',
        (
            "load.direction: found the base 'pull', a load acts on degrees of freedom "
            "only; declared are u"
        ),
    ),
    (
        None,
        '[stop]\ndof="u"\nk=1\nrelease="sticky"\n',
        (
            "stop.release: found 'sticky' (did you mean 'physical'?), allowed are 'physical', "
            "'adhesive', "
            "'limited'"
        ),
    ),
    (
        None,
        '[diagram_spring]\ndof="u"\nx=[0, 0]\nF=[0, 1]\n',
        (
            "diagram_spring.x: found [0.0, 0.0], needs at least two strictly increasing "
            "values and as many values of F"
        ),
    ),
    (
        None,
        '[diagram_spring]\ndof="u"\nx=[0, "$x"]\nF=[0, 1]\n',
        "diagram_spring.x[2]: found the expression '$x', lists hold numbers only",
    ),
    (
        None,
        '[solver]\nname = "qqq"\n',
        "solver.name: found 'qqq', allowed are " + ", ".join(map(repr, SOLVERS)),
    ),
    (None, "[solver]\nrtol = -1\n", "solver.rtol: found -1, must be greater than 0"),
    (
        None,
        "[solver]\nqqq = 1\n",
        ("solver.qqq: unknown field, allowed are " + ", ".join(SOLVER.table)),
    ),
    (
        None,
        '[[check]]\nquantity = "u(1)"\nexpected = "1 kg"\ntolerance = 1\n',
        "check[1].expected: found 'kg' (a mass), expected a length such as '10 mm'",
    ),
    (
        None,
        '[[check]]\nquantity = "u(1)"\nexpected = 1\n',
        "check[1]: found none, exactly one of tolerance, relative is needed",
    ),
    (
        None,
        '[[check]]\nquantity = "u(1)"\nexpected = 1\ntolerance = 1\ntol = 2\n',
        (
            "check[1].tol: unknown field (did you mean 'tolerance'?), allowed are quantity, "
            "expected, tolerance, "
            "relative, source"
        ),
    ),
    (
        None,
        '[check]\nquantity = "u(1)"\nexpected = 1\n',
        "check: found a table, expected a list of tables; write [[check]]",
    ),
    (
        None,
        '[load]\ndof = "u"\nF = {sum = [1, {steps = {times = ["1 m"], values = [0, 1]}}]}\n',
        ("load.F.sum[2].steps.times[1]: found 'm' (a length), expected a time such as '4 s'"),
    ),
    (
        None,
        '[load]\ndof = "u"\nF = {steps = {times = [1], values = [0, "1 m"]}}\n',
        ("load.F.steps.values[2]: found 'm' (a length), expected a force such as '1.5 kN'"),
    ),
    (
        None,
        '[load]\ndof = "u"\nF = {steps = {times = [1], values = [0, 1], unit="m"}}\n',
        "load.F.steps.values: found 'm' (a length), expected a force such as '1.5 kN'",
    ),
    (
        None,
        '[[check]]\nquantity = "u"\nexpected = 1\ntolerance = 1\n',
        (
            "check[1].quantity: found 'u', expected such as u(1 s), final.u, max.v.u, "
            "'mean.u after 2 s', event_time(1), stop_time, equilibrium.u(1), orbit.period "
            "(the page on sweeps and jfric.results.quantity.GRAMMAR list all)"
        ),
    ),
    (
        None,
        '[[check]]\nquantity = "u(x)"\nexpected = 1\ntolerance = 1\n',
        (
            "check[1].quantity: found 'u(x)', its time: found 'x', which is no quantity; "
            "expected a time such as '4 s'"
        ),
    ),
    (
        None,
        '[[check]]\nquantity = "w(1)"\nexpected = 1\ntolerance = 1\n',
        "check[1].quantity: found 'w(1.0)', no quantity 'w'; there are u, v.u, a.u, "
        "lambda_t.friction, slip.friction, force.spring, input.friction.N",
    ),
    (
        None,
        '[[check]]\nquantity = "lambda_n(1)"\nexpected = 1\ntolerance = 1\n',
        "check[1].quantity: found 'lambda_n(1.0)', no quantity 'lambda_n', there is no such "
        "contact",
    ),
    (
        None,
        '[[check]]\nquantity = "lambda_t.foo(1)"\nexpected = 1\ntolerance = 1\n',
        "check[1].quantity: found 'lambda_t.foo(1.0)', no quantity 'lambda_t.foo' "
        "(did you mean 'lambda_t.friction'?); there are lambda_t.friction",
    ),
    (
        None,
        '[[check]]\nquantity = "event_time(0)"\nexpected = 1\ntolerance = 1\n',
        "check[1].quantity: found 'event_time(0)', events are numbered 1, 2, ...",
    ),
    (
        None,
        '[[check]]\nquantity = "velocity.u(1)"\nexpected = 1\ntolerance = 1\n',
        (
            "check[1].quantity: found 'velocity.u(1)', expected such as u(1 s), final.u, max.v.u, "
            "'mean.u after 2 s', event_time(1), stop_time, equilibrium.u(1), orbit.period "
            "(the page on sweeps and jfric.results.quantity.GRAMMAR list all)"
        ),
    ),
    (
        None,
        '[[check]]\nquantity = "final"\nexpected = 1\ntolerance = 1\n',
        "check[1].quantity: found 'final', final takes a name",
    ),
    (
        None,
        '[[check]]\nquantity = "min.u(3)"\nexpected = 1\ntolerance = 1\n',
        "check[1].quantity: found 'min.u(3)', min takes nothing in parentheses",
    ),
    (
        None,
        '[[check]]\nquantity = "u(9)"\nexpected = 1\ntolerance = 1\n',
        "check[1].quantity: found 'u(9)', the time must lie between 0 s and 4 s",
    ),
    (None, '[load]\ndof = "u"\nF = {sum = []}\n', "load.F: found a sum without terms"),
    (
        None,
        '[load]\ndof = "u"\nF = {linear = {times = [], values = []}}\n',
        "load.F.times: found none, at least one is needed",
    ),
    (
        None,
        '[polynomial_spring]\ndof = "u"\nk = [1, "2 N/m^2", "3 N/m"]\n',
        "polynomial_spring.k[3]: found 'N/m' (a stiffness), expected a coefficient of x^3 such as "
        "'5 kN/m^3'",
    ),
    ('"100 kg"', "inf", "mass.m: found inf, must be finite"),
    ('"100 kg"', "1979-05-27", "mass.m: found 1979-05-27, expected a mass such as '5 kg'"),
    (
        '"100 kg"',
        '"9**9**9"',
        "mass.m: found '9**9**9', which is no quantity; expected a mass such as '5 kg'",
    ),
    (
        None,
        '[solver]\nname = "smoothed"\nwidth = "1 mm/s"\n',
        "solver.width: found '1 mm/s', expected a number in SI units, without a unit",
    ),
    (
        None,
        '[[load]]\ndof = "u"\nF = 1\n',
        "load: found a list, expected a table with dof, between, direction, F",
    ),
]


def test_the_good_file_is_good():
    assert loads(GOOD).problem.axes == ("u",)


@pytest.mark.parametrize(("old", "new", "sentence"), MISTAKES)
def test_sentence(old, new, sentence):
    assert old is None or old in GOOD
    text = GOOD + new if old is None else GOOD.replace(old, new)
    with pytest.raises(jfric.ProblemError) as caught:
        loads(text, "configs/x.toml")
    assert str(caught.value) == f"configs/x.toml: {sentence}"
    assert caught.value.__cause__ is None
    assert "\n" not in str(caught.value)


def test_missing_file(tmp_path):
    path = tmp_path / "none.toml"
    with pytest.raises(
        jfric.ProblemError, match=r"none\.toml: cannot read the file \(No such file"
    ):
        load_config(path)


def test_no_text_file(tmp_path):
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(jfric.ProblemError, match=r"x\.toml: not a text file in UTF-8"):
        load_config(path)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("t,F\n0,1\n1\n", "line 3: found '1', needed are two numbers, time and value"),
        ("0 1\n0 2\n", "needed are at least two rows with strictly increasing times"),
        ("0,1\n1,x\n", "line 2: found '1,x', needed are two numbers, time and value"),
    ],
)
def test_sample_files(tmp_path, content, sentence):
    (tmp_path / "force.csv").write_text(content)
    text = GOOD.replace('N = "1 kN"', 'N = {table = {file = "force.csv"}}')
    with pytest.raises(jfric.ProblemError) as caught:
        loads(text, tmp_path / "x.toml")
    assert str(caught.value).startswith(f"{tmp_path / 'x.toml'}: friction.N.table.file: ")
    assert str(caught.value).endswith(sentence)


def test_matrix_files(tmp_path):
    import numpy as np

    np.save(tmp_path / "K.npy", np.eye(2))
    (tmp_path / "bad.npy").write_text("no matrix")
    (tmp_path / "bad.mtx").write_text("no matrix")
    with pytest.raises(jfric.ProblemError, match=r"K: found shape \(2, 2\), needed is \(1, 1\)$"):
        loads(GOOD + '[matrices]\nK = "K.npy"\n', tmp_path / "x.toml")
    for name in ("bad.npy", "bad.mtx"):
        with pytest.raises(jfric.ProblemError, match=rf"matrices.K: cannot read '.*{name}'"):
            loads(GOOD + f'[matrices]\nK = "{name}"\n', tmp_path / "x.toml")


def test_a_periodic_state_holds_all_positions_then_all_velocities(tmp_path):
    path = tmp_path / "x.toml"
    two = GOOD.replace('dofs = ["u"]', 'dofs = ["u", "w"]').replace(
        "[mass]", '[mass.w]\ndof = "w"\nm = "1 kg"\n[mass.u]'
    )
    path.write_text(two + '[periodic]\nstate = ["1 cm", "2 cm", "3 mm/s", 4.0]\n')
    assert load_config(path).periodic["state"] == [0.01, 0.02, 0.003, 4.0]
    path.write_text(two + "[periodic]\nstate = [1.0, 2.0]\n")
    with pytest.raises(
        jfric.ProblemError,
        match=r"periodic\.state: found 2 numbers, needs 2 positions and 2 velocities$",
    ):
        jfric.load(path)


@pytest.mark.parametrize(("given", "missing"), [("start", "stop"), ("stop", "start")])
def test_a_path_of_periodic_motions_needs_both_ends(given, missing, tmp_path):
    path = tmp_path / "x.toml"
    path.write_text(GOOD + f'[periodic]\nvary = "friction.mu"\n{given} = 0.2\n')
    with pytest.raises(
        jfric.ProblemError,
        match=rf"periodic\.{missing}: not given, vary needs both start and stop$",
    ):
        jfric.load(path)
    path.write_text(GOOD + f'[periodic]\nvary = "friction.mu"\n{given} = 0.2\n{missing} = 0.3\n')
    assert load_config(path).periodic == {"vary": "friction.mu", given: 0.2, missing: 0.3}


def mass_on_spring(**elements):
    return jfric.Problem(("u",), {"mass": jfric.Mass("u", 1.0), **elements})


@pytest.mark.parametrize(
    ("elements", "sentence"),
    [
        (
            {"stop": jfric.Stop("u", 1.0, release="phisical")},
            "stop.release: found 'phisical' (did you mean 'physical'?), allowed are 'physical', "
            "'adhesive', 'limited'",
        ),
        (
            {"spring": jfric.Spring("u", [1.0, 2.0])},
            "spring.k: found [1.0, 2.0], expected one number",
        ),
        (
            {"friction": {"a.b": jfric.Friction("u", limit=1.0)}},
            "friction: found the name 'a.b', names hold letters, digits, _ and -",
        ),
        (
            {"spring": jfric.Spring({"u": 0.0}, 1.0)},
            "spring.direction: all coefficients are zero",
        ),
    ],
)
def test_problems_built_in_python_are_checked_alike(elements, sentence):
    with pytest.raises(jfric.ProblemError) as caught:
        mass_on_spring(**elements)
    assert str(caught.value) == sentence


def test_matrices_of_wrong_shape():
    with pytest.raises(jfric.ProblemError, match=r"matrices.C: found shape \(2, 2\)"):
        jfric.Problem(
            ("u",),
            {"mass": jfric.Mass("u", 1.0)},
            matrices=jfric.Matrices(C=[[1.0, 0.0], [0.0, 1.0]]),
        )

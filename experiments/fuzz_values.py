"""Values, options and a small system from which malformed inputs are made."""

from __future__ import annotations

#: A system for which a valid command ends quickly.
SMALL = """
title = "Small"
dofs = ["x"]
[time]
end = "1 s"
outputs = 11
[parameters]
a = "2 kg"
[mass]
dof = "x"
m = "$a"
[spring]
dof = "x"
k = "50 N/m"
[friction]
dof = "x"
mu = 0.1
N = "10 N"
[load]
dof = "x"
F = "2 N"
[data]
time = "t"
[data.y]
x = {column = "x", unit = "mm"}
[data.u]
"load.F" = "F"
[[check]]
quantity = "x(1)"
expected = 0.5
tolerance = 1e9
"""
#: Another system, with a contact that closes.
FALLING = """
dofs = ["x", "z"]
[time]
end = "1 s"
outputs = 5
[matrices]
M = [[1, 0], [0, 2]]
[initial.z]
q = "0.1 m"
v = "-1 m/s"
[contact]
normal = "z"
tangent = "x"
mu_s = 0.4
mu_d = 0.3
e = 0.5
belt = {harmonic = {amplitude = "0.1 m/s", frequency = "2 Hz"}}
[load.weight]
dof = "z"
F = "-19.62 N"
[load.push]
dof = "x"
F = {steps = {times = [0.2, 0.5], values = [0, 5, -5]}}
[[check]]
quantity = "final.z"
expected = 0.0
tolerance = 1e9
"""
#: Samples for the first system.
SAMPLES = "t,x,F\n" + "".join(f"{0.02 * i:g},{i % 7},{i % 3}\n" for i in range(40))

LONG = 10_000
#: Values of a TOML file that are wrong nearly everywhere.
NUMBERS = (
    *("nan", "inf", "-inf", "0", "-1", "-0.0", "1e400", "1e-400", "1e308", "5e-324", "2.5"),
    *("9" * 30, "9" * 5000, "0x" + "f" * 5000, "true", "1979-05-27", "1979-05-27T07:32:00Z"),
    *("1000000000000", "1180591620717411303424", "2147483648", "0b1", "1_000", "+1", "1."),
)
TABLES = (
    *("[]", "{}", "[[]]", "[1, 2]", "[nan, 1]", "{a = 1}", '["x", "x"]', '[["x"]]'),
    *("[" * 50 + "]" * 50, "[" * 700 + "]" * 700, "{a = " * 300 + "1" + "}" * 300),
    *('{x = "1 s"}', "{sum = []}", "{sum = [{sum = []}]}", '{table = {file = "/dev/zero"}}'),
    *('{table = {file = "."}}', '{table = {file = "data.csv"}}', "{sum = [1, 2]}"),
    "{steps = {times = [], values = [1]}}",
    "{harmonic = {amplitude = 1, omega = inf}}",
)  # fmt: skip
TEXTS = (
    *("", " ", "nan", "inf", "1e400", "1e999999999 t", "5 kNn/m", "5 m^999999999", "5 m^9^9^9"),
    *("5 m^(9^9^9)", "5 " + "m" * LONG, "1/0", "9**9**9**9", "$a**9**9**9", "$m", "$", "$a$b"),
    *("_p_0", "$a + _p_a", "(" * 900 + "$a" + ")" * 900, "-" * 900 + "$a", "$a" + "+1" * LONG),
    *("0.85e-3*sqrt(0.5)", "1/sqrt(2)", "sqrt(-1)", "$a/0", "1/($a - 2)", "(-8)**(1/3)", "5 °"),
    *("[red]5", "[/red]", "5 [/]", "u", "x", "ground", "../none", "/dev/zero", "data.csv", "x.npy"),
    *(
        "\\u0000",
        "\\n",
        "ﬀ",
        "\uff15",
        "5 m'",
        "5 (m",
        "5 m)",
        "5 %",
        "20 degC",
        "5 1/s",
        "1e-3 m^-2",
    ),
    *("0.5 " + "(" * 80 + "m" + ")" * 80, "a" * LONG, "'", "{x}", "%s", "5 m per s", "5 m/0"),
)
QUANTITIES = (
    *("u(99)", "x(99)", "event_time(99999999999999999999)", "x(1e400)", "x($a)", "lambda_n(0)"),
    *("x(0)(1)", "(", ")", "x(", "max.", ".x", "v.v.x(1)", "event.x(0)", "equilibrium.x(1)"),
    *("limit.parameter", "special.x(1)", "x(nan)", "x(-1)", "final.x", "min.x", "stop_time"),
    *("event_v.x(" + "9" * 5000 + ")", "lambda_t(0)", "dissipated", "x(t)", "x(٣)", "rms.v.x"),
    *("a" * LONG, "x(1 ms)", "[red]"),
)  # fmt: skip
#: Values that are allowed for a number, whatever the result.
MILD = ("0", "-1", "1", "0.5", "2", "1e9", "-1e9", "1e-9", "1e-300", "1e300", "5e-324", "3", "100")
COUNTS = ("0", "-1", "1", "2", "2.5", "nan", "x", "", "1000000000000", "9" * 30, "9" * 5000)

#: Options of each command, and their values.
OPTIONS: dict[str, tuple[tuple[str, ...], ...]] = {
    "run": (
        ("--set", "PATH=VALUE"), ("--option", "NAME=VALUE"), ("--option", "NAME=COUNT"),
        ("--set", "PATH=MILD"), ("--set", "PATH=MILD", "--set", "PATH=MILD"),
        ("--option", "NAME=MILD"),
        ("--times", "VALUE"), ("--times", "COUNT"), ("--solver", "VALUE"), ("--flow", "VALUE"),
        ("--rtol", "VALUE"), ("--format", "VALUE"),
        ("--solver", "moreau-jean", "--option", "dt=VALUE"),
        ("--solver", "smoothed", "--option", "width=VALUE"), ("--out", "/dev/null/x"),
    ),
    "show": (("--set", "PATH=VALUE"), ("--set", "PATH=VALUE", "--set", "PATH=VALUE")),
    "sweep": (
        ("--vary", "PATH=VALUE:VALUE:COUNT"), ("--vary", "PATH=0:1:COUNT"),
        ("--vary", "PATH=[VALUE]"), ("--vary", "PATH=MILD:MILD:3"),
        ("--observe", "VALUE"), ("--method", "VALUE"), ("--samples", "COUNT"), ("--seed", "COUNT"),
        ("--times", "COUNT"), ("--chunk", "COUNT"), ("--block", "COUNT"), ("--devices", "COUNT"),
        ("--workers", "0"), ("--workers", "1000000"), ("--out", "x.toml"),
        ("--option", "NAME=VALUE"),
        ("--method", "random", "--vary", "PATH=0:1", "--samples", "COUNT"),
        ("--scheduler", "data.csv"),
    ),
    "trace": (
        ("--vary", "PATH=VALUE:VALUE"), ("--vary", "PATH=MILD:MILD"),
        ("--seeds", "COUNT"), ("--show", "VALUE", "--plot"),
        ("--contact", "VALUE", "--plot"), ("--set", "PATH=VALUE"),
    ),
    "equilibria": (
        ("--starts", "COUNT"), ("--set", "PATH=VALUE"), ("--rest", "--set", "PATH=MILD"),
    ),
    "bias": (("--widths", "VALUE"), ("--widths", "MILD"), ("--option", "NAME=VALUE")),
    "fit": (
        ("--free", "PATH=VALUE:VALUE"), ("--free", "PATH=-1:COUNT"), ("--window", "VALUE"),
        ("--residual", "VALUE"), ("--observe", "VALUE"), ("--starts", "COUNT"), ("--hold", "VALUE"),
        ("--loss", "VALUE"), ("--seed", "-1"), ("--free", "mass.m=1:3"), ("--data", "VALUE"),
    ),
    "verify": (("--case", "VALUE"), ("--flow", "VALUE"), ("--junit", "/dev/null/x"), ("VALUE",)),
    "plot": (("--observe", "VALUE"), ("--out", "VALUE")),
}  # fmt: skip
#: Arguments that a command needs in addition to its options.
NEEDED = {
    "run": ["--out", "out"],
    "sweep": ["--vary", "friction.mu=0.1:0.2:2", "--observe", "final.x", "--out", "s.zarr"],
    "fit": [
        "--data",
        "data.csv",
        "--free",
        "spring.k=10:100",
        "--starts",
        "1",
        "--out",
        "fit.json",
    ],
    "bias": ["--widths", "0.1"],
}

"""Hypothesis strategies for arrays, options, CSV and TOML; they generate text, so an example is its own reproducer."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import hypothesis
from hypothesis import strategies as st

from hostile.trials import Trial


def among(text: str, *others: str) -> st.SearchStrategy[str]:
    """Generate one of the words of a text, or one of the others."""
    return st.sampled_from([*text.split(" "), *others])


NUMBERS = among(
    "0 1 -1 0.5 2 3 10 1e-320 1e-30 1e300 -1e300 1e38 2**60 2**63-1 np.nan np.inf -np.inf True 10**9 -0.0",
)
DTYPES = among(
    "float64 float32 float16 int64 int8 uint8 uint64 bool complex128 object U3 S3 datetime64[s] longdouble",
)
SIZES = st.sampled_from([0, 1, 2, 3, 5, 20, 60])


@st.composite
def array_codes(draw: st.DrawFn, rows: int | None = None) -> str:
    """Generate code of an array: of any shape and type, with odd values in odd places."""
    n = draw(SIZES) if rows is None else rows
    shape = draw(
        st.sampled_from(
            [
                (n, 2),
                (n, 2),
                (n, 3),
                (n, 3),
                (n, 1),
                (n,),
                (n, 0),
                (0, 3),
                (),
                (n, 2, 2),
                (2, n),
                (n, 1, 4, 4),
            ]
        )
    )
    base = draw(
        st.sampled_from(
            [
                *(["np.random.default_rng({seed}).normal(size={shape})"] * 4),
                "np.full({shape}, {number})",
                "np.random.default_rng({seed}).integers(3, size={shape})",
                "np.random.default_rng({seed}).normal(size={shape}) * {number}",
                "{number} + np.arange({size}).reshape({shape})",
            ]
        )
    )
    code = base.format(seed=draw(st.integers(0, 3)), shape=shape, number=draw(NUMBERS), size=math.prod(shape))
    wrap = draw(
        st.sampled_from(
            [
                *(["{}"] * 8),
                "({}).astype('{dtype}')",
                "put({}, {number})",
                "np.asfortranarray({})",
                "({})[::-1]",
                "({}).tolist()",
                "torch.as_tensor({})",
                "pandas.DataFrame({})",
                "np.ma.masked_less({}, 0)",
                "torch.empty({shape}, device='meta')",
                "Raises()",
                "NegativeLength()",
                "np.broadcast_to(np.float64(1), (10**5, 3))",
                "'text'",
                "None",
                "{{}}",
            ]
        )
    )
    return wrap.format(code, dtype=draw(DTYPES), number=draw(NUMBERS), shape=shape)


PRELUDE = "from hostile.odd import *\n"
CALLS = (
    "ps.diagnose(mean=A, variance=B, n_bootstrap=5)",
    "ps.diagnose(mean=A, variance=B, sampled=C, n_bootstrap=5)",
    "r = ps.diagnose(mean=A, n_bootstrap=5)",
    "d = ps.decompose(ps.Representation(mean=A, variance=B, sampled=C)); "
    "expect(math.isfinite(d.rate) and d.rate >= -1e-6, f'rate {d.rate}')",
    "ps.decompose(A)",
    "ps.score(A, metrics='mig', factors=B)",
    "s = ps.score(A, metrics='sap,modularity', factors=B)",
    "ps.score(A, metrics=3, factors=B)",
    "ps.score(A, factors=B, options=O)",
    "data = ps.from_arrays(A); data.values(range(len(data))); data.fingerprint",
    "ps.from_arrays(A, factors=B)",
    "ps.train(A, net='linear', n_latents=2, steps=2, seed=V)",
    "ps.encode(lambda x: A, B)",
    "ps.encode(ps.wrap(lambda x: (x[:, :2], x[:, :2])), A, seed=V)",
    "ps.metrics[M](A, B)",
    "ps.similarity[S](A, B)",
    "ps.dimension[D](A)",
    "ps.compare([A, B])",
    "ps.stability([A, B])",
    "ps.report(ps.Representation(mean=A, variance=B, sampled=C), out='out.html')",
    "ps.VAE(n_latents=V, steps=2).fit(A).transform(B)",
    "ps.load_dataset(V)",
    "ps.open_run(V)",
    "ps.load_model(V)",
    "ps.load_dataset('gaussian', n_samples=V)",
    "ps.Study(data={'name': 'gaussian'}, seeds=V)",
    "ps.size(A, steps=400, cap=V)",
)
OBJECTS = among(
    "np.nan 'a' 1.5 -1 None 10**9 [] {} '' '\\0' b'\\xff' '~nouser/x' True 'loop' '\\udcff' object() np.zeros(3) "
    "float('inf') 2**70 range(3) '/' '.'",
)
METRICS = st.sampled_from(
    ["'mig'", "'dci'", "'sap'", "'hoyer'", "'mcc'", "'irs'", "''", "'nothing'", "None", "3"]
)


@st.composite
def api_trials(draw: st.DrawFn) -> Trial:
    """Generate a call of the Python interface with odd arrays and objects."""
    rows = draw(st.sampled_from([None, 20, 60]))
    names = {name: draw(array_codes(rows)) for name in "ABC"}
    names |= {"V": draw(OBJECTS), "M": draw(METRICS)}
    names |= {"S": draw(st.sampled_from(["'cka'", "'rsa'", "'knn'", "'procrustes'", "'svcca'"]))}
    names |= {"D": draw(st.sampled_from(["'mle'", "'twonn'", "'lpca'", "'gride'"]))}
    names |= {"O": f"{{{names['M']}: {{{draw(OBJECTS)}: {draw(OBJECTS)}}}}}"}
    call = draw(st.sampled_from(CALLS))
    used = [name for name in names if _uses(call, name)]
    lines = [f"{name} = {names[name]}" for name in used]
    # Whatever an argument raises when it is built is not an error of polariscope.
    guarded = (
        "try:\n"
        + "".join(f"    {line}\n" for line in lines or ["pass"])
        + "except Exception:\n    sys.exit(0)\n"
    )
    return Trial("Python interface", (f"{PRELUDE}{guarded}{call}\n",), is_python=True, animal="link loop")


def _uses(call: str, name: str) -> bool:
    return bool(re.search(rf"\b{name}\b", call))


WORDS = among(
    "0 -1 1e400 nan inf 1.5 none all a,b , = x= =x a=b=c 1,2,3 mig σ \U0001f600 ../.. / /dev/null loop ~nouser - -- "
    "--help true {} [] ' \" ;rm %s mig.n_bins=1e9 mig.n_bins=10 subset:n=-1 colour:",
    "",
    " ",
    "9" * 30,
    "a" * 300,
)
TARGETS = among("r0 codes.npz rows.csv rows.npy digits gaussian s.toml loop nowhere . / search", "")


def commands() -> dict[str, list[str]]:
    """Return the flags of every command."""
    import typer

    from polariscope.cli.app import make_app

    def walk(command: Any, path: str) -> Iterator[tuple[str, list[str]]]:
        if subcommands := getattr(command, "commands", None):
            for name, sub in subcommands.items():
                yield from walk(sub, f"{path} {name}".strip())
        else:
            yield path, [flag for option in command.params for flag in option.opts if flag.startswith("--")]

    return dict(walk(typer.main.get_command(make_app(["--help"])), ""))


BOUNDED = {
    "train": "--steps 2",
    "demo": "--steps 2",
    "manipulate": "--steps 1",
    "size": "--steps 400 --minutes 0.02",
}
"""Options that end a command soon; they come last, so they have precedence."""


@st.composite
def command_trials(draw: st.DrawFn, flags: dict[str, list[str]]) -> Trial:
    """Generate a command line: odd values of any of its flags."""
    name = draw(st.sampled_from(sorted(flags)))
    words = [*name.split(), *draw(st.lists(TARGETS, max_size=2))]
    for flag in draw(st.lists(st.sampled_from(flags[name] or ["--help"]), max_size=3)):
        words.append(flag)
        if draw(st.booleans()):
            words.append(draw(WORDS))
    bound = next((limit for start, limit in BOUNDED.items() if name.startswith(start)), "")
    needs = ("r0", "codes.npz", "rows.csv", "rows.npy", "s.toml", "search")
    return Trial("command lines", (*words, *bound.split()), needs=needs, animal="link loop")


CELLS = st.one_of(
    among(
        '1 2.5 -3e5 nan NA inf 1,5 1e400 0x10 1_000 x " "" \' =1+1 ٣ true 2024-01-01 \x00 \ufeff 9007199254740993 '
        "1e-320 ½ -",
        "",
        "\t",
        " 7 ",
        "1" * 400,
    ),
    st.integers(-5, 5).map(str),
    st.floats(allow_nan=False).map(repr),
)


@st.composite
def table_trials(draw: st.DrawFn) -> Trial:
    """Generate a table: cells of any kind, several separators and line ends, missing and surplus cells."""
    separator = draw(st.sampled_from([",", ",", ",", ";", "\t", " ", "|"]))
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\r", "\n\n"]))
    columns = draw(st.integers(1, 4))
    plain = st.floats(-10, 10).map(lambda value: f"{value:.3f}")
    rows = draw(st.lists(st.lists(plain, min_size=columns, max_size=columns), min_size=0, max_size=30))
    for _ in range(draw(st.integers(0, 3))):
        row = draw(st.lists(CELLS, max_size=5))
        rows.insert(draw(st.integers(0, len(rows))), row)
    name = draw(st.sampled_from(["x.csv", "x.csv", "x.tsv", "x.txt"]))
    text = draw(st.sampled_from(["", "", "\ufeff", "a,b,c\n", "# note\n"])) + end.join(
        map(separator.join, rows)
    )
    verb = draw(
        st.sampled_from(
            [
                "data info {}",
                "data preview {} --samples 3",
                "train {} --net linear --latents 2 --steps 2 --out out --quiet",
            ]
        )
    )
    return Trial("tables", tuple(verb.format(name).split()), files={name: text})


VALUES = st.recursive(
    among(
        '0 1 -1 1.5 nan inf true "" "x" "gaussian" 2024-01-01 10000000000 [] "\\u0000" [1,2] ["a",1] {} 1e400 '
        '"../.." "." "/"',
        "9" * 40,
        "'''\na\n'''",
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.lists(inner, min_size=1, max_size=2).map(lambda items: f"{{ a = {items[0]}, b = {items[-1]} }}"),
    ),
    max_leaves=4,
)
KEYS = among(
    "seeds out runs name data objective settings grid zipped listed each over once budget diverged steps n_latents "
    'beta net n_samples metrics max_hours "" timeout_per_run fixed x "a.b" seed variants threads score diagnose',
)
TABLES = among(
    "[data] [settings] [grid] [zipped] [[listed]] [each.diagnose] [each.score] [over.udr] [budget] [[objective]] "
    "[once.size] [score.mig] [x] [each] [[data]]",
)


@st.composite
def toml_trials(draw: st.DrawFn) -> Trial:
    """Generate a study file or a file of options: known keys with odd values, unknown keys, and broken lines."""
    lines = [
        'out = "study"',
        "[data]",
        'name = "gaussian"',
        "n_samples = 60",
        "[settings]",
        'net = "linear"',
        "steps = 3",
    ]
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(lines)))
        line = draw(
            st.one_of(
                TABLES, st.tuples(KEYS, VALUES).map(" = ".join), st.sampled_from(["=", "[", "a", "\x00"])
            )
        )
        lines.insert(at, line)
    if draw(st.booleans()):
        lines.pop(draw(st.integers(0, len(lines) - 1)))
    text = "\n".join(lines) + "\n"
    if draw(st.integers(0, 4)) == 0:
        words: tuple[str, ...] = ("score", "codes.npz", "--metrics", "mig", "--config", "x.toml")
    else:
        words = ("study", draw(st.sampled_from(["plan", "status", "table", "clean"])), "x.toml")
    return Trial("TOML", words, needs=("codes.npz",), files={"x.toml": text})


def generate(kind: str, seed: int, count: int) -> list[Trial]:
    """Return examples of one kind, the same for the same seed.

    :param kind: api, commands, tables or toml.
    :param seed: seed of the examples.
    :param count: maximum number of examples.
    """
    made: list[Trial] = []
    strategy: Any = {
        "api": api_trials,
        "commands": lambda: command_trials(commands()),
        "tables": table_trials,
        "toml": toml_trials,
    }[kind]()

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy)
    def collect(trial: Trial) -> None:
        if trial not in made:
            made.append(trial)

    collect()
    return made


KINDS = ("api", "commands", "tables", "toml")

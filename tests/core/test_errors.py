"""Errors: parts, and words for two kinds of reader."""

from __future__ import annotations

import pickle

import pytest

from polariscope.cli.flags import Flags
from polariscope.core.errors import PYTHON, Argument, Call, Either, InputError, check_word, unknown

TYPED = Flags(
    ["--net", "--alpha", "--samples", "--latents", "--standardise"], advised=lambda: ["--keep-checkpoints"]
)


def both(error: InputError) -> tuple[str, str]:
    """What Python's and the command line's readers see."""
    assert str(error) == error.worded(PYTHON)
    return str(error), error.worded(TYPED)


def test_an_argument_is_spelled_as_it_is_given() -> None:
    error = InputError("alpha", "lie between 0 and 0.5", got=0.7, remedy="0.1 is usual")
    assert both(error) == (
        "alpha must lie between 0 and 0.5, got 0.7; 0.1 is usual.",
        "--alpha must lie between 0 and 0.5, got 0.7; 0.1 is usual.",
    )


def test_advice_is_what_can_be_typed() -> None:
    error = InputError(problem="net 'conv' requires images", remedy=("use ", Argument("net", "mlp")))
    assert both(error) == (
        "net 'conv' requires images; use net='mlp'.",
        "net 'conv' requires images; use --net mlp.",
    )


@pytest.mark.parametrize(
    ("piece", "python", "typed"),
    [
        (Argument("n_samples", 5), "n_samples=5", "--samples 5"),
        (Argument("n_latents"), "n_latents", "--latents"),
        (Argument("standardise", True), "standardise=True", "--standardise"),
        (Argument("standardise", False), "standardise=False", "--no-standardise"),
        (Argument("variance"), "variance", "variance"),  # an array of a file has no flag
        (Argument("keep_checkpoints", "all"), "keep_checkpoints='all'", "--keep-checkpoints all"),
        (Argument("keep_checkpoints"), "keep_checkpoints", "keep_checkpoints"),  # not this command's
        (Argument("average", "harmonic"), "average='harmonic'", "average harmonic"),
        (
            Call("train", "data", out="a b"),
            "polariscope.train(data, out='a b')",
            "'polariscope train DATA --out 'a b''",
        ),
        (Either("in Python", ("type ", Argument("net"))), "in Python", "type --net"),
    ],
)
def test_pieces(piece: Argument | Call | Either, python: str, typed: str) -> None:
    assert both(InputError(problem=("do ", piece))) == (f"do {python}.", f"do {typed}.")


def test_several_arguments_and_things_that_are_none() -> None:
    assert both(InputError("net and alpha", "agree"))[1] == "--net and --alpha must agree."
    assert both(InputError("x, net and alpha", "agree"))[1] == "x, --net and --alpha must agree."
    assert both(InputError("factor 'net'", "vary"))[1] == "factor 'net' must vary."


def test_what_came_may_be_a_value_or_arguments() -> None:
    assert str(InputError("x", "be flat", got=(2, 3))) == "x must be flat, got (2, 3)."
    assert str(InputError("x", "be given", got=None)) == "x must be given, got None."
    error = InputError("x", "fit", got=("a table with ", Argument("n_samples", 3)))
    assert both(error)[1] == "x must fit, got a table with --samples 3."


def test_parts_are_kept_and_cross_processes() -> None:
    error = InputError("net", "be one name", got="mlpp", remedy=("use ", Argument("net", "mlp")))
    again = pickle.loads(pickle.dumps(error))
    assert (again.argument, again.must, again.got, again.remedy) == (
        (Argument("net"),),
        "be one name",
        "mlpp",
        ("use ", Argument("net", "mlp")),
    )
    assert both(again) == both(error)
    bare = pickle.loads(pickle.dumps(InputError(problem="no")))
    assert str(bare) == "no."
    assert str(pickle.loads(pickle.dumps(InputError("x", "vary")))) == "x must vary."


def test_an_error_without_parts_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="requires an argument and its rule"):
        InputError("alpha is wrong")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="requires an argument and its rule"):
        InputError("alpha", "vary", problem="both")  # type: ignore[call-overload]


def test_questions_and_sentences_end_as_they_are() -> None:
    assert str(InputError(problem="no", remedy="is x a grid?")) == "no; is x a grid?"
    assert str(InputError(problem="no", remedy="Leave it.")) == "no; Leave it."


def test_unknown_names() -> None:
    assert str(unknown("metric", "zz", [])) == "no metric named 'zz'; there are none."
    more = unknown("type", "x", ["a"], ("Join them with ", Argument("net"), "."))
    assert both(more)[1] == "no type named 'x'; there are a. Join them with --net."
    with pytest.raises(InputError, match=r"no mode named 'crp'.*mean 'crop'"):
        check_word("mode", "crp", ("pad", "crop"))
    check_word("mode", "crop", ("pad", "crop"))


def test_arguments_are_renamed_wherever_a_message_speaks_of_them() -> None:
    error = InputError(
        "scale", ("be below ", Argument("cap")), got=3, remedy=("use ", Argument("scale", 1.0))
    )
    renamed = error.renamed({"scale": Argument("prior_scale")})
    assert str(renamed) == "prior_scale must be below cap, got 3; use prior_scale=1.0."
    problem = InputError(problem=(Argument("n_bins"), " is odd")).renamed(
        {"n_bins": Argument("set", "mig.n_bins")}
    )
    assert str(problem) == "set='mig.n_bins' is odd."

"""Messages: warnings at the user's line, progress, unknown names and keywords, and parameters.

scikit-learn's constraints are more permissive than the checks here: its ``Interval`` accepts True
as a count, and its ``HasMethods`` accepts a class instead of an object.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, TypeVar, overload
from unicodedata import normalize

import numpy as np


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside this package and scikit-learn, usually the user's."""
    level, frame = 2, sys._getframe(1)
    libraries = re.compile(r"sklearn(_rankcal)?(\.|$)")
    while frame.f_back is not None and libraries.match(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def counted(n: float, noun: str) -> str:
    """Format a count with its noun: "1 query", "2,000 queries".

    Examples
    --------
    >>> from sklearn_rankcal.utils._messages import counted
    >>> counted(1, "query"), counted(2000, "query"), counted(0, "class"), counted(3, "vote")
    ('1 query', '2,000 queries', '0 classes', '3 votes')
    """
    if n != 1:
        noun = re.sub("y$", "ie", noun) + ("es" if noun.endswith("s") else "s")
    return f"{n:,.0f} {noun}"


def all_of(n: int, noun: str) -> str:
    """Format "all 3 queries" or "the only query"."""
    return f"the only {noun}" if n == 1 else f"all {counted(n, noun)}"


def percent(share: float) -> str:
    """Format a share in percent with two digits, or three if two would round to 100.

    Examples
    --------
    >>> from sklearn_rankcal.utils._messages import percent
    >>> percent(0.00123), percent(0.5), percent(0.997), percent(1.0)
    ('0.12 %', '50 %', '99.7 %', '100 %')
    """
    digits = 2 if share < 0.99 else 3
    return f"{float(f'{100 * share:.{digits}g}'):g} %"


def print_progress(estimator: Any, what: str, started: float | None = None) -> None:
    """Print a line if `verbose` is not 0, with the seconds since `started` if given."""
    if estimator.verbose:
        took = "" if started is None else f" ({time.perf_counter() - started:.2f} s)"
        print(f"[{type(estimator).__name__}] {what}{took}", flush=True)


_Function = TypeVar("_Function", bound=Callable[..., Any])

# Ways to write a name with a cutoff: "ndcg10", "ndcg_10", "ndcg_at_10", "ndcg_cut_10", "ndcg@10".
_CUTOFF = re.compile(r"(?P<base>.*?)(?:_at_|_cut_|[@_ ]+)?(?P<cutoff>[1-9][0-9]*)")

GROUP_KEYWORDS = ("group", "group_id", "group_ids", "qid", "qids", "query", "query_id", "queries")

#: A name that occurs at most this often may be a misspelling of a frequent name.
RARE = 2


def did_you_mean(name: str, known: Iterable[str], others: Mapping[str, str] | None = None) -> str:
    """Return a hint such as `` Did you mean 'ndcg@10'?``, or "" if no known name is similar.

    `known` are names without cutoffs. `others` maps well-known names that this package does not
    have to the most similar name that it has.
    """
    names = list(known)
    lowered = name.strip().lower()
    candidates = [(lowered.partition("@")[0], "")]
    if match := _CUTOFF.fullmatch(lowered):
        candidates.insert(0, (match["base"], f"@{match['cutoff']}"))
    for base, cutoff in candidates:
        plain = re.sub(r"[\s-]+", "_", base)
        if others and plain in others:
            nearest = others[plain]
            return f" There is no {name!r} here; the nearest is {_joined(nearest, cutoff)!r}."
        if close := get_close_matches(plain, names, n=1):
            return f" Did you mean {_joined(close[0], cutoff)!r}?"
    return ""


def _joined(name: str, cutoff: str) -> str:
    return name if "@" in name else name + cutoff


def one_edit(one: str, other: str) -> bool:
    """Return whether one inserted, deleted, replaced or swapped letter turns one into the other."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if start is None:
        return one != other
    a, b = one[start:], other[start:]
    if a[1:] == b[1:] and (a[:1] + b[:1]).isdigit():
        return False  # names with different numbers are different items
    return a[1:] in (b, b[1:]) or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])


def plain_name(name: str) -> str:
    """Return a name without differences of case, blanks and coding."""
    return "".join(normalize("NFKC", name).casefold().split())


def check_parameters(who: str, parameters: Iterable[str], known: Sequence[str]) -> None:
    """Raise TypeError for a parameter that the object called `who` does not have."""
    for name in parameters:
        if name not in known:
            listed = f"Its parameters: {', '.join(known)}." if known else "It has no parameters."
            raise TypeError(f"{who} has no parameter {name!r}. {listed}")


def look_up(
    what: str,
    given: Any,
    kinds: Mapping[str, Any],
    kind: type,
    parameters: Mapping[str, Any],
    others: Mapping[str, str],
) -> Any:
    """Return the class of a name in `kinds`, or an object of type `kind` unchanged.

    The name may have a cutoff. `others` is for `did_you_mean`.
    """
    if isinstance(given, kind):
        if parameters:
            raise TypeError(
                f"Parameters can only be passed with the name of a {what}; got the {what} "
                f"{given!r}. Set the parameters of this object instead."
            )
        return given
    if not isinstance(given, str):
        raise TypeError(
            f"The {what} must be a name, such as {min(kinds)!r}, or a {kind.__name__} object; got "
            f"{given!r}."
        )
    base = given.partition("@")[0]
    if base not in kinds:
        hint = did_you_mean(given, kinds, others)
        raise ValueError(f"Unknown {what} {given!r}.{hint} Known: {', '.join(sorted(kinds))}.")
    return kinds[base]


@overload
def checks_keywords(function: _Function) -> _Function: ...


@overload
def checks_keywords(*, foreign: Mapping[str, str]) -> Callable[[_Function], _Function]: ...


def checks_keywords(function: Any = None, *, foreign: Mapping[str, str] | None = None) -> Any:
    """Decorate a function to say in errors about its arguments which it has.

    `foreign` has sentences about keywords that users know from elsewhere, by regular expression.
    ``{keyword}`` in a sentence is the keyword.
    """
    if function is None:
        return functools.partial(checks_keywords, foreign=foreign)
    signature = inspect.signature(function)
    parameters = signature.parameters
    name = function.__name__
    if name in ("__call__", "__init__"):
        name = function.__qualname__.split(".")[-2]
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())

    @functools.wraps(function)
    def checked(*args: Any, **keywords: Any) -> Any:
        for keyword in keywords:
            if keyword not in parameters and (not takes_any or keyword in GROUP_KEYWORDS):
                raise TypeError(unknown_keyword(name, keyword, parameters, foreign or {}))
        try:
            return function(*args, **keywords)
        except TypeError:
            try:
                signature.bind(*args, **keywords)
            except TypeError as error:
                raise TypeError(f"{name}(): {error}. {_call(name, parameters)}") from None
            raise

    return checked


def _call(name: str, parameters: Mapping[str, inspect.Parameter]) -> str:
    """Return a sentence that says how a function is called."""
    known = {key: each for key, each in parameters.items() if key not in ("self", "cls")}
    required = [each for each in known.values() if each.default is each.empty]
    shown = [
        f"{each.name}=..." if each.kind is each.KEYWORD_ONLY else each.name
        for each in required
        if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
    ]
    optional = [f"{key}=" for key, each in known.items() if each.default is not each.empty]
    call = f"Call it as {name}({', '.join(shown)})"
    return call + (f", with {', '.join(optional)} where needed." if optional else ".")


def unknown_keyword(
    function: str, keyword: str, parameters: Iterable[str], foreign: Mapping[str, str]
) -> str:
    """Return the error message for an unknown keyword of a function."""
    known = [name for name in parameters if name not in ("self", "cls")]
    start = f"{function}() has no parameter {keyword!r}."
    if "groups" in known and keyword in GROUP_KEYWORDS:
        return (
            f"{start} Pass groups=<query id of each row>. Convert group sizes, the convention of "
            "LightGBM, with sizes_to_groups(sizes)."
        )
    for pattern, sentence in foreign.items():
        if re.fullmatch(pattern, keyword):
            return f"{start} {sentence.format(keyword=keyword)}"
    hint = did_you_mean(keyword, known)
    return f"{start}{hint or ' Its parameters: ' + ', '.join(known) + '.'}"


#: No table has more rows. Larger numbers overflow NumPy's 64-bit integers.
MOST = 2**63 - 1


def check_count(
    value: Any, name: str, or_none: bool = False, *, least: int = 1, most: int = MOST
) -> None:
    """Raise an error unless the value is a whole number in a range, or None if allowed."""
    if or_none and value is None:
        return
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not least <= int(value) <= most:
        bounded = most < MOST or (whole and int(value) > most)
        known = f"from {least} to {most}" if bounded else f">= {least}"
        none = ", or None" if or_none else ""
        raise ValueError(f"{name} must be a whole number {known}{none}; got {value!r}.")


def check_number(value: Any, name: str, within: str = "(0, inf)", also: str = "") -> None:
    """Raise an error unless the value is a finite number in an interval such as "[0, 1)".

    `also` describes other accepted values in the message, for example ``"'auto' or"``.
    """
    low, high = map(float, within[1:-1].split(","))
    real = isinstance(value, Real) and not isinstance(value, bool)
    number: Any = value.item() if isinstance(value, np.generic) else value  # float32 overflows
    if (
        not real
        or not abs(number) <= sys.float_info.max  # NaN, infinity, or an integer beyond float64
        or not low <= number <= high
        or (number == low and within[0] == "(")
        or (number == high and within[-1] == ")")
    ):
        known = _INTERVALS.get(within, f"a number in {within}")
        raise ValueError(f"{name} must be {f'{also} {known}'.strip()}; got {value!r}.")


_INTERVALS = {
    "(0, inf)": "a finite number > 0",
    "[0, inf)": "a finite number >= 0",
    "(-inf, inf)": "a finite number",
}


def check_choice(value: Any, name: str, known: Iterable[str]) -> None:
    """Raise an error unless the value is one of the known names."""
    names = list(known)
    if not isinstance(value, str) or value not in names:
        hint = did_you_mean(value, names) if isinstance(value, str) else ""
        raise ValueError(f"Unknown {name} {value!r}.{hint} Known: {', '.join(names)}.")


def check_flag(value: Any, name: str) -> None:
    """Raise an error unless the value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {value!r}.")


def check_nested(estimator: Any, parameters: dict[str, Any], regressor: str) -> None:
    """Raise an error for a parameter of an object that `fit` makes from a name or None.

    `regressor` is code for a regressor that the user can pass instead.
    """
    instead = {
        "regressor": regressor,
        "loss": "sklearn_rankcal.losses.get_loss({!r})",
        "surrogate": "sklearn_rankcal.surrogates.SURROGATES[{!r}]()",
        "decoder": "sklearn_rankcal.decoders.DECODERS[get_loss(loss).space, {!r}]()",
    }
    given = estimator.get_params(deep=False) | parameters
    for path in parameters:
        name, _, inner = path.partition("__")
        value = given.get(name)
        if inner and name in instead and (value is None or isinstance(value, str)):
            raise ValueError(
                f"{path} cannot be set, because {name}={value!r} chooses the {name} in fit. Pass "
                f"an object, such as {name}={instead[name].format(value)}, whose parameters can be "
                "set and searched."
            )


def check_methods(value: Any, name: str, kind: str, *methods: str) -> None:
    """Raise an error unless the value is None or an object (not a class) with these methods."""
    lacking = [method for method in methods if not hasattr(value, method)]
    if value is not None and (lacking or isinstance(value, type)):
        raise TypeError(
            f"{name} must be None or {kind}, an object with the methods {' and '.join(methods)}; "
            f"got {value!r}."
        )

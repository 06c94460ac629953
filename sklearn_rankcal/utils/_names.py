"""Errors about unknown names and keywords, which suggest what the user probably meant."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

# ways to write a name with a cutoff: "ndcg10", "ndcg_10", "ndcg_at_10", "ndcg_cut_10", "ndcg@10"
_CUTOFF = re.compile(r"(?P<base>.*?)(?:_at_|_cut_|[@_ ]+)?(?P<cutoff>[1-9][0-9]*)")

GROUP_KEYWORDS = ("group", "group_id", "group_ids", "qid", "qids", "query", "query_id", "queries")


def did_you_mean(name: str, known: Iterable[str], others: Mapping[str, str] | None = None) -> str:
    """Return a hint such as `` Did you mean 'ndcg@10'?``, or "" if no known name is similar.

    Parameters
    ----------
    name : str
        The unknown name, with its cutoff.
    known : iterable of str
        The names that exist, without cutoffs.
    others : mapping of str to str, default=None
        Well-known names that do not exist here, each with the most similar one that does.
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


def checks_keywords(function: _Function) -> _Function:
    """Decorate a function so that its error for an unknown keyword suggests the right one."""
    parameters = inspect.signature(function).parameters
    name = function.__name__
    if name == "__call__":
        name = function.__qualname__.split(".")[-2]
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())

    @functools.wraps(function)
    def checked(*args: Any, **keywords: Any) -> Any:
        for keyword in keywords:
            if keyword not in parameters and (not takes_any or keyword in GROUP_KEYWORDS):
                raise TypeError(unknown_keyword(name, keyword, parameters))
        return function(*args, **keywords)

    return checked  # type: ignore[return-value]


def unknown_keyword(function: str, keyword: str, parameters: Iterable[str]) -> str:
    """Return the message of the error for a keyword that a function does not have."""
    known = [name for name in parameters if name != "self"]
    start = f"{function}() has no parameter {keyword!r}."
    if "groups" in known and keyword in GROUP_KEYWORDS:
        return (
            f"{start} Pass groups=<query id of each row>. Convert group sizes, the "
            "convention of LightGBM, with sizes_to_groups(sizes)."
        )
    hint = did_you_mean(keyword, known)
    return f"{start}{hint or ' Its parameters: ' + ', '.join(known) + '.'}"

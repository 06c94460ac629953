"""Extend parameters of regressors that refer to columns of X to context columns.

Users write these parameters for the columns of X. The regressor reads a table with context columns
to the right of them. The rules for the context columns of a column of X:

- A monotone constraint is copied to "difference" and "rank" columns. If the value of one document
  rises, its difference and rank rise, and the rest of the query falls in both. The document
  therefore never falls behind a document that had a lower score.
- z-scores would break this, so a column with a constraint gets none. A value far above the rest
  increases the standard deviation, which raises z-scores below the mean, and a document with such a
  z-score could overtake. Automatic context then adds differences.
- Context columns join the interaction groups of their column.
- Categories and ignored columns get no numeric context columns: the z-score of a category code has
  no meaning, and a z-score of an ignored column would bring the column back.
- The share of a category gets no constraint, because categories have no order. An ignored column
  has no share.
- Any other number for a column is copied to its context columns.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from sklearn_rankcal.utils import _estimators, _features, _messages

#: Forms of parameters: a sign or a number per column, a list of columns or a mask, a type per
#: column ("c" is a category), or groups of columns that may interact.
SIGNS, NUMBERS, COLUMNS, TYPES, GROUPS = "signs", "numbers", "columns", "types", "groups"

#: The parameters of each library, with their aliases.
COLUMN_PARAMETERS: dict[str, dict[str, str]] = {
    "sklearn": {
        "monotonic_cst": SIGNS,
        "interaction_cst": GROUPS,
        "categorical_features": COLUMNS,
    },
    "lightgbm": {
        "monotone_constraints": SIGNS,
        "monotone_constraint": SIGNS,
        "monotonic_cst": SIGNS,
        "mc": SIGNS,
        "interaction_constraints": GROUPS,
        "feature_contri": NUMBERS,
        "feature_contrib": NUMBERS,
        "feature_penalty": NUMBERS,
        "fc": NUMBERS,
        "fp": NUMBERS,
        "max_bin_by_feature": NUMBERS,
        "cegb_penalty_feature_lazy": NUMBERS,
        "cegb_penalty_feature_coupled": NUMBERS,
        "categorical_feature": COLUMNS,
        "categorical_features": COLUMNS,
        "categorical_column": COLUMNS,
        "cat_feature": COLUMNS,
        "cat_column": COLUMNS,
    },
    "xgboost": {
        "monotone_constraints": SIGNS,
        "interaction_constraints": GROUPS,
        "feature_weights": NUMBERS,
        "feature_types": TYPES,
    },
    "catboost": {
        "monotone_constraints": SIGNS,
        "feature_weights": NUMBERS,
        "first_feature_use_penalties": NUMBERS,
        "per_object_feature_penalties": NUMBERS,
        "cat_features": COLUMNS,
        "text_features": COLUMNS,
        "embedding_features": COLUMNS,
        "ignored_features": COLUMNS,
    },
}
_ALL = {name: form for known in COLUMN_PARAMETERS.values() for name, form in known.items()}
_LEFT_TO_LIBRARY = (None, "", "auto", "warn", "from_dtype")
#: Libraries in which a list may be shorter than the number of columns.
_SHORT_LISTS = ("xgboost", "catboost")


def library_of(regressor: Any) -> str:
    """Return the key of `COLUMN_PARAMETERS` for a regressor or one of its base classes, or ""."""
    for kind in type(regressor).__mro__:
        root = kind.__module__.partition(".")[0]
        if root in COLUMN_PARAMETERS:
            return root
    return ""


def given_parameters(regressor: Any) -> dict[str, tuple[str, Any]]:
    """Return the form and value of each parameter of columns that is set in a regressor."""
    known = COLUMN_PARAMETERS.get(library_of(regressor))
    if known is None or not hasattr(regressor, "get_params"):
        return {}
    values = regressor.get_params(deep=False)
    return {
        name: (form, values[name])
        for name, form in known.items()
        if name in values and not _is_left(values[name])
    }


def places_without_context(regressor: Any, X: Any, kinds: Iterable[str]) -> set[int]:
    """Return the places of the columns of X that get no context columns of these kinds."""
    found: set[int] = set()
    for name, (form, value) in given_parameters(regressor).items():
        if form == COLUMNS:
            found.update(_Columns(name, X, library_of(regressor)).places(value))
        elif form == TYPES:
            found.update(place for place, kind in enumerate(value) if kind == "c")
    return found | constrained_places(regressor, X) if "zscore" in kinds else found


def ignored_places(regressor: Any, X: Any) -> set[int]:
    """Return the places of the columns of X that the regressor ignores."""
    _, ignored = given_parameters(regressor).get("ignored_features", (COLUMNS, ()))
    return _Columns("ignored_features", X, library_of(regressor)).places(ignored)


def constrained_places(regressor: Any, X: Any) -> set[int]:
    """Return the places of the columns of X with a monotone constraint."""
    signs = (
        _Columns(name, X, library_of(regressor)).numbers(value)
        for name, (form, value) in given_parameters(regressor).items()
        if form == SIGNS
    )
    return {place for each in signs for place, sign in enumerate(each) if sign}


def match_parameters(regressor: Any, X: Any, added: Sequence[int] = ()) -> None:
    """Extend the parameters of an unfitted regressor to the table that it will read.

    `added` has the place in X of the column of each context column. Raise ValueError if a parameter
    cannot be extended.
    """
    library = library_of(regressor)
    categories = set(_features.category_columns(X))
    names = list(X.columns) if categories else []
    shares = {place for place, name in enumerate(names) if name in categories}
    changed: dict[str, Any] = {}
    for name, (form, value) in given_parameters(regressor).items():
        columns = _Columns(name, X, library)
        if form in (SIGNS, NUMBERS) and (added or not isinstance(value, str)):
            own = columns.numbers(value)
            own += [0 if form == SIGNS and place in shares else own[place] for place in added]
            changed[name] = _in_form_of(library, form, own)
        elif form == TYPES and added:
            changed[name] = [*value, *("float" for _ in added)]
        elif form == COLUMNS and added and _is_mask(value):
            changed[name] = [*value, *(False for _ in added)]
        elif form == GROUPS and added:
            groups = [
                sorted(
                    {*group, *(columns.n + k for k, place in enumerate(added) if place in group)}
                )
                for group in columns.groups(value)
            ]
            changed[name] = str(groups) if library == "xgboost" else groups
    if _estimators.is_catboost(regressor):
        changed.update(_categories(regressor, X))
    if changed:
        regressor.set_params(**changed)
    if added:
        _refuse_inner_parameters(regressor)


def refuse_parameters(regressor: Any, why: str, *forms: str) -> None:
    """Raise ValueError if a regressor has a parameter of columns, of these forms if given."""
    found = [(name, form) for name, (form, _) in given_parameters(regressor).items()]
    if hasattr(regressor, "get_params"):
        inner = [one for one in _inner_parameters(regressor) if not _is_left(one[2])]
        constraints = [(path, _ALL.get(name, "")) for path, name, _ in inner]
        found += [one for one in constraints if one[1] in (SIGNS, GROUPS)]
    for name, form in found:
        if not forms or form in forms:
            raise ValueError(f"{type(regressor).__name__} has the parameter {name}. {why}")


def _refuse_inner_parameters(regressor: Any) -> None:
    """Raise ValueError if an estimator inside the regressor has a parameter that counts columns."""
    if not hasattr(regressor, "get_params"):
        return
    for path, name, value in _inner_parameters(regressor):
        form = _ALL.get(name)
        if form is None or _is_left(value) or (form == COLUMNS and not _is_mask(value)):
            continue
        raise ValueError(
            f"{path} refers to the columns of X. The ranker adds context columns, and cannot "
            f"extend a parameter inside {type(regressor).__name__}. Pass context=None, or pass "
            "the regressor alone and put the ranker at the end of a pipeline."
        )


def _inner_parameters(regressor: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield path, name and value of each parameter of an inner estimator.

    For parameters that a search tries, the value is the list or distribution of values.
    """
    for path, value in regressor.get_params().items():
        outer, _, name = path.rpartition("__")
        if outer:
            yield path, name, value
        if name in ("param_grid", "param_distributions"):
            for grid in [value] if isinstance(value, Mapping) else value:
                for tried, values in grid.items():
                    yield f"{tried} in {path}", tried.rpartition("__")[2], values


def _in_form_of(library: str, form: str, numbers: list[Any]) -> Any:
    """Return numbers of columns in a form that the library supports and that can be cloned."""
    if library == "catboost":  # whose regressors cannot be cloned by scikit-learn with a list
        return f"({','.join(map(str, numbers))})"
    return tuple(map(int, numbers)) if (library, form) == ("xgboost", SIGNS) else numbers


def _categories(regressor: Any, X: Any) -> dict[str, Any]:
    """Return the parameter ``cat_features`` of CatBoost, if X has category columns."""
    columns = _Columns("cat_features", X, "catboost")
    places = columns.places(regressor.get_params().get("cat_features") or ())
    places.update(columns.names.index(name) for name in _features.category_columns(X))
    return {"cat_features": tuple(sorted(places))} if places else {}


def _is_left(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value in _LEFT_TO_LIBRARY)


def _is_mask(value: Any) -> bool:
    return not isinstance(value, str) and any(
        type(one).__name__ in ("bool", "bool_") for one in value
    )


class _Columns:
    """Converts the value of one parameter of a library to places of columns of X."""

    def __init__(self, parameter: str, X: Any, library: str) -> None:
        self.parameter = parameter
        self.library = library
        self.n = int(X.shape[1])
        self.names = list(X.columns) if _features.is_dataframe(X) else []

    def place(self, column: Any) -> int:
        """Return the place of a column given by name or place."""
        if column in self.names:
            return self.names.index(column)
        text = str(column)
        if not self.names and self.library == "xgboost":  # which names the columns of an array so
            text = text.removeprefix("f")
        if not text.lstrip("-").isdigit() or not -self.n <= int(text) < self.n:
            shown = self.names[:20] if self.names else f"numbered from 0 to {self.n - 1}"
            raise ValueError(
                f"{self.parameter} refers to column {column!r}, but the columns of X are {shown}."
            )
        return int(text) % self.n

    def read(self, value: Any) -> Any:
        """Parse a value that is given as text."""
        if not isinstance(value, str):
            return value
        try:
            return literal_eval(value)
        except (SyntaxError, ValueError):
            raise ValueError(
                f"Pass {self.parameter} as a list instead of the text {value!r}, because the "
                "ranker adds context columns to it. Or pass context=None."
            ) from None

    def numbers(self, value: Any) -> list[Any]:
        """Return a number for each column of X."""
        value = self.read(value)
        neutral = 1.0 if self.parameter == "feature_weights" else 0
        if isinstance(value, dict):
            own = [neutral] * self.n
            for column, number in value.items():
                own[self.place(column)] = number
            return own
        own = list(value)
        if self.library in _SHORT_LISTS and len(own) < self.n:
            own += [neutral] * (self.n - len(own))
        if len(own) != self.n:
            raise ValueError(
                f"{self.parameter} has {_messages.counted(len(own), 'entry')}, but X has "
                f"{_messages.counted(self.n, 'column')}"
                + (" without the query ids." if len(own) == self.n + 1 else ".")
            )
        return own

    def places(self, value: Any) -> set[int]:
        """Return the places of a list of columns, a mask, or LightGBM's text of names."""
        if isinstance(value, str):
            value = value.removeprefix("name:").split(",")
        if _is_mask(value):
            return {place for place, chosen in enumerate(value) if chosen}
        return {self.place(column) for column in value}

    def groups(self, value: Any) -> list[set[int]]:
        """Return the groups of places that may interact."""
        if self.library == "sklearn" and isinstance(value, str):
            pairs = 2 if value == "pairwise" else 1
            return [set(group) for group in combinations(range(self.n), min(pairs, self.n))]
        return [{self.place(column) for column in group} for group in self.read(value)]

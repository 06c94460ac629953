"""A generator of votes between models, as on a site where people compare two answers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils import Bunch, check_random_state

from sklearn_rankcal.utils._parameters import check_count, check_number

_START = np.datetime64("2026-01-01T00:00:00")
_DAYS = 90
_LENGTH = 300.0  # words of a typical answer
_COLUMNS = (
    "model_a", "model_b", "winner", "judge", "category", "length_a", "length_b", "time",
)  # fmt: skip


def make_arena(
    n_votes: int = 5000,
    *,
    n_models: int = 10,
    n_judges: int = 50,
    n_categories: int = 4,
    category_spread: float = 0.3,
    taste: float = 0.0,
    drift: float = 0.0,
    position: float = 0.2,
    length: float = 0.4,
    ties: float = 0.3,
    random_state: Any = None,
) -> Bunch:
    """Generate votes between models with known strengths.

    In each vote, a judge compares the answers of two different models to a question from one
    category. The strengths of the models depend on the category, the time and the judge. The *lead*
    of the first model is the difference of the strengths, plus `position`, plus `length` times the
    logarithm of the ratio of the lengths. Let e be logistic noise. The vote is a tie if lead + e is
    between -`ties` and `ties`. Otherwise, the first model wins if lead + e > 0. This is the model
    of Rao and Kupper (1967).

    Parameters
    ----------
    n_votes : int, default=5000
        Number of votes.
    n_models : int, default=10
        Number of models, at least 2.
    n_judges : int, default=50
        Number of judges.
    n_categories : int, default=4
        Number of categories. The number of votes in the k-th category is proportional to 1 / k.
    category_spread : float, default=0.3
        Standard deviation, over categories, of the difference between the strength of a model in a
        category and its overall strength.
    taste : float, default=0
        Standard deviation, over judges, of the difference between the strength of a model for a
        judge and its overall strength. Above 0, the votes of a judge are dependent, and leads
        averaged over judges are closer to 0.
    drift : float, default=0
        Standard deviation of the change in strength of a model from the first to the last day.
    position : float, default=0.2
        Advantage of the first answer.
    length : float, default=0.4
        Advantage of an answer that is e times as long. Each model has its own typical length.
    ties : float, default=0.3
        Largest absolute noisy lead of a tie. With 0, there are no ties.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers.

    Returns
    -------
    data : Bunch
        Dictionary-like object, with the following attributes.

        - ``model_a``, ``model_b``, of shape (n_votes,): the names of the first and second model.
        - ``winner``, of shape (n_votes,): ``"model_a"``, ``"model_b"`` or ``"tie"``.
        - ``judge``, ``category``, ``time``, of shape (n_votes,): the number of the judge, the name
          of the category, and an ascending NumPy time stamp within 90 days.
        - ``length_a``, ``length_b``, of shape (n_votes,): the lengths of the answers in words.
        - ``frame``: a pandas data frame with these columns, or None if pandas is not installed.
        - ``log_length``, of shape (n_votes, 1): log(length_a / length_b), a covariate for
          `Judgements.from_votes`.
        - ``models``, of shape (n_models,): the names of the models.
        - ``categories``, of shape (n_categories,): the names of the categories.
        - ``scores``, of shape (n_models,): the overall strengths, with sum 0.
        - ``category_scores``, of shape (n_categories, n_models): the strengths in each category in
          the middle of the 90 days. Each row has sum 0.
        - ``trends``, of shape (n_models,): the change of each strength in 90 days, with sum 0.
        - ``probabilities``, of shape (n_votes, 3): the probabilities of the outcomes
          ``"model_a"``, ``"model_b"`` and ``"tie"``.

    Raises
    ------
    ValueError
        If a number is out of range.

    References
    ----------
    Rao and Kupper (1967), Ties in paired-comparison experiments, JASA 62, equation (2.6).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal import Judgements, aggregate
    >>> from sklearn_rankcal.datasets import make_arena
    >>> data = make_arena(20000, category_spread=0, random_state=0)
    >>> votes = Judgements.from_votes(
    ...     data.model_a, data.model_b, data.winner, position=True, covariates=data.log_length
    ... )
    >>> board = aggregate(votes)
    >>> found = dict(zip(board.items.tolist(), board.scores.tolist()))
    >>> errors = [found[name] - score for name, score in zip(data.models, data.scores)]
    >>> bool(np.abs(errors).max() < 0.2)  # ties count as half a vote, which shrinks the scores
    True
    """
    check_count(n_votes, "n_votes")
    check_count(n_models, "n_models", least=2)
    check_count(n_judges, "n_judges")
    check_count(n_categories, "n_categories")
    check_number(category_spread, "category_spread", "[0, inf)")
    check_number(taste, "taste", "[0, inf)")
    check_number(drift, "drift", "[0, inf)")
    check_number(position, "position", "(-inf, inf)")
    check_number(length, "length", "(-inf, inf)")
    check_number(ties, "ties", "[0, inf)")
    random = check_random_state(random_state)

    # Step 1: sample the true strengths.
    scores = _centred(random.normal(size=n_models))
    in_category = category_spread * random.normal(size=(n_categories, n_models))
    category_scores = _centred(scores + in_category)
    trends = _centred(drift * random.normal(size=n_models))
    tastes = taste * random.normal(size=(n_judges, n_models))
    typical = np.log(_LENGTH) + 0.3 * random.normal(size=n_models)

    # Step 2: sample models, judges, categories and times. The second model is one of the remaining
    # n_models - 1: numbers >= first are shifted by 1.
    first = random.randint(n_models, size=n_votes)
    second = random.randint(n_models - 1, size=n_votes)
    second += second >= first
    judge = random.randint(n_judges, size=n_votes)
    share = 1.0 / np.arange(1, n_categories + 1)
    category = random.choice(n_categories, size=n_votes, p=share / share.sum())
    day = np.sort(random.uniform(size=n_votes))
    time = _START + (day * _DAYS * 86400).astype("timedelta64[s]")
    words = np.exp(typical[[first, second]] + 0.5 * random.normal(size=(2, n_votes)))
    words = np.maximum(np.rint(words), 1.0)
    log_length = np.log(words[0] / words[1])

    # Step 3: sample the votes.
    strength = category_scores[category, [first, second]] + tastes[judge, [first, second]]
    strength += trends[[first, second]] * (day - 0.5)
    lead = strength[0] - strength[1] + position + length * log_length
    probabilities = np.array([expit(lead - ties), expit(-lead - ties), np.zeros(n_votes)])
    probabilities[2] = np.maximum(1.0 - probabilities.sum(axis=0), 0.0)
    noisy = lead + random.logistic(size=n_votes)
    outcome = np.select([np.abs(noisy) < ties, noisy > 0], ["tie", "model_a"], "model_b")

    models = np.array([f"m{k:0{len(str(n_models - 1))}d}" for k in range(n_models)])
    categories = np.array([f"c{k:0{len(str(n_categories - 1))}d}" for k in range(n_categories)])
    columns = (
        models[first], models[second], outcome, judge, categories[category],
        words[0].astype(np.int64), words[1].astype(np.int64), time,
    )  # fmt: skip
    votes = dict(zip(_COLUMNS, columns, strict=True))
    return Bunch(
        **votes,
        frame=_frame(votes),
        log_length=log_length[:, None],
        models=models,
        categories=categories,
        scores=scores,
        category_scores=category_scores,
        trends=trends,
        probabilities=probabilities.T,
        DESCR="Votes between models; see make_arena.",
    )


def _centred(values: Any) -> Any:
    return values - values.mean(axis=-1, keepdims=True)


def _frame(votes: dict[str, Any]) -> Any:
    """Return a pandas data frame, or None if pandas is not installed."""
    try:
        import pandas as pd
    except ImportError:
        return None
    return pd.DataFrame(votes)

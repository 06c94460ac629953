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
    """Generate votes between models whose strengths are known.

    In each vote, a judge reads the answers of two different models to a question of a category. The
    judge prefers the first answer by the *lead*: the difference of the strengths of the two models
    in this category, at this time and for this judge, plus `position`, plus `length` times the
    logarithm of the ratio of the lengths. With logistic noise e, the vote is a tie if \\|lead + e|
    < `ties`, and else for the first model if lead + e > 0: the model of Rao and Kupper (1967).

    Parameters
    ----------
    n_votes : int, default=5000
        Number of votes.
    n_models, n_judges, n_categories : int, default=10, 50 and 4
        Numbers of models, at least 2, of judges and of categories. The k-th category has votes in
        proportion to 1 / k.
    category_spread : float, default=0.3
        Standard deviation of the normal difference between the strength of a model in a category
        and its strength overall.
    taste : float, default=0
        Standard deviation of the normal difference between what a judge thinks of a model and its
        strength. Above 0, the votes of a judge depend on each other, and leads that are averaged
        over judges are closer to 0.
    drift : float, default=0
        Standard deviation of the change of the strength of a model from the first to the last day.
    position : float, default=0.2
        Advantage of the answer that is shown first.
    length : float, default=0.4
        Advantage of an answer that is e times as long. Each model has its own typical length.
    ties : float, default=0.3
        With 0, there are no ties.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers.

    Returns
    -------
    data : Bunch
        A dictionary-like object with these entries, the first of them of shape (n_votes,):

        - ``model_a``, ``model_b``, ``winner``: the names of the first and the second model, and
          ``"model_a"``, ``"model_b"`` or ``"tie"``.
        - ``judge``, ``category``, ``time``: a number, a name, and a time stamp of numpy within 90
          days, ascending.
        - ``length_a``, ``length_b``: the lengths of the answers in words.
        - ``frame``: a pandas data frame with these columns, or None if pandas is not installed.
        - ``log_length``, of shape (n_votes, 1): log(length_a / length_b), a covariate for
          `Judgements.from_votes`.
        - ``models``, ``categories``: the names, of shape (n_models,) and (n_categories,).
        - ``scores``, of shape (n_models,): the strengths overall, with the sum 0.
        - ``category_scores``, of shape (n_categories, n_models): the strengths in each category at
          the middle of the time, each row with the sum 0.
        - ``trends``, of shape (n_models,): by how much the strengths change, with the sum 0.
        - ``probabilities``, of shape (n_votes, 3): of a win of the first model, of the second one
          and of a tie.

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
    >>> bool(np.abs(errors).max() < 0.2)  # ties are half a vote, which shrinks the scores
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

    # Step 1: the truth.
    scores = _centred(random.normal(size=n_models))
    in_category = category_spread * random.normal(size=(n_categories, n_models))
    category_scores = _centred(scores + in_category)
    trends = _centred(drift * random.normal(size=n_models))
    tastes = taste * random.normal(size=(n_judges, n_models))
    typical = np.log(_LENGTH) + 0.3 * random.normal(size=n_models)

    # Step 2: who is compared, by whom, in what and when. The second model is drawn among the other
    # ones: numbers from the first on stand for the next model.
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

    # Step 3: the votes.
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

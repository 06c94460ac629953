"""Shares of judges in the information of items and effects, and errors that allow for few judges.

The share of a judge is the fraction of the information of an item that comes from this judge.
Robust errors use the correction of Bell and McCaffrey (2002), as if the score were a mean over
judges. Residuals are divided by 1 minus the share. Quantiles are from Student's t distribution with
the degrees of freedom of the shares. Without the correction, a judge with all votes on an item
would seem to have no error, because the residuals of an item add up to 0 at the fit. If a single
judge has 99 % or more, there is no robust error.

Reference: Bell and McCaffrey (2002), Bias reduction in standard errors for linear regression with
multi-stage samples, Survey Methodology 28.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack

from sklearn_rankcal.aggregation._contest_model import ContestFit
from sklearn_rankcal.aggregation._exact_ends import item_information
from sklearn_rankcal.utils._numbers import add_up
from sklearn_rankcal.utils._typing import Floats, Ints

#: A judge with a larger share of the information counts as the only judge.
_ALL = 0.99


class JudgeShares(NamedTuple):
    """The share of each judge in the information of each item and each effect."""

    items: csr_array  # (n_judges, n_items)
    effects: Floats  # (n_judges, n_parameters - n_items)
    own: Floats  # as `effects`, with each effect as the only parameter
    spread: Floats  # the variance that differences between judges add to each effect

    def degrees(self) -> tuple[Floats, Floats]:
        """Return the degrees of freedom of items and of effects; 0 for a single judge."""
        fitted, own = (judge_degrees(csr_array(one)) for one in (self.effects, self.own))
        return judge_degrees(self.items), np.minimum(fitted, own)

    def numbers(self) -> tuple[Floats, Floats]:
        """Return the effective number of judges of items and effects."""
        found = []
        for shares in (self.items, csr_array(self.effects), csr_array(self.own)):
            squares = np.asarray(shares.multiply(shares).sum(axis=0)).ravel()
            found.append(np.divide(1.0, squares, np.zeros(len(squares)), where=squares > 0))
        return found[0], np.minimum(found[1], found[2])


def judge_shares(fit: ContestFit, judge: Ints, inverse: Floats) -> JudgeShares:
    """Compute the shares of judges, numbered from 0, for votes that are not merged.

    The information of an item comes from its own votes. The information of an effect is conditional
    on scores and other effects, where `inverse` is the model-based covariance. Because votes with a
    constant covariate then also have a share in its effect, through the scores, the shares of the
    effect as the only parameter count as well.
    """
    n, votes, n_judges = fit.n_items, fit.votes, int(judge.max()) + 1
    lead2, information = item_information(fit)
    ends = np.tile(judge, 2), np.append(votes.first, votes.second)
    items = csr_array((np.tile(lead2, 2), ends), shape=(n_judges, n))
    items.sum_duplicates()  # early versions of SciPy keep them
    known = np.divide(1.0, information, np.zeros(n), where=information > 0)
    n_effects = len(fit.weights) - n
    effects, alone = np.empty((2, n_judges, n_effects))
    for k in range(n_effects):
        if fit.has_tie and k == n_effects - 1:  # every vote has the same information about ties
            of_vote = own = votes.total
        else:
            own = lead2 * votes.X[:, k] ** 2
            of_vote = lead2 * votes.leads(inverse[:, n + k], n) ** 2
        effects[:, k] = np.bincount(judge, of_vote, n_judges)
        alone[:, k] = np.bincount(judge, own, n_judges)
    for one in (effects, alone):
        total = one.sum(axis=0)
        np.divide(one, total, one, where=total > 0)
    items.data *= known[items.indices]
    return JudgeShares(items, effects, alone, np.zeros(n_effects))


def pooled_variances(fit: ContestFit, shares: JudgeShares, robust: Floats, plain: Floats) -> Floats:
    """Return the variance of each item for the average correlation of the votes of a judge.

    If any two votes of a judge have the correlation r, for n votes by m judges in equal parts, the
    variance by the information is multiplied by 1 + (n / m - 1) r (Kish, 1965). `robust` and
    `plain` are the variances of the scores.
    """
    n, votes = fit.n_items, fit.votes
    number = add_up(votes.first, votes.total, n) + add_up(votes.second, votes.total, n)
    judges = shares.numbers()[0]
    each = np.divide(number, judges, np.ones(n), where=judges > 0) - 1
    some = (shares.degrees()[0] > 0) & (plain > 0)
    alike = float((robust[some] / plain[some] - 1).sum() / max(each[some].sum(), 1e-300))
    return plain * (1 + np.maximum(each, 0.0) * float(np.clip(alike, 0.0, 1.0)))


def judge_degrees(shares: csr_array) -> Floats:
    """Return Satterthwaite's degrees of freedom of means over judges with these shares, by column.

    A mean over judges with shares s and residuals e has the bias-reduced variance sum of s^2 e^2 /
    (1 - s), and 1 / sum of (s_g^2 if g = h, else s_g^2 s_h^2 / ((1 - s_g) (1 - s_h))) degrees of
    freedom: n - 1 for n equal shares.
    """
    square = shares.multiply(shares).tocsr()
    left = 1 - np.minimum(shares.tocsr().data, _ALL)
    over = square.copy()
    over.data = square.data / left
    sums = [np.asarray(one.sum(axis=0)).ravel() for one in (square, over, over.multiply(over))]
    degrees = 1 / np.maximum(sums[0] + sums[1] ** 2 - sums[2], 1e-300)
    top = np.asarray(shares.max(axis=0).toarray()).ravel()
    return np.where((top > _ALL) | (sums[0] == 0), 0.0, degrees)


def clustered_covariance(
    fit: ContestFit, judge: Ints, outcome: Ints, weight: Floats, bread: Floats
) -> tuple[Floats, JudgeShares]:
    """Return the covariance of the parameters clustered by judge, and the shares of the judges.

    `outcome` and `weight` refer to votes that are not merged, and `bread` is the model-based
    covariance. The sums of the scores of a judge are divided by the root of 1 minus the judge's
    share, unless this is 0: with a single judge, there is no robust error.
    """
    shares = judge_shares(fit, judge, bread)
    votes, slopes, at = fit.votes, fit.slopes(), np.arange(len(outcome))
    lead = weight * slopes.lead[outcome, at]
    n = shares.items.shape[0]
    ends = np.tile(judge, 2), np.append(votes.first, votes.second)
    # the same judges and items as in the shares, in the same order
    items = csr_array((np.append(lead, -lead), ends), shape=shares.items.shape)
    items.sum_duplicates()
    items.data /= np.sqrt(_left(shares.items.data))
    effects = [np.bincount(judge, lead * x, n) for x in votes.X.T]
    if fit.has_tie:
        effects.append(np.bincount(judge, weight * slopes.tie[outcome, at], n))
    scaled = np.array(effects).reshape(len(effects), n).T / np.sqrt(_left(shares.effects))
    scores = hstack([items, csr_array(scaled)], format="csr")
    meat = csr_array(scores.T @ scores)
    pull = fit.ridge * fit.weights  # the sum of the scores of all judges
    if pull.any():
        meat = csr_array(meat - np.outer(pull, pull) / n)
    spread = _spread(fit, judge, lead, shares, bread)
    return sandwich(bread, meat), shares._replace(spread=spread)


def _spread(
    fit: ContestFit, judge: Ints, lead: Floats, shares: JudgeShares, inverse: Floats
) -> Floats:
    """Return the variance that differences between judges add to each effect.

    If the effects of judges have the variance t^2, it adds t^2 sum of s^2 to an effect with shares
    s of the judges. The variance t^2 is estimated as in DerSimonian and Laird (1986), Controlled
    Clinical Trials 7, from the effect of each judge by one Newton step. `lead` has the scores of
    the votes.
    """
    n, votes = fit.n_items, fit.votes
    found = np.zeros(shares.effects.shape[1])
    for k in range(votes.X.shape[1]):
        s, variance = shares.effects[:, k], float(inverse[n + k, n + k])
        some = s > 0
        steps = np.bincount(judge, lead * votes.leads(inverse[:, n + k], n), len(s))[some]
        total = float((steps**2 / (s[some] * variance)).sum())
        left = 1 - float((s**2).sum())
        if left > 0:
            found[k] = max(0.0, (total - (some.sum() - 1)) * variance / left) * float((s**2).sum())
    return found


def sandwich(bread: Floats, meat: csr_array) -> Floats:
    """Return the product with the inverse information on both sides."""
    sparse = meat.nnz < 0.1 * bread.size  # for example with many items and few comparisons
    return np.asarray(bread @ ((meat if sparse else meat.toarray()) @ bread))


def _left(shares: Floats) -> Floats:
    """Return 1 minus the share of a judge; 1 for a single judge."""
    return np.where(shares > _ALL, 1.0, 1 - shares)

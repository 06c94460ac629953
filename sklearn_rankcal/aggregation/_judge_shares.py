"""Which share of an item or an effect each judge carries, and errors that allow for few judges.

Robust errors of an item are divided by 1 minus the share of its information that each judge
carries, and have Student's quantiles with the degrees of freedom of these shares (Bell and
McCaffrey, 2002), as if its score were a mean over judges. At the fit the residuals of an item add
up to 0, and without this a judge who cast all its votes would seem to be without error. What a
single judge carries, or 99 % of it, has no robust error.

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

#: A judge who carries more of the information of an item or an effect is as good as the only one.
_ALL = 0.99


class JudgeShares(NamedTuple):
    """Which share of the information of each item, and of each effect, each judge carries."""

    items: csr_array  # (n_judges, n_items)
    effects: Floats  # (n_judges, n_parameters - n_items)
    own: Floats  # as `effects`, where each effect is the only parameter
    spread: Floats  # what differences between judges add to the variance of each effect

    def degrees(self) -> tuple[Floats, Floats]:
        """Return the degrees of freedom of items and of effects; 0 where one judge carries all."""
        fitted, own = (judge_degrees(csr_array(one)) for one in (self.effects, self.own))
        return judge_degrees(self.items), np.minimum(fitted, own)

    def numbers(self) -> tuple[Floats, Floats]:
        """Return how many judges with equal shares would carry items and effects as well."""
        found = []
        for shares in (self.items, csr_array(self.effects), csr_array(self.own)):
            squares = np.asarray(shares.multiply(shares).sum(axis=0)).ravel()
            found.append(np.divide(1.0, squares, np.zeros(len(squares)), where=squares > 0))
        return found[0], np.minimum(found[1], found[2])


def judge_shares(fit: ContestFit, judge: Ints, inverse: Floats) -> JudgeShares:
    """Compute the shares of judges, numbered from 0, of votes that are not merged.

    Of an item, the information is that of its own votes. Of an effect, it is what its votes say
    after scores and other effects are fitted: `inverse` is the covariance by the information. Then
    votes that do not vary a covariate seem to say something of its effect, by the scores, so that
    the shares of the effect alone count as well.
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
        if fit.has_tie and k == n_effects - 1:  # every vote says as much about ties
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
    """Return the variance of each item if votes of a judge are as alike as in the mean of items.

    If any two of n votes by m judges in equal parts have the correlation r, the variance by the
    information is multiplied by 1 + (n / m - 1) r (Kish, 1965). `robust` and `plain` are variances
    of the scores.
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

    A mean over judges with the shares s has the bias-reduced variance sum of s^2 e^2 / (1 - s),
    where e are their residuals, and 1 / sum of (s_g^2 if g = h, else s_g^2 s_h^2 / ((1 - s_g) (1 -
    s_h))) degrees of freedom: n - 1 for n equal shares.
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
    """Return the covariance of the parameters that is robust to judges, and the shares of these.

    `outcome` and `weight` are those of the votes, which are not merged, and `bread` is the
    covariance by the information. The sums of the scores of a judge are divided by the root of 1
    minus the judge's share, except where that is all: what one judge carries alone has no robust
    error.
    """
    shares = judge_shares(fit, judge, bread)
    votes, slopes, at = fit.votes, fit.slopes(), np.arange(len(outcome))
    lead = weight * slopes.lead[outcome, at]
    n = shares.items.shape[0]
    ends = np.tile(judge, 2), np.append(votes.first, votes.second)
    # the same judges and items as those of the shares, in the same order
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
    """Return what differences between judges add to the variance of each effect.

    If judges have effects with the variance t^2, an effect to which they contribute with the shares
    s has t^2 sum of s^2 more. The estimate of t^2 is that of DerSimonian and Laird (1986),
    Controlled Clinical Trials 7, from the effect of each judge by one Newton step. `lead` are the
    scores of the votes.
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
    sparse = meat.nnz < 0.1 * bread.size  # as with many items, of which few were compared
    return np.asarray(bread @ ((meat if sparse else meat.toarray()) @ bread))


def _left(shares: Floats) -> Floats:
    """Return 1 minus the share of a judge; 1 for the only one."""
    return np.where(shares > _ALL, 1.0, 1 - shares)

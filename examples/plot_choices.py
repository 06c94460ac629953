"""
Find the price of a new alternative from choices
================================================

People chose among offers with different prices. Conditional logit (`LinearRanker` with the
surrogate ``"softmax"`` and ``alpha=0``) tells what share a new offer would take at each price, and
which price brings the most. The page :ref:`choices` explains each step.
"""

# %%
# Simulate the choices
# --------------------
#
# 300 people planned four trips each. They chose the bus, the train or no trip. The table has one
# row for each choice and alternative, with prices in euros and travel times in hours.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_rankcal import LinearRanker

rng = np.random.default_rng(0)
n_people, n_trips = 300, 4
n_cases = n_people * n_trips
modes = ["bus", "train", "none"]
long = pd.DataFrame({"case": np.repeat(np.arange(n_cases), 3), "mode": modes * n_cases})
long["person"] = long["case"] // n_trips
long["price"] = np.where(long["mode"] == "none", 0, rng.uniform(2, 10, len(long)).round(1))
long["hours"] = np.where(long["mode"] == "none", 0, rng.uniform(0.5, 3, len(long)).round(1))
taste = rng.normal([0, 0.6, -3.5], 0.8, size=(n_people, 3))
utility = np.repeat(taste, n_trips, axis=0).ravel() - 0.3 * long["price"] - 1.2 * long["hours"]
utility += rng.gumbel(size=len(long))
long["chosen"] = (utility == utility.groupby(long["case"]).transform("max")).astype(int)
print(long.head(3))

# %%
# Fit conditional logit
# ---------------------
#
# Train and "none" have a constant each, and the bus is the base. With ``clusters=``, the standard
# errors allow for the choices of one person being alike.


def make_columns(long):
    constants = {mode: (long["mode"] == mode).astype(float) for mode in ("train", "none")}
    return long[["price", "hours"]].assign(**constants)


logit = LinearRanker("softmax", alpha=0).fit(
    make_columns(long), long["chosen"], groups=long["case"], clusters=long["person"]
)
print(logit.summary())

# %%
# Vary the price of an express bus
# --------------------------------
#
# An express bus would take one hour, and have the constant of the bus. For each price, its row is
# added to each choice. The bands come from 1,000 draws of coefficients from their covariance.

draws = rng.multivariate_normal(logit.coef_, logit.covariance_, size=1000)
coefs = np.vstack([logit.coef_, draws])  # the estimate first
odds = np.exp(make_columns(long).to_numpy() @ coefs.T)
others = odds.reshape(n_cases, 3, len(coefs)).sum(axis=1)  # of the alternatives of each choice
prices = np.linspace(2, 10, 33)  # as in the survey: the model is not tested beyond
express = np.exp([np.array([price, 1, 0, 0]) @ coefs.T for price in prices])
share = np.array([(one / (one + others)).mean(axis=0) for one in express])
revenue = 100 * share * prices[:, None]  # of 100 trips

figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for ax, curves in zip(axes, (100 * share, revenue), strict=True):
    ax.plot(prices, curves[:, 0])
    ax.fill_between(prices, *np.quantile(curves[:, 1:], [0.025, 0.975], axis=1), alpha=0.3)
    ax.set(xlabel="price of the express, in euros", ylim=0)
axes[0].set_ylabel("share, in per cent")
axes[1].set_ylabel("revenue of 100 trips, in euros")
plt.show()

# %%
best = prices[revenue.argmax(axis=0)]
low, high = np.quantile(best[1:], [0.025, 0.975], method="nearest")
print(f"The best price is {best[0]:.2f} euros (95 % interval {low:.2f} to {high:.2f}).")
print(f"At this price, the express takes {share[revenue[:, 0].argmax(), 0]:.0%} of the trips.")

# %%
# The bands hold if the model does: in each choice, the express takes the same part from every
# alternative. The page :ref:`choices` tests this assumption.

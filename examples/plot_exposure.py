"""
Share exposure between groups
=============================

A marketplace ranks offers by relevance. New sellers are slightly behind, so a ranking by score
hides them all below the fold, although the scores hardly differ. How much relevance does it cost to
give them their share of attention? Here, the first steps are almost free. `exposure_policy`
randomises the ranking: each visitor sees one of several rankings, and on average over visitors the
new sellers get the exposure that they were promised.
"""


# %%
# Simulate the offers
# -------------------

import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(0)
n_searches, n_offers = 50, 20
search = np.repeat(np.arange(n_searches), n_offers)
new_seller = rng.random(len(search)) < 0.3
quality = rng.normal(size=len(search)) - 0.7 * new_seller
y = np.digitize(quality + rng.normal(size=len(search)), [0.5, 1.2, 2.0])
X = np.column_stack([quality + 0.5 * rng.normal(size=len(search)), rng.normal(size=len(search))])

# %%
# Train a ranker
# --------------
#
# A `CalibratedRanker` estimates the expected gain of each offer. `exposure_policy` needs these
# estimates.

from sklearn.linear_model import Ridge

from sklearn_rankcal import CalibratedRanker

ranker = CalibratedRanker(Ridge(), loss="dcg").fit(X, y, groups=search)
scores = ranker.decision_function(X, groups=search)

# %%
# Find the policy for each ratio
# ------------------------------
#
# The exposure of an offer is the discount of its place: 1 at the top, less below. ``ratio=1`` gives
# both groups the same mean exposure. ``ratio=0`` asks for nothing and keeps the ranking by score.

from sklearn_rankcal.decoders import exposure_policy

ratios = [0, 0.7, 0.8, 0.9, 0.95, 1]
shared, price = [], []
for ratio in ratios:
    policy = exposure_policy(scores, search, of=new_seller, ratio=ratio)
    shared.append([policy.exposure[new_seller].mean(), policy.exposure[~new_seller].mean()])
    price.append(policy.price.mean())
    print(f"ratio {ratio:4}: mean exposure of new sellers {shared[-1][0]:.3f}, of other sellers "
          f"{shared[-1][1]:.3f}; DCG lost {price[-1]:.3f}")  # fmt: skip

# %%
# Plot the cost of exposure
# -------------------------
#
# The left plot shows how much expected DCG a search loses, and the right plot shows the exposure of
# both groups. The first steps cost little, because offers with almost equal scores swap places
# first.

figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
left.plot(np.array(shared)[:, 0], price, marker="o")
left.set(xlabel="mean exposure of new sellers", ylabel="expected DCG lost per search")
right.plot(ratios, np.array(shared), marker="o", label=["new sellers", "other sellers"])
right.set(xlabel="ratio", ylabel="mean exposure")
right.legend()
plt.show()

# %%
# Choose a ranking for each visitor
# ---------------------------------
#
# A policy has a few rankings for each search, with probabilities. `draw` picks one at random. With
# a key, the choice for a search stays the same as long as the key does, for example all day.

print(f"search 0: {len(policy.rankings[0])} rankings, with probabilities "
      f"{policy.probabilities[0].round(2)}")  # fmt: skip
today = policy.draw(key="2026-11-23")
print("the same all day:", (policy.draw(key="2026-11-23") == today).all())
print("searches with a different ranking tomorrow:",
      len(np.unique(search[policy.draw(key="2026-11-24") != today])))  # fmt: skip

"""
Sharing exposure between groups
===============================

A market ranks offers by relevance. New sellers are a little behind, and a ranking by score hides
them all below the fold, although the scores hardly differ. A randomised ranking can share the
attention: each visitor sees a drawn ranking, and over all visitors the new sellers get the exposure
that they are promised. This example draws what that costs.
"""

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
# A `CalibratedRanker` estimates the expected gain of each offer, which is what `exposure_policy`
# needs.

from sklearn.linear_model import Ridge

from sklearn_rankcal import CalibratedRanker

ranker = CalibratedRanker(Ridge(), loss="dcg").fit(X, y, groups=search)
scores = ranker.decision_function(X, groups=search)

# %%
# The exposure of an offer is the discount of its place, 1 at the top. ``ratio=1`` gives both groups
# the same mean exposure, and 0 asks for nothing, so that the ranking by score remains.

from sklearn_rankcal.decoders import exposure_policy

ratios = [0, 0.7, 0.8, 0.9, 0.95, 1]
shared, price = [], []
for ratio in ratios:
    policy = exposure_policy(scores, search, of=new_seller, ratio=ratio)
    shared.append([policy.exposure[new_seller].mean(), policy.exposure[~new_seller].mean()])
    price.append(policy.price.mean())
    print(f"ratio {ratio:4}: exposure of new sellers {shared[-1][0]:.3f}, of others "
          f"{shared[-1][1]:.3f}; a search loses {price[-1]:.3f} of DCG")  # fmt: skip

# %%
# The curve shows what a search loses of the expected DCG, and the exposure of both groups. The
# first steps cost little, because offers with nearly equal scores change places first.

figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
left.plot(np.array(shared)[:, 0], price, marker="o")
left.set(xlabel="mean exposure of new sellers", ylabel="expected DCG that a search loses")
right.plot(ratios, np.array(shared), marker="o", label=["new sellers", "others"])
right.set(xlabel="ratio", ylabel="mean exposure")
right.legend()
plt.show()

# %%
# A policy has few rankings for each search, and `draw` chooses one by its probability. With a key,
# the draw is the same for the same search as long as the key is, for example all day.

print(f"search 0: {len(policy.rankings[0])} rankings, of probabilities "
      f"{policy.probabilities[0].round(2)}")  # fmt: skip
today = policy.draw(key="2026-11-23")
print("the same all day:", (policy.draw(key="2026-11-23") == today).all())
print("searches with another ranking tomorrow:",
      len(np.unique(search[policy.draw(key="2026-11-24") != today])))  # fmt: skip

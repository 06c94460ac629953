"""
Add business rules to a ranker
==============================

A ranker orders the products of a search by relevance, but the shop has rules. The sponsored product
should be at place 4. The first ten should contain at most two products of a brand and at least
three from new sellers. Products that are sold out should not appear. How do you add the rules
without training again, and what does each rule cost? Pass `Rules` to `predict`. It returns the
ranking with the best expected NDCG that keeps the rules, and does not merely repair the ranking
without rules. `rules_report` lists the cost of each rule.
"""


# %%
# Simulate the products
# ---------------------
#
# There are 200 searches with 40 products each.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.patches import Patch

rng = np.random.default_rng(0)
n_searches, n_products = 200, 40
search = np.repeat(np.arange(n_searches), n_products)
n = len(search)
brand = rng.choice(["Alto", "Brio", "Cora", "Dune", "Elan", "Fjord"], n,
                   p=[0.35, 0.25, 0.15, 0.1, 0.1, 0.05])  # fmt: skip
new_seller = rng.random(n) < 0.2
match, rating = rng.normal(size=n), rng.normal(size=n) - 0.6 * new_seller
popular = rng.normal(size=n) + 0.8 * (brand == "Alto")
bought = match + 0.5 * rating + 0.5 * popular + rng.normal(size=n)
y = np.digitize(bought, np.quantile(bought, [0.7, 0.9, 0.97]))
X = pd.DataFrame({"match": match, "rating": rating, "popular": popular})

# %%
# Train the ranker
# ----------------
#
# The ranker is trained as usual and does not know the rules.

from sklearn.linear_model import Ridge

from sklearn_rankcal import CalibratedRanker

train, test = search < 100, search >= 100
ranker = CalibratedRanker(Ridge(), loss="ndcg@10").fit(X[train], y[train], groups=search[train])

# %%
# Rank with rules
# ---------------
#
# Rules refer to columns of the product table, or to arrays with one value per row. Columns that
# only the rules use do not reach the regressor. Other rules can be passed to the same ranker at any
# time.

from sklearn_rankcal.decoders import Quota, Rules

page = X[test].assign(
    brand=brand[test],
    new_seller=new_seller[test],
    sold_out=rng.random(test.sum()) < 0.05,
    sponsored_at=np.where(np.arange(test.sum()) % n_products == 7, 4, 0),
)
rules = Rules(
    place="sponsored_at",
    blocked="sold_out",
    quotas=[Quota("brand", first=10, at_most=2), Quota("new_seller", first=10, at_least=3)],
    soft=1.0,  # for searches that found too few brands or new sellers
)
before = ranker.predict(X[test], groups=search[test], rules=Rules(blocked=page.sold_out))
after = ranker.predict(page, groups=search[test], rules=rules)

# %%
# Compare both rankings
# ---------------------
#
# The figure shows the first ten places of three searches, with and without rules. Colours are
# brands, dots mark products from new sellers, and the star marks the sponsored product.

colors = dict(zip(sorted(set(brand)), plt.colormaps["tab10"].colors, strict=False))
figure, axes = plt.subplots(3, 1, figsize=(6, 4.6), sharex=True, layout="constrained")
for ax, one in zip(axes, (100, 101, 102), strict=True):
    for line, ranks in enumerate((after, before)):
        for i in np.flatnonzero((search[test] == one) & (ranks <= 10)):
            x = ranks[i]
            color = colors[page.brand.iloc[i]]
            ax.add_patch(plt.Rectangle((x - 0.45, line - 0.4), 0.9, 0.8, color=color))
            if page.new_seller.iloc[i]:
                ax.plot(x, line, "o", color="white", markersize=5)
            if page.sponsored_at.iloc[i]:
                ax.plot(x, line, "*", color="white", markersize=12)
    ax.set(xlim=(0.4, 10.6), ylim=(-0.5, 1.5), yticks=[0, 1], yticklabels=["with rules", "without"])
    ax.set_ylabel(f"search {one}")
axes[-1].set(xticks=range(1, 11), xlabel="place")
handles = [Patch(color=color, label=name) for name, color in colors.items()]
figure.legend(handles=handles, ncols=6, loc="outside upper center", frameon=False)
plt.show()

# %%
# Price the rules
# ---------------
#
# `rules_report` returns the expected NDCG@10 that each search loses to all rules together, and to
# each rule: how much better the ranking would be without this rule. If a search has too few brands
# to keep a rule, the rule is bent as little as possible, and `broken` says so.

report = pd.DataFrame(ranker.rules_report(page, groups=search[test], rules=rules))
kept = report[report.broken.str.len() == 0]
print(f"rules bent in {len(report) - len(kept)} of {len(report)} searches")
for texts in report.broken[report.broken.str.len() > 0].head(2):
    print("  for example:", texts[0])
prices = kept.filter(like="price of").mean().sort_values()
prices.index = prices.index.str.removeprefix("price of ")
print(f"all rules together cost {kept.price.mean():.4f} of NDCG@10")
print(prices.round(4).to_string())

figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
names = {"place": "sponsored at 4", "blocked": "sold out"}
names |= {name: "at most 2 of a brand" for name in prices.index if "brand" in name}
names |= {name: "at least 3 from new sellers" for name in prices.index if "seller" in name}
ax.barh([names[name] for name in prices.index], prices)
ax.set_xlabel("expected NDCG@10 gained without the rule")
plt.show()

# %%
# Find contradictory rules
# ------------------------
#
# Without ``soft``, rules that contradict each other raise an error. It names as few of them as
# possible.

too_strict = Rules(blocked=page.sold_out, quotas=[Quota(page.brand, first=10, at_most=1)])
try:
    ranker.predict(X[test], groups=search[test], rules=too_strict)
except ValueError as error:
    print(type(error).__name__, "-", error)

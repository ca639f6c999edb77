#!/usr/bin/env python3
"""Compares two files of canonical rows as multisets: compare.py EXPECTED ACTUAL [--limit N]

Prints {"equal", "onlyExpected", "onlyActual", "differences"}: how many rows each side has that the
other lacks, and the first of them, those that are nearest to each other side by side.
Exit status: 0 equal, 1 different.
"""

import argparse
import collections
import json
import sys


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("expected")
    parser.add_argument("actual")
    parser.add_argument("--limit", type=int, default=10, help="differences to print")
    options = parser.parse_args()
    expected, actual = rows_of(options.expected), rows_of(options.actual)
    missing, extra = expected - actual, actual - expected
    lines = differences(sorted(missing.elements()), sorted(extra.elements()), options.limit)
    print(json.dumps({
        "equal": not missing and not extra,
        "onlyExpected": missing.total(), "onlyActual": extra.total(), "differences": lines,
    }, ensure_ascii=False))  # fmt: skip
    sys.exit(1 if missing or extra else 0)


def rows_of(path):
    with open(path, encoding="utf-8", newline="\n") as file:
        return collections.Counter(line.rstrip("\n") for line in file)


def differences(missing, extra, limit):
    """Cell differences of rows that pair up, whole rows where a side has none left."""
    lines = []
    extra = list(extra)
    for text in missing[:limit]:
        near = nearest(text, extra[:1000])
        if near is None:
            lines.append(f"- {short(text)}")
            continue
        extra.remove(near)
        lines.append(cell_differences(json.loads(text), json.loads(near)))
    return lines + [f"+ {short(text)}" for text in extra[: limit - len(lines)]]


def nearest(text, candidates):
    """The candidate that shares most cells with a row, None where none shares any."""
    row = json.loads(text)

    def shared(candidate):
        other = json.loads(candidate)
        return sum(1 for name, value in row.items() if name in other and other[name] == value)

    best = max(candidates, key=shared, default=None)
    return best if best is not None and shared(best) > 0 else None


def cell_differences(expected, actual):
    names = sorted(expected.keys() | actual.keys())
    same = {n: expected[n] for n in names if n in actual and n in expected and expected[n] == actual[n]}
    cells = [
        f"{n}: expected {short(json.dumps(expected.get(n)))}, got {short(json.dumps(actual.get(n)))}"
        for n in names
        if n not in same
    ]
    return f"{'; '.join(cells)} (row {short(json.dumps(same), 120)})"


def short(text, length=300):
    return text if len(text) <= length else text[:length] + "…"


if __name__ == "__main__":
    main()

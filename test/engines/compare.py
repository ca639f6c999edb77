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

PAIRED = 200  # rows of each side that are looked at for pairs


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
    """Cell differences of the rows that are most alike, then whole rows that one side has left."""
    missing, extra = missing[:PAIRED], extra[:PAIRED]
    left, right = [json.loads(t) for t in missing], [json.loads(t) for t in extra]
    alike = sorted(
        ((shared(a, b), i, j) for i, a in enumerate(left) for j, b in enumerate(right)),
        key=lambda pair: (-pair[0], pair[1], pair[2]),
    )
    lines, done_left, done_right = [], set(), set()
    for score, i, j in alike:
        if score and i not in done_left and j not in done_right:
            done_left.add(i)
            done_right.add(j)
            lines.append(cell_differences(left[i], right[j]))
    lines += [f"- {short(t)}" for i, t in enumerate(missing) if i not in done_left]
    lines += [f"+ {short(t)}" for j, t in enumerate(extra) if j not in done_right]
    return lines[:limit]


def shared(row, other):
    """How many cells two rows have in common."""
    return sum(1 for name, value in row.items() if name in other and other[name] == value)


def cell_differences(expected, actual):
    names = sorted(expected.keys() | actual.keys())
    same = {
        n: expected[n] for n in names if n in actual and n in expected and expected[n] == actual[n]
    }
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

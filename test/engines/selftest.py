#!/usr/bin/env python3
"""Writes tables with pyiceberg whose every value is written down here by hand, reads them back with
each engine of the fast set and compares with the hand-written canonical rows.

Usage: selftest.py [ENGINE ...]   (in the environment of the fast set)"""

import datetime as dt
import decimal
import json
import os
import subprocess
import sys
import tempfile

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

HERE = os.path.dirname(os.path.abspath(__file__))
D = decimal.Decimal
ODD = 'Dotted.Name with "quotes" and `ticks`'
INNER = pa.struct([("n", pa.int64()), ("at", pa.timestamp("us"))])
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        ("long", pa.int64()),
        ("Price", pa.decimal128(9, 2)),
        ("wide", pa.decimal128(38, 10)),
        ("single", pa.float32()),
        ("ratio", pa.float64()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("instant", pa.timestamp("us", "UTC")),
        ("bytes", pa.large_binary()),
        (ODD, pa.large_string()),
        ("tags", pa.list_(pa.large_string())),
        ("counts", pa.map_(pa.large_string(), pa.int64())),
        ("nested", INNER),
        ("deep", pa.list_(pa.list_(INNER))),
    ]
)


def micros(text):
    return dt.datetime.fromisoformat(text)


ROWS = [
    [1, 2**63 - 1, D("1234567.89"), D("9999999999999999999999999999.9999999999"), 0.1, 5e-324, True,
     dt.date(1969, 12, 31), micros("1969-12-31T23:59:59.999999"), micros("1969-12-31T23:59:59.999999+00:00"),
     b"\x00\xff\x80", "Zürich \u0000 \U0001f600 \\ \"", ["a", None, ""], [("b", 1), ("a", None)],
     {"n": 2**53 + 1, "at": micros("1900-01-01T00:00:00.000001")},
     [[{"n": 1, "at": None}], [], [None]]],
    [2, -(2**63), D("-0.01"), D("-0.0000000001"), float("nan"), float("-inf"), False,
     dt.date(2262, 4, 12), micros("2299-12-31T00:00:00.5"), micros("2200-01-01T00:00:00+00:00"),
     b"", "", [], [], {"n": None, "at": None}, []],
    [3, 2**53 - 1, D("0.00"), D("0"), -0.0, -0.0, None,
     dt.date(1970, 1, 1), micros("1970-01-01T00:00:00"), micros("2026-01-01T00:00:00+00:00"),
     b"\n", "null", ["x"], [("k", -1)], {"n": 0, "at": micros("1970-01-01T00:00:00")}, [[]]],
    [4, 2**53] + [None] * 14,
]  # fmt: skip

EXPECTED = [
    {"id": 1, "long": "9223372036854775807", "Price": "1234567.89",
     "wide": "9999999999999999999999999999.9999999999", "single": 0.10000000149011612, "ratio": 5e-324,
     "flag": True, "day": "1969-12-31", "at": "1969-12-31T23:59:59.999999",
     "instant": "1969-12-31T23:59:59.999999Z", "bytes": "0x00ff80", ODD: "Zürich \u0000 \U0001f600 \\ \"",
     "tags": ["a", None, ""], "counts": [["a", None], ["b", 1]],
     "nested": {"n": "9007199254740993", "at": "1900-01-01T00:00:00.000001"},
     "deep": [[{"n": 1, "at": None}], [], [None]]},
    {"id": 2, "long": "-9223372036854775808", "Price": "-0.01", "wide": "-0.0000000001",
     "single": "NaN", "ratio": "-Infinity", "flag": False, "day": "2262-04-12",
     "at": "2299-12-31T00:00:00.500000", "instant": "2200-01-01T00:00:00.000000Z", "bytes": "0x", ODD: "",
     "tags": [], "counts": [], "nested": {"n": None, "at": None}, "deep": []},
    {"id": 3, "long": 9007199254740991, "Price": "0.00", "wide": "0.0000000000", "single": "-0.0",
     "ratio": "-0.0", "flag": None, "day": "1970-01-01", "at": "1970-01-01T00:00:00.000000",
     "instant": "2026-01-01T00:00:00.000000Z", "bytes": "0x0a", ODD: "null", "tags": ["x"],
     "counts": [["k", -1]], "nested": {"n": 0, "at": "1970-01-01T00:00:00.000000"}, "deep": [[]]},
    {name: None for name in SCHEMA.names} | {"id": 4, "long": "9007199254740992"},
]  # fmt: skip


def loosened(row):
    """What a null nested value of EXPECTED is in the loose form."""
    empty = {"tags": [], "counts": [], "deep": [], "nested": {"n": None, "at": None}}
    row = {k: empty[k] if k in empty and v is None else v for k, v in row.items()}
    deep = [[e or empty["nested"] for e in inner] for inner in row["deep"]]
    return row | {"deep": deep}


def line(row):
    ordered = {k: row[k] for k in sorted(row)}
    return json.dumps(ordered, ensure_ascii=False, separators=(",", ":"))


def run(engine, table, *options):
    command = [
        sys.executable,
        os.path.join(HERE, "read_table.py"),
        "--engine",
        engine,
        "--table",
        table,
    ]
    done = subprocess.run([*command, *options], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{engine}: exit status {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def check(claim, got, wanted):
    if got != wanted:
        raise AssertionError(f"{claim}\n  got    {str(got)[:2000]}\n  wanted {str(wanted)[:2000]}")
    print(f"ok {claim}")


def read_lines(path):
    with open(path, encoding="utf-8", newline="\n") as file:
        return file.read().split("\n")[:-1]


def check_engine(engine, folder, table, first_snapshot):
    out = os.path.join(folder, f"{engine}.ndjson")
    loose = engine == "chdb"
    wanted = sorted(line(loosened(r) if loose else r) for r in EXPECTED)
    report = run(engine, table, "--rows", out, *(["--loose"] if loose else []))
    check(f"{engine} reads every value", read_lines(out), wanted)
    run(
        engine,
        table,
        "--rows",
        out,
        "--columns",
        json.dumps([ODD, "Price"]),
        "--where",
        '"Price" > 1',
    )
    check(
        f"{engine} selects and filters odd names",
        read_lines(out),
        [line({k: EXPECTED[0][k] for k in ("Price", ODD)})],
    )
    run(
        engine,
        table,
        "--rows",
        out,
        "--sql",
        'SELECT CAST(count(*) AS BIGINT) AS n, max("long") AS m FROM {t}',
    )
    check(f"{engine} computes", read_lines(out), ['{"m":"9223372036854775807","n":4}'])
    if engine != "datafusion":
        run(engine, table, "--rows", out, "--snapshot", str(first_snapshot), "--columns", "id")
        check(f"{engine} reads an older snapshot", read_lines(out), ['{"id":1}', '{"id":2}'])
    return report


def check_large(engine, folder, table):
    out = os.path.join(folder, f"{engine}-large.ndjson")
    run(engine, table, "--rows", out)
    sizes = [(len(json.loads(text)["b"]), len(json.loads(text)["s"])) for text in read_lines(out)]
    check(f"{engine} reads 64 MiB values", sizes, [(2 + 2 * 2**26, 2**26)])


def main():
    engines = sys.argv[1:] or ["pyiceberg", "duckdb", "chdb"]
    with tempfile.TemporaryDirectory() as folder:
        catalog = SqlCatalog(
            "selftest", uri="sqlite:///:memory:", warehouse=f"file://{folder}/lake"
        )
        catalog.create_namespace("d")
        table = catalog.create_table("d.every_type", schema=SCHEMA)
        data = pa.Table.from_pylist([dict(zip(SCHEMA.names, r)) for r in ROWS], schema=SCHEMA)
        table.append(data.slice(0, 2))
        first = table.current_snapshot().snapshot_id
        table.append(data.slice(2))
        reports = [check_engine(e, folder, table.metadata_location, first) for e in engines]
        check("the loose digests agree", len({r["looseDigest"] for r in reports}), 1)
        check(
            "the exact digests agree",
            len({r["digest"] for r in reports if r["engine"] != "chdb"}),
            1,
        )
        large = pa.schema([("b", pa.large_binary()), ("s", pa.large_string())])
        table = catalog.create_table("d.large", schema=large)
        table.append(pa.Table.from_pylist([{"b": b"\xfe" * 2**26, "s": "x" * 2**26}], schema=large))
        for engine in engines:
            check_large(engine, folder, table.metadata_location)
    print(f"{', '.join(engines)} agree")


if __name__ == "__main__":
    main()

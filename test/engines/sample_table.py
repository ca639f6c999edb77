#!/usr/bin/env python3
"""Writes one small table with pyiceberg and the same records as NDJSON, CSV, Parquet and Arrow:
sample_table.py FOLDER. CSV has no nested columns, so it has a table of its own. Prints
{"nested", "flat", "plain", "gap"}: the metadata.json of each. Of the last two the offsets are all
there, or not; plain.parquet holds their records, and others what differs from them in one way.

The values are made of Python objects for the table and spelled by hand for the text files."""

import datetime as dt
import decimal
import json
import os
import sys

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog

FLAT = [
    ("Id", pa.int64()),
    ("price.net", pa.decimal128(12, 3)),
    ("ratio", pa.float64()),
    ("flag", pa.bool_()),
    ("day", pa.date32()),
    ("at", pa.timestamp("us")),
    ("instant", pa.timestamp("us", "UTC")),
    ("text", pa.string()),
]
NESTED = [
    ("place", pa.struct([("lat", pa.float64()), ("names", pa.list_(pa.string()))])),
    ("counts", pa.map_(pa.string(), pa.int64())),
]
UTC = dt.timezone.utc
FLAT_ROWS = [
    (9007199254740993, decimal.Decimal("12.500"), 0.1, True, dt.date(1969, 7, 20),
     dt.datetime(1969, 7, 20, 20, 17, 40, 1), dt.datetime(1969, 7, 20, 18, 17, 40, tzinfo=UTC), 'a "b", c'),
    (-1, decimal.Decimal("-0.001"), -0.0, False, dt.date(2024, 2, 29),
     dt.datetime(2024, 2, 29, 0, 0), dt.datetime(2024, 2, 29, 23, 59, 59, 999999, tzinfo=UTC), "new\nline"),
    (1000, None, 1e300, None, None, None, None, None),
    (None, None, None, None, None, None, None, ""),
]  # fmt: skip
NESTED_ROWS = [
    ({"lat": 1.5, "names": ["x", None]}, [("b", 2), ("a", 1)]),
    ({"lat": None, "names": []}, []),
    (None, None),
    ({"lat": 3.0, "names": None}, [("k", None)]),
]
NDJSON = r"""{"Id":9007199254740993,"price.net":12.5,"ratio":0.1,"flag":true,"day":"1969-07-20","at":"1969-07-20T20:17:40.000001","instant":"1969-07-20T20:17:40+02:00","text":"a \"b\", c","place":{"lat":1.5,"names":["x",null]},"counts":{"b":2,"a":1}}
{"text":"new\nline","Id":-1,"price.net":"-0.001","ratio":-0.0,"flag":false,"day":"2024-02-29","at":"2024-02-29T00:00:00","instant":"2024-02-29T23:59:59.999999Z","place":{"lat":null,"names":[]},"counts":{},"nothing":[]}

{"Id":1e3,"ratio":1e300,"text":null,"place":null}
{"text":"","place":{"lat":3},"counts":{"k":null}}
"""
CSV = """Id,price.net,ratio,flag,day,at,instant,text
9007199254740993,12.5,0.1,true,1969-07-20,1969-07-20T20:17:40.000001,1969-07-20T20:17:40+02:00,"a ""b"", c"
-1,-0.001,-0.0,false,2024-02-29,2024-02-29T00:00:00,2024-02-29T23:59:59.999999Z,"new
line"
1000,,1e300,,,,,
,,,,,,,""
"""


PLAIN = [("id", pa.int64()), ("ratio", pa.float64()), ("text", pa.string())]
PLAIN_ROWS = [
    (2**53 + 1, -0.0, "x"),
    (2**63 - 1, float("nan"), "\U0001f600"),
    (None, None, ""),
    (7, 0.5, None),
]
PLACES = [("__bucket", pa.int32()), ("__offset", pa.int64())]
OTHER_ROWS = {
    "lost": PLAIN_ROWS[1:],
    "doubled": [*PLAIN_ROWS, PLAIN_ROWS[0]],
    "swapped": [*PLAIN_ROWS[:-1], PLAIN_ROWS[0]],
    "integer": [(2**53, -0.0, "x"), *PLAIN_ROWS[1:]],
    "zero": [(2**53 + 1, 0.0, "x"), *PLAIN_ROWS[1:]],
    "empty": [*PLAIN_ROWS[:2], (None, None, None), PLAIN_ROWS[3]],
}


def write_text(path, text):
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def write_table(catalog, name, columns, rows):
    schema = pa.schema(columns)
    data = pa.Table.from_pylist([dict(zip(schema.names, r)) for r in rows], schema=schema)
    table = catalog.create_table(name, schema=schema)
    table.append(data)
    return data, table.metadata_location


def main():
    folder = os.path.abspath(sys.argv[1])
    catalog = SqlCatalog("sample", uri="sqlite:///:memory:", warehouse=f"file://{folder}/lake")
    catalog.create_namespace("d")
    rows = [flat + nested for flat, nested in zip(FLAT_ROWS, NESTED_ROWS)]
    data, nested = write_table(catalog, "d.nested", FLAT + NESTED, rows)
    _, flat = write_table(catalog, "d.flat", FLAT, FLAT_ROWS)
    write_text(f"{folder}/input.ndjson", NDJSON)
    write_text(f"{folder}/input.csv", CSV)
    pq.write_table(data, f"{folder}/input.parquet")
    with pa.ipc.new_file(f"{folder}/input.arrow", data.schema) as writer:
        writer.write_table(data)
    tables = {"nested": nested, "flat": flat}
    for name, last in {"plain": 1, "gap": 2}.items():
        places = [(0, 0), (1, 0), (0, 1), (1, last)]
        placed = [row + place for row, place in zip(PLAIN_ROWS, places)]
        _, tables[name] = write_table(catalog, f"d.{name}", PLAIN + PLACES, placed)
    for name, rows in {"plain": PLAIN_ROWS, **OTHER_ROWS}.items():
        columns = [pa.array(cells, kind) for cells, (_, kind) in zip(zip(*rows), PLAIN)]
        pq.write_table(pa.table(columns, [n for n, _ in PLAIN]), f"{folder}/{name}.parquet")
    print(json.dumps(tables))


if __name__ == "__main__":
    main()

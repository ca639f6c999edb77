#!/usr/bin/env python3
"""Compares tables of an input file with that file, cell by cell, in one process of one engine.

  compare_tables.py --engine chdb --file input.ndjson lake/demo/a lake/demo/b

For many tables, or large ones, of plain types: where read_table.py makes a text of each cell, this
sorts Arrow columns and compares them, and an engine starts once. Rows are compared as multisets,
numbers by their bits and texts by their bytes. In each table the offsets of each bucket must be
0, 1, 2 and so on, each of them once.

Prints a line of JSON for each table: {"table", "rows", "differences"}, the last as text.
Exit status: 0 read, 2 the engine failed (message on stderr), 3 the engine is not installed.
"""

import argparse
import json
import os
import sys

from environment import FAILED, NOT_INSTALLED, enter_environment
from readers import ENGINE_SETS, READERS, Request

SHOWN = 300


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", required=True, choices=sorted(ENGINE_SETS))
    parser.add_argument("--file", required=True, help="NDJSON or Parquet")
    parser.add_argument("tables", nargs="+", help="table folders or metadata.json files")
    return parser.parse_args()


def main():
    options = arguments()
    enter_environment(ENGINE_SETS[options.engine])
    try:
        for table, report in reports(options.engine, options.file, options.tables):
            print(json.dumps({"table": table, **report}))
    except ModuleNotFoundError as error:
        print(f"{options.engine}: {error}", file=sys.stderr)
        sys.exit(NOT_INSTALLED)
    except BaseException as error:  # engines written in Rust raise panics outside Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        print(f"{options.engine}: {type(error).__name__}: {str(error)[:4000]}", file=sys.stderr)
        sys.exit(FAILED)


def reports(engine, file, tables):
    import table_metadata

    # Before an engine is asked, which may change the working directory.
    file, paths = os.path.abspath(file), [table_metadata.metadata_path(t) for t in tables]
    expected = {}
    for table, path in zip(tables, paths):
        schema = table_metadata.schema_of(table_metadata.load_metadata(path))
        fields = tuple((f["name"], f["type"]) for f in schema["fields"])
        if fields not in expected:
            expected[fields] = in_order(read_input(file, data_types(fields)), data_types(fields))
        yield table, compare(engine, path, fields, expected[fields])


def data_types(fields):
    from rows import SYSTEM_COLUMNS

    return {name: kind for name, kind in fields if name not in SYSTEM_COLUMNS}


def compare(engine, path, fields, expected):
    import pyarrow as pa

    request = Request(os.path.dirname(os.path.dirname(path)), path, None, None, None, None)
    batches = list(READERS[engine](request))
    if not batches:
        return {"rows": 0, "differences": [f"no rows instead of {expected.num_rows}"]}
    # By place: an engine may spell a name in its own way.
    read = pa.Table.from_batches(batches).rename_columns([name for name, _ in fields])
    types = data_types(fields)
    found = differences(expected, in_order(read.select(list(types)), types))
    return {"rows": read.num_rows, "differences": [*found, *strayed_offsets(read)]}


def read_input(path, types):
    """The file by pyarrow, with the columns of the schema and no others."""
    import pyarrow as pa
    import pyarrow.json as pj
    import pyarrow.parquet as pq

    if path.endswith(".parquet"):
        return pq.read_table(path).select(list(types))
    schema = pa.schema([(name, arrow_type(kind)) for name, kind in types.items()])
    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    return pj.read_json(path, parse_options=options)


def arrow_type(kind):
    """How a value is written in NDJSON; a type that JSON has no form for is not for this program."""
    import pyarrow as pa

    return {
        "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(),
        "double": pa.float64(), "string": pa.string(),
    }[kind]  # fmt: skip


def in_order(table, types):
    """The rows, sorted by all their columns, each in a form in which equal values are the same."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = {name: comparable(table[name], kind) for name, kind in types.items()}
    plain = pa.table(columns)
    keys = [(name, "ascending") for name in types]
    return plain.take(pc.sort_indices(plain, keys)).combine_chunks()


def comparable(column, kind):
    import pyarrow as pa

    if kind in ("int", "long"):
        return column.cast(pa.int64())
    if kind in ("float", "double"):
        bits = pa.int32() if kind == "float" else pa.int64()
        values = column.cast(pa.float32() if kind == "float" else pa.float64())
        return pa.chunked_array([chunk.view(bits) for chunk in values.chunks], bits)
    if kind in ("string", "binary"):
        return column.cast(pa.large_binary())
    if kind == "date":
        return column.cast(pa.date32()).cast(pa.int32())
    if kind in ("timestamp", "timestamptz"):
        zone = "UTC" if pa.types.is_timestamp(column.type) and column.type.tz else None
        return column.cast(pa.timestamp("us", zone)).cast(pa.int64())
    if kind == "boolean":
        return column.cast(pa.bool_())
    raise ValueError(f"columns of {kind} are not compared by this program")


def differences(expected, actual):
    if expected.equals(actual):
        return []
    found = [f"{actual.num_rows} rows instead of {expected.num_rows}"]
    at = first_difference(expected, actual)
    for sign, side in (("-", expected), ("+", actual)):
        found += [f"{sign} {str(row)[:SHOWN]}" for row in side.slice(at, 1).to_pylist()]
    return found


def first_difference(expected, actual):
    """The first place, in sorted order, at which the two have other rows."""
    import pyarrow.compute as pc

    common = min(expected.num_rows, actual.num_rows)
    places = [common]
    for left, right in zip(expected.slice(0, common).columns, actual.slice(0, common).columns):
        same = pc.fill_null(pc.equal(left, right), False)
        both_null = pc.and_(pc.is_null(left), pc.is_null(right))
        place = pc.index(pc.or_(same, both_null), False).as_py()
        places += [place] if place >= 0 else []
    return min(places)


def strayed_offsets(table):
    if "__bucket" not in table.column_names:
        return ["no column __bucket"]
    numbers = table.select(["__bucket", "__offset"])
    kinds = ("count", "count_distinct", "min", "max")
    by_bucket = numbers.group_by("__bucket").aggregate([("__offset", kind) for kind in kinds])
    by_bucket = by_bucket.select(["__bucket", *(f"__offset_{kind}" for kind in kinds)])
    found = []
    for bucket, count, distinct, least, most in zip(*by_bucket.to_pydict().values()):
        if (least, most, distinct) != (0, count - 1, count):
            found.append(
                f"bucket {bucket}: {count} offsets from {least} to {most}, {distinct} different ones"
            )
    return found


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Reads input files without our own code and prints what a table of them must hold:
{"engine": "input", "rows", "digest", "looseDigest"}, by the schema of the table.

  read_input.py --table lake/demo/flights --file flights.ndjson --rows expected.ndjson

System columns of the schema are left out (read the table with --data-only). NDJSON is parsed by
Python's json with every number kept as text; CSV, Parquet and Arrow files are read by pyarrow.
Fields of the input that the schema lacks are an error, unless null or empty.

Exit status: 0 read, 2 the input does not fit the schema (file and line on stderr), 3 not installed.
"""

import argparse
import csv
import json
import os
import sys

from environment import FAILED, enter_environment

FORMATS = {
    ".ndjson": "ndjson", ".jsonl": "ndjson", ".json": "ndjson", ".csv": "csv",
    ".parquet": "parquet", ".arrow": "arrow", ".arrows": "arrow", ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip
BATCH = 20_000


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--file", required=True, action="append", help="input file; may be repeated"
    )
    schema = parser.add_mutually_exclusive_group(required=True)
    schema.add_argument("--schema", help="file with the Iceberg schema as JSON")
    schema.add_argument("--table", help="table folder or metadata.json to take the schema from")
    parser.add_argument(
        "--format", choices=["ndjson", "csv", "parquet", "arrow"], help="default: by extension"
    )
    parser.add_argument("--delimiter", default=",", help="of CSV")
    parser.add_argument("--rows", help="file for the canonical rows, one JSON object a line")
    parser.add_argument(
        "--loose", action="store_true", help="write null nested values as empty ones"
    )
    parser.add_argument("--skip-lines", default="", help="NDJSON lines to leave out, from 1: 3,17")
    parser.add_argument("--cut-nanos", action="store_true", help="cut nanoseconds to microseconds")
    return parser.parse_args()


def main():
    options = arguments()
    enter_environment("fast")
    try:
        report = read(options).finish("input")
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(FAILED)
    print(report)


def read(options):
    from rows import SYSTEM_COLUMNS, TableRows

    fields = [f for f in schema_of(options)["fields"] if f["name"] not in SYSTEM_COLUMNS]
    types = {f["name"]: f["type"] for f in fields}
    rows = TableRows(options.rows, options.loose)
    for path in options.file:
        kind = options.format or FORMATS[os.path.splitext(path)[1].lower()]
        for cells_of in READERS[kind](path, fields, options):
            rows.add(types, cells_of)
    return rows


def schema_of(options):
    import table_metadata

    if options.table:
        return table_metadata.schema_of(
            table_metadata.load_metadata(table_metadata.metadata_path(options.table))
        )
    with open(options.schema, encoding="utf-8") as file:
        return json.load(file)


# Each reader yields, for one batch of rows, a function of column name and `loose` that gives cells.


def read_ndjson(path, fields, options):
    skipped = {int(n) for n in options.skip_lines.split(",") if n}
    batch = []
    for number, record in json_records(path, skipped):
        batch.append((number, record))
        if len(batch) == BATCH:
            yield json_columns(path, fields, batch, options.cut_nanos)
            batch = []
    if batch:
        yield json_columns(path, fields, batch, options.cut_nanos)


def json_records(path, skipped):
    from text_values import Number

    decoder = json.JSONDecoder(
        parse_int=Number,
        parse_float=Number,
        parse_constant=no_constant,
        object_pairs_hook=unique_fields,
    )
    with open(path, encoding="utf-8-sig", newline="\n") as file:
        for number, text in enumerate(file, 1):
            if number in skipped or not text.strip():
                continue
            try:
                record = decoder.decode(text)
            except ValueError as error:
                raise ValueError(f"{path} line {number}: {error}") from error
            yield number, record


def no_constant(text):
    raise ValueError(f"{text} is not JSON")


def unique_fields(pairs):
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a field occurs twice in one object")
    return record


def json_columns(path, fields, batch, cut):
    import text_values

    types = {f["name"]: f["type"] for f in fields}
    for number, record in batch:
        try:
            text_values.refuse_unknown(record, fields)
        except ValueError as error:
            raise ValueError(f"{path} line {number}: {error}") from error

    def cells_of(name, loose):
        cells, kind = [], types[name]
        for number, record in batch:
            try:
                cells.append(text_values.cell(record.get(name), kind, loose, cut))
            except (ValueError, ArithmeticError) as error:
                raise ValueError(f"{path} line {number}: {name}: {error}") from error
        return cells

    return cells_of


def read_csv(path, fields, options):
    import pyarrow.csv as pc

    size = min(max(os.path.getsize(path), 1) + 1, 2**31 - 1)
    read_options = pc.ReadOptions(block_size=size)
    parse_options = pc.ParseOptions(delimiter=options.delimiter, newlines_in_values=True)
    with open(path, encoding="utf-8-sig", newline="") as file:
        names = next(csv.reader(file, delimiter=options.delimiter))
    unknown = set(names) - {f["name"] for f in fields}
    convert_options = pc.ConvertOptions(
        column_types=dict.fromkeys(names, "string"),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    for batch in pc.open_csv(path, read_options, parse_options, convert_options):
        for name in unknown:
            if batch.column(name).null_count < len(batch):
                raise ValueError(f"{path}: the schema has no column {name}")
        yield csv_columns(batch, fields, options.cut_nanos)


def csv_columns(batch, fields, cut):
    from text_values import CsvField, cell

    types = {f["name"]: f["type"] for f in fields}

    def cells_of(name, loose):
        fields_or_nulls = (None if v is None else CsvField(v) for v in values_or_nulls(batch, name))
        return [cell(field, types[name], loose, cut) for field in fields_or_nulls]

    return cells_of


def values_or_nulls(batch, name):
    return batch.column(name).to_pylist() if name in batch.schema.names else [None] * len(batch)


def read_parquet(path, fields, options):
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(path).iter_batches(BATCH):
        yield arrow_columns(path, batch, fields, options.cut_nanos)


def read_arrow(path, fields, options):
    import pyarrow as pa

    with pa.memory_map(path) as source:
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        reader = pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)
        batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
        for batch in batches:
            yield arrow_columns(path, batch, fields, options.cut_nanos)


def arrow_columns(path, batch, fields, cut):
    import canonical
    import pyarrow as pa

    unknown = set(batch.schema.names) - {f["name"] for f in fields}
    if unknown:
        raise ValueError(f"{path}: the schema has no column {sorted(unknown)[0]}")

    types = {f["name"]: f["type"] for f in fields}
    present = {n: batch.column(i) for i, n in enumerate(batch.schema.names)}

    def cells_of(name, loose):
        array = present[name] if name in present else pa.nulls(len(batch))
        return canonical.arrow_cells(array, types[name], loose, cut)

    return cells_of


READERS = {"ndjson": read_ndjson, "csv": read_csv, "parquet": read_parquet, "arrow": read_arrow}

if __name__ == "__main__":
    main()

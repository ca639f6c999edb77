#!/usr/bin/env python3
"""Reads one Iceberg table with one engine and prints {"engine", "rows", "digest", "looseDigest"}.

The digest does not depend on the order of rows (canonical.py). The loose digest is over the same
rows with null lists, maps and structs written as empty ones: chdb knows no null nested values, so
compare chdb by it. Rows written by --rows are sorted, in the exact form or with --loose the loose.

Exit status: 0 read, 2 the engine failed (message on stderr), 3 the engine is not installed.
One process per engine and call: a bad manifest may abort an engine's whole process.
"""

import argparse
import os
import sys

from environment import FAILED, NOT_INSTALLED, enter_environment
from readers import ENGINE_SETS, READERS, Request, column_list

# Engines that refuse a table without a snapshot.
REFUSE_EMPTY = {"datafusion"}


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", required=True, choices=sorted(ENGINE_SETS))
    parser.add_argument("--table", required=True, help="table folder or metadata.json")
    parser.add_argument("--rows", help="file for the canonical rows, one JSON object a line")
    parser.add_argument("--columns", help="a,b or a JSON array of names")
    parser.add_argument("--where", help="a filter that the engine itself applies")
    parser.add_argument(
        "--sql", help="a query over {t}; other columns than the table's get a guessed type"
    )
    parser.add_argument("--snapshot", type=int, help="snapshot id")
    parser.add_argument(
        "--loose", action="store_true", help="write null nested values as empty ones"
    )
    parser.add_argument("--s3-endpoint", help="http://host:port of a table at s3://")
    parser.add_argument("--s3-key", help="throw-away keys of a test server")
    parser.add_argument("--s3-secret")
    parser.add_argument("--data-only", action="store_true", help="leave the system columns out")
    return parser.parse_args()


def main():
    options = arguments()
    enter_environment(ENGINE_SETS[options.engine])
    try:
        report = read(options).finish(options.engine)
    except ModuleNotFoundError as error:
        print(f"{options.engine}: {error}", file=sys.stderr)
        sys.exit(NOT_INSTALLED)
    except BaseException as error:  # engines written in Rust raise panics outside Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        print(f"{options.engine}: {type(error).__name__}: {str(error)[:4000]}", file=sys.stderr)
        sys.exit(FAILED)
    print(report)


def read(options):
    import canonical
    import table_metadata
    from rows import SYSTEM_COLUMNS, TableRows

    s3 = table_metadata.s3_of(options)
    path = table_metadata.metadata_path(options.table, s3)
    metadata = table_metadata.load_metadata(path, s3)
    columns = column_list(options.columns)
    fields = wanted_fields(table_metadata.schema_of(metadata, options.snapshot), columns)
    rows = TableRows(options.rows, options.loose)
    if options.engine in REFUSE_EMPTY and not options.sql:
        if table_metadata.current_snapshot(metadata) is None:
            return rows
    folder = os.path.dirname(os.path.dirname(path))
    request = Request(folder, path, columns, options.where, options.sql, options.snapshot, s3)
    hidden = SYSTEM_COLUMNS if options.data_only else ()
    batches = READERS[options.engine](request)
    if hasattr(batches, "schema"):  # has to be right without a row, too
        typed_columns(batches.schema, fields, bool(options.sql), options.engine)
    for batch in batches:
        typed = typed_columns(batch.schema, fields, bool(options.sql), options.engine)
        positions = {name: i for i, (name, _) in enumerate(typed) if name not in hidden}
        types = {name: typed[i][1] for name, i in positions.items()}
        rows.add(types, lambda name, loose: canonical.arrow_cells(
            batch.column(positions[name]), types[name], loose
        ))  # fmt: skip
    return rows


def wanted_fields(schema, columns):
    fields = schema["fields"]
    if columns is None:
        return fields
    by_name = {f["name"]: f for f in fields}
    unknown = [c for c in columns if c not in by_name]
    if unknown:
        raise ValueError(f"the table has no column {unknown[0]}")
    return [by_name[c] for c in columns]


def typed_columns(arrow_schema, fields, is_sql, engine):
    """Name and Iceberg type of each result column: by name, else (not for SQL) by position,
    since an engine may spell a name in its own way."""
    import canonical

    names = arrow_schema.names
    types = {f["name"]: f["type"] for f in fields}
    if set(names) == set(types) and len(names) == len(types):
        return [(name, types[name]) for name in names]
    if not is_sql:
        if len(names) != len(fields):
            raise ValueError(f"got the columns {names}, the schema says {list(types)}")
        return [(f["name"], f["type"]) for f in fields]
    text = engine == "chdb"  # its strings come as bytes
    return [
        (name, types.get(name) or canonical.guessed_type(arrow_schema.field(i).type, text))
        for i, name in enumerate(names)
    ]


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Compares states of one primary-key table with files that say what its rows are, in one process.

  compare_states.py --engine duckdb v2.metadata.json=round1.ndjson v3.metadata.json=round2.ndjson

Each metadata file is a state of the table, each NDJSON file all rows of it. Rows are compared as
multisets, so a key that has two rows is found. Prints a line of JSON for each state:
{"table", "rows", "differences"}, the last as text.
Exit status: 0 read, 2 the engine failed (message on stderr), 3 the engine is not installed.
"""

import argparse
import json
import os
import sys

from compare_tables import data_types, differences, in_order, read_input
from environment import FAILED, NOT_INSTALLED, enter_environment
from readers import ENGINE_SETS, READERS, Request


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", required=True, choices=sorted(ENGINE_SETS))
    parser.add_argument("states", nargs="+", help="METADATA=ROWS")
    return parser.parse_args()


def main():
    options = arguments()
    enter_environment(ENGINE_SETS[options.engine])
    try:
        for state in options.states:
            metadata, rows = (os.path.abspath(path) for path in state.split("="))
            print(json.dumps({"table": metadata, **compare(options.engine, metadata, rows)}))
    except ModuleNotFoundError as error:
        print(f"{options.engine}: {error}", file=sys.stderr)
        sys.exit(NOT_INSTALLED)
    except BaseException as error:  # engines written in Rust raise panics outside Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        print(f"{options.engine}: {type(error).__name__}: {str(error)[:4000]}", file=sys.stderr)
        sys.exit(FAILED)


def compare(engine, path, rows):
    import pyarrow as pa
    import table_metadata

    schema = table_metadata.schema_of(table_metadata.load_metadata(path))
    fields = tuple((f["name"], f["type"]) for f in schema["fields"])
    types = data_types(fields)
    expected = in_order(read_input(rows, types), types)
    request = Request(os.path.dirname(os.path.dirname(path)), path, None, None, None, None)
    batches = list(READERS[engine](request))
    if not batches:
        found = [] if expected.num_rows == 0 else [f"no rows instead of {expected.num_rows}"]
        return {"rows": 0, "differences": found}
    # By place: an engine may spell a name in its own way.
    read = pa.Table.from_batches(batches).rename_columns([name for name, _ in fields])
    found = differences(expected, in_order(read.select(list(types)), types))
    return {"rows": read.num_rows, "differences": found}


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes what DuckDB reads of a table, without system columns, as files of other tools.

Usage: export_table.py TABLE FOLDER TYPES. Makes rows.arrow (IPC file), rows.arrows (IPC stream) and
rows.parquet there, all by pyarrow, in batches of 7 rows. TYPES is a JSON object of the columns to
write: null, or the Arrow type to cast to.
"""

import sys

from environment import enter_environment


def main(table, folder, types):
    enter_environment("fast")
    import json

    import pyarrow as pa
    import pyarrow.ipc as ipc
    import pyarrow.parquet as pq
    from readers import READERS, Request
    from table_metadata import metadata_path

    request = Request(table, metadata_path(table), None, None, None, None)
    read = pa.Table.from_batches(list(READERS["duckdb"](request)))
    columns = {
        name: read[name].cast(pa.type_for_alias(kind)) if kind else read[name]
        for name, kind in json.loads(types).items()
    }
    rows = pa.table(columns)
    batches = rows.to_batches(max_chunksize=7)
    with ipc.new_file(f"{folder}/rows.arrow", rows.schema) as out:
        for batch in batches:
            out.write(batch)
    with ipc.new_stream(f"{folder}/rows.arrows", rows.schema) as out:
        for batch in batches:
            out.write(batch)
    pq.write_table(rows, f"{folder}/rows.parquet", row_group_size=7, store_schema=False)


if __name__ == "__main__":
    main(*sys.argv[1:])

#!/usr/bin/env python3
"""Reads one Parquet file with pyarrow, DuckDB and chdb and compares each with an Arrow stream.

Usage: parquet_file.py FILE.parquet EXPECTED.arrow TYPES.json. TYPES holds {"types": {column: Iceberg
type}, "ids": {path: id}}. Prints {"rows", "differences", "unchecked"}; a difference is one line of text.
Also compares field ids of every level, and the statistics in the footer with the values. Unchecked are
the columns in which a flipped bit is not noticed by a checksum.
"""

import io
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FAST = os.path.join(
    os.environ.get("SLUICE_ENGINES_HOME", os.path.join(os.path.dirname(os.path.dirname(HERE)), ".engines")),
    "fast",
)


def main(parquet, expected, types_file):
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open(types_file, encoding="utf-8") as source:
        wanted = json.load(source)
    types = wanted["types"]
    with pa.OSFile(expected) as source:
        table = pa.ipc.open_stream(source).read_all()
    differences = []
    readers = {"pyarrow": read_pyarrow, "duckdb": read_duckdb, "chdb": read_chdb}
    for name, read in readers.items():
        loose = name == "chdb"
        differences += compare(name, rows(table, types, loose), rows(read(parquet), types, loose))
    differences += compare_ids(pq.ParquetFile(parquet).schema_arrow, wanted["ids"])
    differences += compare_statistics(pq.ParquetFile(parquet))
    print(json.dumps({
        "rows": table.num_rows,
        "differences": [d[:400] for d in differences[:5]],
        "unchecked": unchecked(parquet),
    }))  # fmt: skip


def read_pyarrow(path):
    import pyarrow.parquet as pq

    return pq.read_table(path, page_checksum_verification=True)


def read_duckdb(path):
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection.sql(f"SELECT * FROM read_parquet('{path}')").to_arrow_table()


def read_chdb(path):
    os.chdir("/")  # chdb reads local files only below the working directory
    import chdb
    import pyarrow as pa

    settings = (
        "session_timezone = 'UTC', output_format_arrow_string_as_string = 0, "
        "output_format_arrow_fixed_string_as_fixed_byte_array = 1"
    )
    data = chdb.query(f"SELECT * FROM file('{path}', Parquet) SETTINGS {settings}", "ArrowStream").bytes()
    return pa.ipc.open_stream(pa.py_buffer(data)).read_all()


def rows(table, types, loose):
    """Canonical rows, sorted: engines may read row groups in any order."""
    from canonical import arrow_cells

    cells = [arrow_cells(table.column(name), kind, loose) for name, kind in types.items()]
    return sorted(",".join(row) for row in zip(*cells))


def compare(name, expected, actual):
    if len(expected) != len(actual):
        return [f"{name}: {len(actual)} rows instead of {len(expected)}"]
    return [f"{name}: {a} instead of {e}" for e, a in zip(expected, actual) if a != e]


def compare_ids(schema, wanted):
    found = {}

    def walk(prefix, fields):
        for field in fields:
            path = f"{prefix}{field.name}"
            found[path] = int((field.metadata or {}).get(b"PARQUET:field_id", b"-1"))
            walk(f"{path}.", children(field.type))

    walk("", schema)
    return [f"id of {p}: {found.get(p)} instead of {i}" for p, i in wanted.items() if found.get(p) != i]


def children(kind):
    import pyarrow as pa

    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.field(i) for i in range(kind.num_fields)] if pa.types.is_nested(kind) else []


def compare_statistics(file):
    """The statistics of flat columns enclose the values, and are exact where they are not text."""
    import pyarrow as pa

    problems = []
    for group in range(file.num_row_groups):
        table = file.read_row_group(group)
        for at in range(file.metadata.num_columns):
            chunk = file.metadata.row_group(group).column(at)
            if "." in chunk.path_in_schema:
                continue
            column = table.column(chunk.path_in_schema)
            if chunk.statistics.null_count != column.null_count:
                problems.append(f"nulls of {chunk.path_in_schema}: {chunk.statistics.null_count}")
            values = [v for v in column.to_pylist() if v is not None and v == v]
            if not chunk.statistics.has_min_max:
                if values and not pa.types.is_nested(column.type):
                    problems.append(f"{chunk.path_in_schema} has no bounds")
                continue
            low, high = chunk.statistics.min, chunk.statistics.max
            is_text = isinstance(low, (str, bytes))
            right = low <= min(values) and high >= max(values)
            if not is_text:
                right = right and low == min(values) and high == max(values)
            if not right:
                problems.append(f"bounds of {chunk.path_in_schema}: {low!r} to {high!r}")
    return problems


def unchecked(path):
    """Flips the last bit of a dictionary page and of the last page of every column chunk, and has
    pyarrow read the column."""
    import pyarrow.parquet as pq

    with open(path, "rb") as source:
        whole = source.read()
    metadata = pq.ParquetFile(io.BytesIO(whole)).metadata
    found = []
    for group in range(metadata.num_row_groups):
        for at in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(at)
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            ends = [start + chunk.total_compressed_size]
            if chunk.dictionary_page_offset:
                ends.append(chunk.data_page_offset)
            for end in ends:
                damaged = bytearray(whole)
                damaged[end - 1] ^= 1
                if not is_refused(damaged, group, chunk.path_in_schema):
                    found.append(chunk.path_in_schema)
    return sorted(set(found))


def is_refused(damaged, group, column):
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(io.BytesIO(damaged), page_checksum_verification=True)
    try:
        file.read_row_group(group, columns=[column])
    except (OSError, pa.ArrowException) as error:
        return "CRC checksum verification failed" in str(error)
    return False


if __name__ == "__main__":
    python = os.path.join(FAST, "bin", "python")
    if os.path.realpath(sys.prefix) != os.path.realpath(FAST):
        os.execv(python, [python, *sys.argv])
    main(*sys.argv[1:])

#!/usr/bin/env python3
"""Peer of the benchmark: DuckDB reads an NDJSON file and writes Parquet. It makes no table, keeps no
position and promises nothing after a crash: it is the bound for reading and encoding alone.

Prints {peer, seconds, cpu_seconds, rows, bytes_in, bytes_out, files_out, peak_rss_bytes}.
Time leaves out Python's start and imports.

Usage: duckdb_copy.py --file FILE --warehouse FOLDER [--target FILE_NAME] [--threads N]
"""

import argparse
import os

import duckdb

from report import Run


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--file", required=True, help="NDJSON input")
    parser.add_argument("--warehouse", required=True, help="folder for the Parquet file")
    parser.add_argument("--target", default="duckdb.parquet", help="name of the Parquet file")
    parser.add_argument("--threads", type=int, help="default: all cores")
    options = parser.parse_args()

    os.makedirs(options.warehouse, exist_ok=True)
    target = os.path.join(options.warehouse, options.target)
    connection = duckdb.connect(config={"threads": options.threads} if options.threads else {})
    run = Run(options.file)
    source = "read_json($file, format = 'newline_delimited', maximum_object_size = 67108864)"
    copied = connection.execute(
        f"COPY (SELECT * FROM {source}) TO '{target.replace(chr(39), chr(39) * 2)}' (FORMAT parquet, COMPRESSION zstd)",
        {"file": options.file},
    ).fetchone()
    run.report("duckdb", copied[0], [target])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Peer of the benchmark: appends an NDJSON file to a new local Iceberg table with pyiceberg.

Prints {peer, seconds, cpu_seconds, rows, bytes_in, bytes_out, files_out, peak_rss_bytes, snapshots}.
Time counts reading, writing and the commit; Python's start and imports are left out, in the peer's
favor. One snapshot holds the file, as long as it has at most --chunk-bytes; a longer one is read in
chunks that are appended one by one within one transaction, since pyarrow holds them in memory.

Usage: pyiceberg_append.py --file FILE --warehouse FOLDER [--target NS.TABLE]
"""

import argparse
import glob
import os

# pyarrow reads fractions of seconds as nanoseconds, which version 2 of Iceberg does not have.
os.environ["PYICEBERG_DOWNCAST_NS_TIMESTAMP_TO_US_ON_WRITE"] = "true"

import pyarrow as pa
import pyarrow.json
from pyiceberg.catalog.sql import SqlCatalog

from report import Run


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--file", required=True, help="NDJSON input")
    parser.add_argument(
        "--warehouse", required=True, help="folder of the tables; must not hold the table"
    )
    parser.add_argument("--target", default="peers.pyiceberg", help="namespace and table")
    parser.add_argument(
        "--chunk-bytes", type=int, default=512 * 1024**2, help="input held in memory"
    )
    parser.add_argument("--compression", default="zstd", help="of Parquet")
    options = parser.parse_args()

    warehouse = os.path.abspath(options.warehouse)
    os.makedirs(warehouse, exist_ok=True)
    catalog = SqlCatalog("peer", uri="sqlite:///:memory:", warehouse=f"file://{warehouse}")
    catalog.create_namespace(options.target.rsplit(".", 1)[0])

    run = Run(options.file)
    rows, table = 0, None
    for chunk in chunks(options.file, options.chunk_bytes):
        if table is None:
            properties = {"write.parquet.compression-codec": options.compression}
            table = catalog.create_table(options.target, chunk.schema, properties=properties)
            transaction = table.transaction()
        transaction.append(chunk)
        rows += len(chunk)
    if table is not None:
        table = transaction.commit_transaction()
    files = glob.glob(
        f"{glob.escape(warehouse)}/{options.target.replace('.', '/')}/data/**/*.parquet",
        recursive=True,
    )
    run.report("pyiceberg", rows, files, snapshots=len(table.snapshots()) if table else 0)


def chunks(path, chunk_bytes):
    if os.path.getsize(path) <= chunk_bytes:
        yield pyarrow.json.read_json(path)
        return
    # A larger block than the default: the first one decides the schema.
    reader = pyarrow.json.open_json(path, pyarrow.json.ReadOptions(block_size=16 * 1024**2))
    batches, size = [], 0
    for batch in reader:
        batches.append(batch)
        size += batch.nbytes
        if size >= chunk_bytes:
            yield pa.Table.from_batches(batches)
            batches, size = [], 0
    if batches:
        yield pa.Table.from_batches(batches)


if __name__ == "__main__":
    main()

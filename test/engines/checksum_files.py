#!/usr/bin/env python3
"""Writes Parquet files with page checksums by pyarrow: checksum_files.py FOLDER

Makes v1.parquet and v2.parquet, named by the format of their data pages, and plain.parquet, which
has no checksums. Each has dictionaries, nulls, lists, several pages and two row groups."""

import sys

from environment import enter_environment


def main(folder):
    enter_environment("fast")
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = range(2000)
    table = pa.table({
        "id": pa.array(rows, pa.int64()),
        "name": [None if row % 3 == 0 else f"name {row % 40}" for row in rows],
        "list": [[row, None] if row % 5 else None for row in rows],
    })  # fmt: skip
    usual = {"row_group_size": 1500, "data_page_size": 900, "use_dictionary": ["name"]}
    for version in (1, 2):
        pq.write_table(
            table,
            f"{folder}/v{version}.parquet",
            compression="zstd" if version == 2 else "none",
            data_page_version=f"{version}.0",
            write_page_checksum=True,
            **usual,
        )
    pq.write_table(table, f"{folder}/plain.parquet", compression="none", **usual)


if __name__ == "__main__":
    main(*sys.argv[1:])

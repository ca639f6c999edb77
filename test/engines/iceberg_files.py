#!/usr/bin/env python3
"""Makes what the tests of our Iceberg metadata need from another hand, as JSON on stdout.

  data FOLDER COLUMN BUCKETS   one Parquet file with field ids for each bucket of 40 rows; the bucket
                               of a row is pyiceberg's own hash of COLUMN, or its number for __bucket
  table FOLDER BUCKETS         a table by pyiceberg with the same rows and buckets by place
"""

import datetime as dt
import decimal
import json
import os
import sys

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import (
    DecimalType, IntegerType, ListType, LongType, MapType, NestedField, StringType, StructType, TimestamptzType,
)  # fmt: skip

ROWS = 40
# Ids as Java and pyiceberg give them to a new table.
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "user.name", StringType(), required=False),
    NestedField(3, "price", DecimalType(20, 4), required=False),
    NestedField(4, "tags", ListType(10, StringType(), element_required=False), required=False),
    NestedField(5, "props", MapType(11, StringType(), 12, LongType(), value_required=False), required=False),
    NestedField(6, "place", StructType(NestedField(13, "lat", LongType(), required=False)), required=False),
    NestedField(7, "__bucket", IntegerType(), required=True),
    NestedField(8, "__offset", LongType(), required=True),
    NestedField(9, "__timestamp", TimestamptzType(), required=True),
)


def rows(bucket_of):
    for number in range(ROWS):
        row = {
            "id": 2**60 + number,
            "user.name": f"name {number} é",
            "price": None if number % 7 == 0 else decimal.Decimal("1234567890123456.7891") - number,
            "tags": [None, "a", str(number)][: number % 4],
            "props": {"k": 2**60, "n": None} if number % 2 else {},
            "place": {"lat": -number},
            "__offset": number,
            "__timestamp": dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.timezone.utc),
        }
        yield row | {"__bucket": bucket_of(number, row)}


def arrow_schema():
    return SCHEMA.as_arrow()


def table_of(bucket_of):
    return pa.Table.from_pylist(list(rows(bucket_of)), schema=arrow_schema())


def write_data(folder, column, buckets):
    if column == "__bucket":
        bucket_of = lambda number, row: number % buckets  # noqa: E731
    else:
        hashed = BucketTransform(buckets).transform(SCHEMA.find_field(column).field_type)
        bucket_of = lambda number, row: hashed(row[column])  # noqa: E731
    table = table_of(bucket_of)
    files = []
    for bucket in range(buckets):
        part = table.filter(pa.compute.equal(table["__bucket"], bucket))
        path = os.path.join(folder, f"bucket-{bucket}.parquet")
        pq.write_table(part, path, compression="zstd")
        ids = part["id"].to_pylist()
        files.append(
            {
                "name": os.path.basename(path),
                "bucket": bucket,
                "rows": part.num_rows,
                "bytes": os.path.getsize(path),
                "first": str(min(ids)),
                "last": str(max(ids)),
            }
        )
    print(json.dumps(files))


def write_table(folder, buckets):
    catalog = SqlCatalog("other", uri="sqlite:///:memory:", warehouse=f"file://{folder}")
    catalog.create_namespace("demo")
    spec = PartitionSpec(PartitionField(7, 1000, IdentityTransform(), "__bucket"))
    table = catalog.create_table(
        "demo.rows",
        schema=SCHEMA,
        partition_spec=spec,
        location=f"file://{folder}/demo/rows",
        properties={"fluss.bucket.num": str(buckets), "format-version": "2"},
    )
    table.append(table_of(lambda number, row: number % buckets))
    ids = {field.name: field.field_id for field in table.schema().fields}
    print(json.dumps({"metadata": table.metadata_location, "ids": ids, "lastColumn": table.metadata.last_column_id}))


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "data":
        write_data(arguments[0], arguments[1], int(arguments[2]))
    else:
        write_table(arguments[0], int(arguments[1]))

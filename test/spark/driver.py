#!/usr/bin/env python3
"""One Spark session that takes requests on stdin and answers each on stdout, one JSON a line.

  {"catalog": NAME, "warehouse": FOLDER}        makes a hadoop catalog of this name
  {"sql": TEXT}                                 runs it: {"rows": [[text or null, ...], ...]}
  {"read": TABLE, "metadata": FOLDER, "rows": FILE}
                                                writes canonical rows: {"rows", "digest", ...}

A request that fails is answered with {"error": TEXT}; Spark's own log goes to stderr. The first
line is {"ready": VERSION}; the session ends with stdin."""

import json
import os
import sys
import tempfile

ENGINES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "engines")
sys.path.insert(0, ENGINES)

import canonical  # noqa: E402
import table_metadata  # noqa: E402
from readers import iceberg_session, spark_batches  # noqa: E402
from rows import SYSTEM_COLUMNS, TableRows  # noqa: E402


# Tables are tiny: starting up and compiling is all that takes time.
QUICK = {
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.ui.showConsoleProgress": "false",
}


def handle(session, request):
    if "catalog" in request:
        catalog = f"spark.sql.catalog.{request['catalog']}"
        session.conf.set(catalog, "org.apache.iceberg.spark.SparkCatalog")
        session.conf.set(f"{catalog}.type", "hadoop")
        session.conf.set(f"{catalog}.warehouse", request["warehouse"])
        session.conf.set(f"{catalog}.cache-enabled", "false")
        return {}
    if "sql" in request:
        rows = session.sql(request["sql"]).collect()
        return {"rows": [[None if cell is None else str(cell) for cell in row] for row in rows]}
    return read(session, request)


def read(session, request):
    """The data columns of a table in the canonical form of the other engines."""
    metadata = table_metadata.load_metadata(table_metadata.metadata_path(request["metadata"]))
    fields = table_metadata.schema_of(metadata)["fields"]
    types = {f["name"]: f["type"] for f in fields if f["name"] not in SYSTEM_COLUMNS}
    names = list(types)
    columns = ", ".join(f"`{name}`" for name in names)
    rows = TableRows(request["rows"], False)
    for batch in spark_batches(session.sql(f"SELECT {columns} FROM {request['read']}")):
        rows.add(types, lambda name, loose: canonical.arrow_cells(
            batch.column(names.index(name)), types[name], loose
        ))  # fmt: skip
    return json.loads(rows.finish("spark"))


def main():
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # the JVM prints what it likes
    with tempfile.TemporaryDirectory(prefix="sluice-spark-") as scratch:
        os.chdir(scratch)  # where Spark leaves spark-warehouse and the like
        session = iceberg_session(QUICK)
        print(json.dumps({"ready": session.version}), file=answers, flush=True)
        for line in sys.stdin:
            try:
                answer = handle(session, json.loads(line))
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {str(error)[:4000]}"}
            print(json.dumps(answer), file=answers, flush=True)
        session.stop()


if __name__ == "__main__":
    main()

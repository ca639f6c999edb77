"""One function per engine: a request -> Arrow record batches.

Each function imports its engine itself: the module loads where no engine is installed."""

import atexit
import functools
import glob
import json
import os
import re
import shutil
import tempfile
from dataclasses import dataclass


@dataclass(frozen=True)
class Request:
    """What to read. `table` is the folder, `metadata_file` the metadata.json inside it."""

    table: str
    metadata_file: str
    columns: tuple | None
    where: str | None
    sql: str | None
    snapshot: int | None
    s3: object = None


def quoted(text, mark):
    return mark + text.replace(mark, mark + mark) + mark


def select(request, source, mark='"', escape=quoted):
    """The request as SQL over `source`; `mark` quotes identifiers."""
    if request.sql:
        return request.sql.replace("{t}", source)
    columns = ", ".join(escape(c, mark) for c in request.columns) if request.columns else "*"
    return f"SELECT {columns} FROM {source}" + (f" WHERE {request.where}" if request.where else "")


def read_pyiceberg(request):
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(request.metadata_file, pyiceberg_properties(request.s3))
    options = {"selected_fields": request.columns or ("*",), "snapshot_id": request.snapshot}
    if request.where:
        options["row_filter"] = request.where
    scan = table.scan(**options)
    if not request.sql:
        return scan.to_arrow_batch_reader()
    import duckdb  # pyiceberg has no SQL: another engine computes over what it read

    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("scanned", scan.to_arrow())
    return connection.sql(select(request, "scanned")).to_arrow_reader()


def pyiceberg_properties(s3):
    if s3 is None:
        return {}
    return {
        "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
        "s3.endpoint": s3.endpoint,
        "s3.access-key-id": s3.key,
        "s3.secret-access-key": s3.secret,
        "s3.region": "us-east-1",
    }


def read_duckdb(request):
    connection = duckdb_connection()
    if request.s3 is not None:
        connection.execute(duckdb_secret(request.s3))
    snapshot = "" if request.snapshot is None else f", snapshot_from_id = {request.snapshot}"
    source = f"iceberg_scan({quoted(request.metadata_file, chr(39))}{snapshot})"
    return connection.sql(select(request, source)).to_arrow_reader(100_000)


@functools.cache
def duckdb_connection():
    import duckdb

    connection = duckdb.connect(
        config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    )
    for path in duckdb_extensions(duckdb):
        connection.execute(f"LOAD {quoted(path, chr(39))}")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET arrow_large_buffer_size = true")
    return connection


def duckdb_secret(s3):
    text = [quoted(each, chr(39)) for each in (s3.key, s3.secret, s3.endpoint.split("://")[1])]
    return (
        f"CREATE OR REPLACE SECRET (TYPE s3, KEY_ID {text[0]}, SECRET {text[1]}, ENDPOINT {text[2]}, "
        "URL_STYLE 'path', USE_SSL false, REGION 'us-east-1')"
    )


def duckdb_extensions(duckdb):
    """Extension files of the wheels, in load order; the file must carry DuckDB's own version."""
    root = os.path.dirname(os.path.dirname(duckdb.__file__))
    found = []
    for name in ("avro", "icu", "httpfs", "iceberg"):
        path = f"{root}/duckdb_extension_{name}/extensions/v{duckdb.__version__}/{name}.duckdb_extension"
        if not os.path.exists(path):
            raise ModuleNotFoundError(f"no DuckDB {duckdb.__version__} extension {name} at {path}")
        found.append(path)
    return found


def read_chdb(request):
    os.chdir("/")  # chdb reads local tables only below the working directory
    import chdb
    import pyarrow as pa

    folder, name = os.path.split(request.metadata_file)
    root = os.path.dirname(folder) + "/"
    source = (
        f"icebergLocal({clickhouse_quoted(root)}, "
        f"SETTINGS iceberg_metadata_file_path = {clickhouse_quoted(f'metadata/{name}')})"
    )
    settings = [
        "session_timezone = 'UTC'",
        "output_format_arrow_string_as_string = 0",  # String holds bytes: the schema says which are text
        "output_format_arrow_fixed_string_as_fixed_byte_array = 1",
    ]
    if request.snapshot is not None:
        settings.append(f"iceberg_snapshot_id = {request.snapshot}")
    query = select(request, source, "`", clickhouse_quoted)
    data = chdb.query(f"{query} SETTINGS {', '.join(settings)}", "ArrowStream").bytes()
    return pa.ipc.open_stream(pa.py_buffer(data)) if data else iter(())


def clickhouse_quoted(text, mark="'"):
    return mark + text.replace("\\", "\\\\").replace(mark, "\\" + mark) + mark


def read_datafusion(request):
    import datafusion
    from pyiceberg.table import StaticTable

    if request.snapshot is not None:
        raise ValueError("this reader cannot pick a snapshot")
    context = datafusion.SessionContext()
    # The table goes through the Rust library: pyiceberg only carries the path to it.
    context.register_table("t", StaticTable.from_metadata("file://" + request.metadata_file))
    return context.sql(select(request, "t")).to_arrow_table().to_batches()


def read_spark(request):
    catalog = "spark.sql.catalog.c"
    session = iceberg_session({
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "hadoop",
        f"{catalog}.warehouse": hadoop_warehouse(request.metadata_file),
    })  # fmt: skip
    source = "c.d.t" if request.snapshot is None else f"c.d.t VERSION AS OF {request.snapshot}"
    return spark_batches(session.sql(select(request, source, "`")))


def spark_batches(frame):
    """The rows of a DataFrame. Arrow refuses a null struct that has a required field, so every
    field is declared as one that may be null; that changes no value."""
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    def loosened(kind):
        if isinstance(kind, StructType):
            return StructType([StructField(f.name, loosened(f.dataType)) for f in kind.fields])
        if isinstance(kind, ArrayType):
            return ArrayType(loosened(kind.elementType))
        if isinstance(kind, MapType):
            return MapType(kind.keyType, loosened(kind.valueType))
        return kind

    # By place: a name with dots and quotes cannot be looked up.
    plain = frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))
    columns = [
        plain[f"c{place}"].cast(loosened(field.dataType)).alias(field.name)
        for place, field in enumerate(frame.schema)
    ]
    return plain.select(columns).toArrow().to_batches()


def iceberg_session(more):
    """A session of Spark inside this process, in UTC and with Iceberg; `more` is its options."""
    home = os.environ["SLUICE_ENGINES_HOME"]
    jars = glob.glob(f"{glob.escape(home)}/jars/iceberg-spark-runtime-*.jar")
    if not jars:
        raise ModuleNotFoundError(f"no iceberg-spark-runtime jar in {home}/jars")
    from pyspark.sql import SparkSession

    options = {
        "spark.jars": ",".join(jars),
        "spark.ui.enabled": "false",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        **more,
    }
    builder = SparkSession.builder.master("local[1]")
    for key, value in options.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def hadoop_warehouse(metadata_file):
    """A folder in which the table is d.t: Spark finds a table by folder only under the name
    v1.metadata.json, and all that the metadata points at has absolute paths."""
    warehouse = tempfile.mkdtemp(prefix="sluice-spark-")
    folder = os.path.join(warehouse, "d", "t", "metadata")
    os.makedirs(folder)
    name = (
        "v1.gz.metadata.json" if ".gz." in os.path.basename(metadata_file) else "v1.metadata.json"
    )
    shutil.copyfile(metadata_file, os.path.join(folder, name))
    atexit.register(shutil.rmtree, warehouse, ignore_errors=True)
    return warehouse


READERS = {
    "pyiceberg": read_pyiceberg,
    "duckdb": read_duckdb,
    "chdb": read_chdb,
    "datafusion": read_datafusion,
    "spark": read_spark,
}

# Which set of setup.sh holds an engine.
ENGINE_SETS = {
    "pyiceberg": "fast",
    "duckdb": "fast",
    "chdb": "fast",
    "datafusion": "datafusion",
    "spark": "spark",
}


def column_list(text):
    """`a,b`, or a JSON array for names that hold commas."""
    if text is None:
        return None
    return tuple(json.loads(text) if text.startswith("[") else re.split(r"\s*,\s*", text.strip()))

#!/usr/bin/env bash
# Installs the independent engines that read our tables back, one folder for each set.
# Usage: test/engines/setup.sh [fast|datafusion|spark|all]   (default: fast)
#
#   fast        pyiceberg, DuckDB, ClickHouse (chdb)
#   datafusion  DataFusion over the Rust Iceberg library
#   spark       Spark with the Java Iceberg runtime; needs Java 17 and mvn
#
# SLUICE_ENGINES_HOME (default: .engines in the repository) says where to, PYTHON which interpreter.
# A set that is already there in the pinned versions is left alone.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
home=${SLUICE_ENGINES_HOME:-$(cd "$here/../.." && pwd)/.engines}
python=${PYTHON:-python3}
spark_runtime=org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0

# install_environment SET: a virtual environment with exactly requirements-SET.txt
install_environment() {
  local requirements="$here/requirements-$1.txt" folder="$home/$1"
  if cmp -s "$requirements" "$folder/installed.txt"; then return; fi
  "$python" -m venv --clear "$folder"
  "$folder/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements"
  cp "$requirements" "$folder/installed.txt"
}

# install_jar GROUP:ARTIFACT:VERSION: that jar alone, into $home/jars
install_jar() {
  local artifact version jar
  IFS=: read -r _ artifact version <<<"$1"
  jar="$home/jars/$artifact-$version.jar"
  if [ -f "$jar" ]; then return; fi
  mkdir -p "$home/jars"
  mvn --quiet --batch-mode -Dstyle.color=never org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
    -Dartifact="$1" -DoutputDirectory="$home/jars" -Dmdep.useBaseVersion=true
  test -f "$jar"
}

install_set() {
  local started=$SECONDS
  case $1 in
    fast | datafusion) install_environment "$1" ;;
    spark)
      install_environment spark
      install_jar "$spark_runtime"
      ;;
    *)
      echo "unknown set $1: fast, datafusion, spark or all" >&2
      exit 64
      ;;
  esac
  echo "$1: ready in $((SECONDS - started)) s ($home/$1)"
}

sets=("${@:-fast}")
if [ "${sets[0]}" = all ]; then sets=(fast datafusion spark); fi
for set in "${sets[@]}"; do install_set "$set"; done

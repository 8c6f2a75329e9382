#!/usr/bin/env bash
# prometheus.sh PROGRAM: prints the path of prometheus or promtool. Unless it is installed, Debian's package prometheus is unpacked into
# the cache, and not installed.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(command -v "$1" || true)
if [[ -z $program ]]; then
  cache=$(realpath -m "${CACHE:-.cache}/prometheus")
  if [[ ! -x $cache/usr/bin/$1 ]]; then
    if ! command -v apt-get dpkg-deb >/dev/null; then
      echo "prometheus.sh: $1 is needed: install Prometheus" >&2
      exit 1
    fi
    mkdir -p "$cache"
    (cd "$cache" && { apt-get -qq download prometheus 2>/dev/null || { apt-get -qq update && apt-get -qq download prometheus; }; } &&
      dpkg-deb -x prometheus_*.deb . && rm prometheus_*.deb)
  fi
  program=$cache/usr/bin/$1
fi
echo "$program"

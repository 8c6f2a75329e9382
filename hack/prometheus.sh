#!/usr/bin/env bash
# prometheus.sh PROGRAM: prints the path of prometheus, promtool or amtool. Unless it is installed, Debian's package prometheus or
# prometheus-alertmanager is unpacked into the cache, and not installed.
set -euo pipefail
cd "$(dirname "$0")/.."
package=prometheus
[[ $1 != amtool ]] || package=prometheus-alertmanager
program=$(command -v "$1" || true)
if [[ -z $program ]]; then
  cache=$(realpath -m "${CACHE:-.cache}/prometheus")
  if [[ ! -x $cache/usr/bin/$1 ]]; then
    if ! command -v apt-get dpkg-deb >/dev/null; then
      echo "prometheus.sh: $1 is needed: install Prometheus" >&2
      exit 1
    fi
    mkdir -p "$cache"
    (cd "$cache" && { apt-get -qq download "$package" 2>/dev/null || { apt-get -qq update && apt-get -qq download "$package"; }; } &&
      dpkg-deb -x "$package"_*.deb . && rm "$package"_*.deb)
  fi
  program=$cache/usr/bin/$1
fi
echo "$program"

#!/usr/bin/env bash
# install-packages.sh WHAT PACKAGE...: installs Debian packages as root, one call at a time. Elsewhere it says in one
# sentence what is needed and what to install, and fails.
set -euo pipefail
cd "$(dirname "$0")/.."
what=$1
shift
if ! command -v apt-get >/dev/null || [[ $(id -u) != 0 ]]; then
  echo "$what is needed: install $* (with Debian's apt-get this is done for you, as root)" >&2
  exit 1
fi
mkdir -p .cache
exec 9>.cache/install-packages.lock
flock 9
echo "installing $*" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update >&2 9>&-
apt-get -qq install -y --no-install-recommends "$@" >/dev/null 9>&-

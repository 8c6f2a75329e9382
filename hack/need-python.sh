#!/usr/bin/env bash
# Makes sure that python3 can create virtual environments, which the conformance tests need for the packages that
# they compare with. Installs Debian's packages as root, and otherwise says what is missing.
set -euo pipefail
if python3 -c 'import ensurepip, venv' 2>/dev/null; then
  exit
fi
if ! command -v apt-get >/dev/null || [[ $(id -u) != 0 ]]; then
  echo "python3 with the modules venv and ensurepip is needed: install python3 and python3-venv" >&2
  exit 1
fi
echo "installing python3 and python3-venv" >&2
apt-get -qq update
DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends python3 python3-venv >/dev/null

#!/usr/bin/env bash
# Makes sure that python3 can create virtual environments, which the conformance tests need for the packages that
# they compare with.
set -euo pipefail
if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
  "$(dirname "$0")/install-packages.sh" "python3 with the modules venv and ensurepip" python3 python3-venv
fi

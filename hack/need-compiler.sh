#!/usr/bin/env bash
# Makes sure that a C compiler works, which Go's race detector needs.
set -euo pipefail
# shellcheck disable=SC2046 # CC may have arguments.
if ! echo 'int main(void) { return 0; }' | $(go env CC) -x c -o /dev/null - 2>/dev/null; then
  "$(dirname "$0")/install-packages.sh" "a C compiler, for the race detector," gcc libc6-dev
fi

#!/usr/bin/env bash
# Makes sure that Debian's headless Chromium is installed, in which tests open the page of a transcript and the pages of
# kubectl tinker ui.
set -euo pipefail
if ! command -v chromium-headless-shell >/dev/null; then
  "$(dirname "$0")/install-packages.sh" "chromium-headless-shell" chromium-headless-shell
fi

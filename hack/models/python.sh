#!/usr/bin/env bash
# Prints the path of a Python that has the packages of requirements.txt. It is created once for each list of
# packages, in .cache/models. MODELS_PYTHON names another one.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [[ -n "${MODELS_PYTHON:-}" ]]; then
  echo "$MODELS_PYTHON"
  exit
fi
folder="$PWD/.cache/models/python-$(sha256sum hack/models/requirements.txt | cut -c1-12)"
mkdir -p "$folder"
exec 9>"$folder.lock"
flock 9
if [[ ! -e "$folder/installed" ]]; then
  echo "installing the reference packages of hack/models/requirements.txt" >&2
  python3 -m venv --clear "$folder"
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r hack/models/requirements.txt >&2
  touch "$folder/installed"
fi
echo "$folder/bin/python"

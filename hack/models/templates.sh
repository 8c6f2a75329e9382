#!/usr/bin/env bash
# Prints the path of a folder with the chat templates of two packages, which it downloads once: trl, and the llama.cpp
# that the sources of llama-cpp-python contain. They stay out of the tree, because their licences differ.
set -euo pipefail
cd "$(dirname "$0")/../.."
trl=1.16.0
llama=0.3.36
python=$(hack/models/python.sh)
folder="$PWD/.cache/models/templates-$trl-$llama"
mkdir -p "$folder"
exec 9>"$folder.lock"
flock 9
if [[ ! -e "$folder/complete" ]]; then
  echo "downloading the chat templates of trl $trl and llama-cpp-python $llama" >&2
  download=$(mktemp -d)
  trap 'rm -rf "$download"' EXIT
  "$python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$download" "trl==$trl" >&2
  "$python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: --dest "$download" \
    "llama-cpp-python==$llama" >&2
  mkdir -p "$folder/trl" "$folder/llama"
  "$python" -m zipfile -e "$download"/trl-*.whl "$download/trl"
  cp "$download"/trl/trl/chat_templates/*.jinja "$folder/trl/"
  tar -xzf "$download"/llama_cpp_python-*.tar.gz -C "$download" --wildcards '*/models/templates/*.jinja'
  find "$download" -path '*/models/templates/*.jinja' -exec cp {} "$folder/llama/" \;
  touch "$folder/complete"
fi
echo "$folder"

#!/usr/bin/env bash
# fuzz.sh TIME: runs every fuzz target of the tree for TIME.
set -euo pipefail
cd "$(dirname "$0")/.."

# fuzz TIME PACKAGE TARGET runs one target. When the time is over in the middle of an input, go test reports a
# failure of the target. A real failure names the input.
fuzz() {
  local output
  output=$(mktemp)
  if go test -run '^$' -fuzz "^$3\$" -fuzztime "$1" "$2" 2>&1 | tee "$output"; then
    rm -f "$output"
    return
  fi
  if grep -q '^ *context deadline exceeded$' "$output" && ! grep -q 'Failing input' "$output"; then
    echo "the time was over in the middle of an input; nothing was found"
    rm -f "$output"
    return
  fi
  rm -f "$output"
  return 1
}

status=0
while IFS=: read -r file line; do
  target=${line#func }
  target=${target%%(*}
  echo "== ./$(dirname "$file") $target"
  fuzz "$1" "./$(dirname "$file")" "$target" || status=1
done < <(grep -rE '^func Fuzz' --include='*_test.go' internal)
exit "$status"

#!/usr/bin/env bash
# chart-image.sh CHART: prints the image that a chart, or the archive of one, installs by default. All containers have the same.
set -euo pipefail
cd "$(dirname "$0")/.."
images=$(go tool -modfile=hack/tools/go.mod helm template demo "$1" --set tinkersim.enabled=true |
  sed -n 's/^ *\(- \)\{0,1\}image: *//p; s/^ *- --image=//p' | tr -d '"' | sort -u)
[[ $(wc -l <<<"$images") == 1 && -n $images ]] || {
  echo "chart-image: $1 installs not one image but: ${images//$'\n'/, }" >&2
  exit 1
}
echo "$images"

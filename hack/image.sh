#!/usr/bin/env bash
# image.sh IMAGE TAR: builds the programs statically and packs them into one image, an archive that
# containerd, kind and Docker load. Needs Go alone.
set -euo pipefail
cd "$(dirname "$0")/.."
image=$1 tar=$2

out=$PWD/.cache/image
mkdir -p "$out" "$(dirname "$tar")"
CGO_ENABLED=0 GOOS=linux go build -trimpath -ldflags "-s -w" -o "$out/" ./cmd/manager ./cmd/learner ./cmd/rollout ./cmd/tinkersim
binaries=()
for name in manager learner rollout tinkersim; do
  binaries+=(--binary "$out/$name=/$name")
done
tar=$(realpath -m "$tar")
go -C hack/image run . "${binaries[@]}" --entrypoint /manager --user 65532:65532 --tag "$image" --out "$tar"

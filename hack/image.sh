#!/usr/bin/env bash
# image.sh IMAGE TAR: builds the programs statically and packs them into one image archive. VERSION is the version
# that they report.
set -euo pipefail
cd "$(dirname "$0")/.."
image=$1 archive=$2
programs=(manager broker learner rollout runner tinkersim)
ldflags="-s -w"
# Pages that gRPC would serve for debugging use html/template, for which the linker keeps the methods of all types. The client of
# Google Cloud Storage has parts for gRPC, with those of a service mesh, which are not used: it speaks HTTP here.
tags=$(cat hack/build-tags)
if [[ -n "${VERSION:-}" ]]; then
  ldflags+=" -X github.com/tinker-operator/tinker-operator/internal/version.version=$VERSION"
fi

mkdir -p .cache/image
for i in "${!programs[@]}"; do
  echo "building ${programs[i]} ($((i + 1)) of ${#programs[@]})"
  CGO_ENABLED=0 GOOS=linux go build -trimpath -tags "$tags" -ldflags "$ldflags" -o .cache/image/ "./cmd/${programs[i]}"
done
hack/pack-image.sh "$image" "$archive" 65532 .cache/image "${programs[@]}"
echo "$image is in $archive ($(du -h "$archive" | cut -f 1))"

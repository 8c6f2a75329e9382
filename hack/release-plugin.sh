#!/usr/bin/env bash
# release-plugin.sh VERSION DIR: makes archives of kubectl-tinker for Linux and macOS on both architectures, and the
# manifest by which krew installs them. The same commit makes the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$1 out=$2
url=https://github.com/tinker-operator/tinker-operator/releases/download/v$version

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
cat >"$out/tinker.yaml" <<EOF
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: tinker
spec:
  version: v$version
  homepage: https://github.com/tinker-operator/tinker-operator
  shortDescription: Create, watch and compare RL training runs
  description: |
    Creates, plans and forks TrainingRuns of tinker-operator, which train language models with reinforcement learning
    against the Tinker API; shows their figures, conversations and checkpoints, and says why a run waits or does not
    learn. "kubectl tinker try" plays an environment on this machine, without a cluster.
  caveats: |
    All commands but try, tokens, render and serve of a base model need a cluster with tinker-operator.
  platforms:
EOF
for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do
  os=${platform%/*} arch=${platform#*/}
  archive=kubectl-tinker-$version-$os-$arch.tar.gz
  rm -rf "$work/tree"
  mkdir "$work/tree"
  GOOS=$os GOARCH=$arch CGO_ENABLED=0 go build -trimpath -tags "$(cat hack/build-tags)" \
    -ldflags "-s -w -X github.com/tinker-operator/tinker-operator/internal/version.version=v$version" \
    -o "$work/tree/kubectl-tinker" ./cmd/kubectl-tinker
  cp LICENSE "$work/tree"
  tar --sort=name --owner=0 --group=0 --numeric-owner --mode=755 --mtime=@0 -C "$work/tree" -cf - kubectl-tinker LICENSE |
    gzip -n9 >"$out/$archive"
  cat >>"$out/tinker.yaml" <<EOF
  - selector:
      matchLabels: {os: $os, arch: $arch}
    uri: $url/$archive
    sha256: $(sha256sum "$out/$archive" | cut -d' ' -f1)
    bin: kubectl-tinker
EOF
done

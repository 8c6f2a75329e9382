#!/usr/bin/env bash
# release.sh VERSION: makes everything that a release publishes in dist/: the archives of both images for each architecture
# of nodes, the chart, an SBOM (CycloneDX) for each program of the image, kubectl-tinker for each platform with its manifest
# for krew, and SHA256SUMS. It publishes nothing. Each archive names its image with the suffix of its architecture:
# whoever publishes them joins these under the tag of the chart.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1#v}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || {
  echo "release: VERSION is '$1'; give a semantic version, for instance VERSION=0.2.0" >&2
  exit 1
}
tool() { go tool -modfile=hack/tools/go.mod "$@"; }

rm -rf dist/release
mkdir -p dist/release
export VERSION=v$version
tool helm package charts/tinker-operator --version "$version" --app-version "$version" --destination dist/release >/dev/null
image=$(hack/chart-image.sh "dist/release/tinker-operator-$version.tgz") # so that chart and image cannot name two tags
# The SBOMs are of the programs that are built last.
for arch in arm64 amd64; do
  GOARCH=$arch hack/image.sh "$image-$arch" "dist/release/tinker-operator-$version-image-$arch.tar"
  ARCH=$arch hack/environment-image.sh python "${image%:*}-python:${image##*:}-$arch" \
    "dist/release/tinker-operator-python-$version-image-$arch.tar"
done
hack/release-plugin.sh "$version" dist/release
for program in manager broker learner rollout runner tinkersim; do
  tool cyclonedx-gomod bin -json -std -version "v$version" \
    -output "dist/release/$program-$version.cdx.json" ".cache/image/$program" 2>/dev/null
done
(cd dist/release && sha256sum -- * >../SHA256SUMS && mv ../SHA256SUMS .)
ls -l dist/release

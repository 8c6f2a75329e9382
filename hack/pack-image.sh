#!/usr/bin/env bash
# pack-image.sh IMAGE TAR UID FOLDER PROGRAM...: packs static programs of a folder into an image of one layer and
# writes it in the format of `docker save`, which containerd, kind and Docker load. The first program is the
# entrypoint. It needs GNU tar, and no Docker, base image or registry. The same programs give the same bytes:
# times are fixed and entries are sorted.
set -euo pipefail
image=$1 archive=$2 uid=$3 folder=$4
shift 4
arch=$(go env GOARCH)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# pack FOLDER FILE...: writes a tar of the files, which belong to root.
pack() { tar -C "$1" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=0755 -cf - "${@:2}"; }

pack "$folder" "$@" >"$work/layer.tar"
layer=$(sha256sum "$work/layer.tar" | cut -d ' ' -f 1)
gzip -n "$work/layer.tar"
cat >"$work/config.json" <<CONFIG
{"architecture": "$arch", "os": "linux", "created": "1970-01-01T00:00:00Z",
 "config": {"Entrypoint": ["/$1"], "User": "$uid:$uid", "WorkingDir": "/"},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$layer"]},
 "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "hack/pack-image.sh"}]}
CONFIG
printf '[{"Config": "config.json", "RepoTags": ["%s"], "Layers": ["layer.tar.gz"]}]' "$image" >"$work/manifest.json"
mkdir -p "$(dirname "$archive")"
pack "$work" config.json layer.tar.gz manifest.json >"$archive.partial"
mv "$archive.partial" "$archive"

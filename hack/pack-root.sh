#!/usr/bin/env bash
# pack-root.sh IMAGE TAR ROOT SOURCE ARCH: packs a root file system and the files of a folder, as /environment, into an image of two
# layers, in the format of `docker save`. The image runs environment.py as user 65532, or python3 if the folder has none.
set -euo pipefail
image=$1 archive=$2 root=$3 source=$4 arch=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

pack() { tar -C "$1" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - "${@:2}"; }

mkdir -p "$work/files/environment"
tar -C "$source" --exclude=__pycache__ --exclude=.git -cf - . | tar -C "$work/files/environment" --no-same-owner -xf -
entrypoint='"/usr/bin/python3"'
[[ ! -e $source/environment.py ]] || entrypoint+=', "/environment/environment.py"'
chmod -R a+rX "$work/files"
pack "$root" . >"$work/root.tar"
pack "$work/files" environment >"$work/files.tar"
digests=$(cd "$work" && sha256sum root.tar files.tar | sed 's/\([0-9a-f]*\) .*/"sha256:\1"/' | paste -sd ,)
gzip -n -1 "$work/root.tar" "$work/files.tar"
cat >"$work/config.json" <<CONFIG
{"architecture": "$arch", "os": "linux", "created": "1970-01-01T00:00:00Z",
 "config": {"Entrypoint": [$entrypoint], "User": "65532:65532", "WorkingDir": "/environment",
  "Env": ["PATH=/usr/bin:/bin", "PYTHONPATH=/environment:/opt/environment", "PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1", "HOME=/tmp"]},
 "rootfs": {"type": "layers", "diff_ids": [$digests]},
 "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "hack/environment-image.sh"},
  {"created": "1970-01-01T00:00:00Z", "created_by": "hack/environment-image.sh"}]}
CONFIG
printf '[{"Config": "config.json", "RepoTags": ["%s"], "Layers": ["root.tar.gz", "files.tar.gz"]}]' "$image" >"$work/manifest.json"
mkdir -p "$(dirname "$archive")"
pack "$work" config.json root.tar.gz files.tar.gz manifest.json >"$archive.partial"
mv "$archive.partial" "$archive"

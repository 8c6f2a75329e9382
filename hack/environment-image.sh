#!/usr/bin/env bash
# environment-image.sh NAME IMAGE TAR: makes the image of config/samples/environments/NAME, or of the folder NAME if it has a
# slash, as config/samples/environments/Dockerfile would: from Debian's packages and packages of the Python package index,
# without Docker. It needs Debian or Ubuntu, and root, and installs mmdebstrap and python3-venv where they are missing. What
# requirements-no-deps.txt of the folder names is installed without dependencies. debian.txt of the folder names packages of
# Debian, one a line, such as the programs that commands of an agent need. The archive has the format of `docker save`. The image
# of a folder without environment.py runs python3. That of the folder python is the chart's images.python. ARCH=arm64 makes an
# image for nodes of that architecture, of packages that have wheels for it.
set -euo pipefail
cd "$(dirname "$0")/.."
name=${1:?give the name of a folder of config/samples/environments, or a path with a slash} image=$2 archive=$3
source=config/samples/environments/$name
[[ $name != */* ]] || { source=${name%/} name=$(basename "$name"); }
[[ -f $source/requirements.txt ]] ||
  { echo "environment-image: there is no $source/requirements.txt; give a path, or one of the folders: $(cd config/samples/environments && ls -d ./*/ | tr -d './' | tr '\n' ' ')" >&2; exit 1; }
. /etc/os-release
[[ ${ID:-} == debian || ${ID:-} == ubuntu ]] ||
  { echo "environment-image: this needs Debian or Ubuntu; elsewhere build config/samples/environments/Dockerfile" >&2; exit 1; }
[[ $(id -u) == 0 ]] || { echo "environment-image: this needs root; elsewhere build config/samples/environments/Dockerfile" >&2; exit 1; }
command -v mmdebstrap >/dev/null || hack/install-packages.sh mmdebstrap mmdebstrap
[[ -n ${PYTHON:-} ]] || hack/need-python.sh

here=$(dpkg --print-architecture)
arch=${ARCH:-$here}
wheels=()
if [[ $arch != "$here" ]]; then
  declare -A machines=([amd64]=x86_64 [arm64]=aarch64)
  [[ -n ${machines[$arch]:-} ]] || { echo "environment-image: ARCH is '$arch', want amd64 or arm64" >&2; exit 1; }
  for version in 2014 _2_17 _2_28 _2_34; do wheels+=(--platform "manylinux${version}_${machines[$arch]}"); done
  wheels+=(--only-binary :all:)
fi

# Packages that have no wheel are built here, so that the interpreter has to be of Debian's minor version.
python=${PYTHON:-python3}
requirements=("$source"/requirements*.txt)
programs=
[[ ! -e $source/debian.txt ]] || programs=$(sed 's/#.*//; /^ *$/d; s/^/,/' "$source/debian.txt" | tr -d ' \n')
digest=$({ cat "${requirements[@]}"; echo "$programs"; "$python" -VV; echo "$VERSION_CODENAME $arch"; cat hack/environment-image.sh; } |
  sha256sum | cut -c 1-16)
base=.cache/environments/$name-$digest
if [[ ! -e $base/complete ]]; then
  rm -rf "$base"
  mkdir -p "$base/layer/opt/environment"
  echo "environment-image: extracting Debian's Python" >&2
  mmdebstrap --quiet --variant=extract --architectures="$arch" \
    --include=python3-minimal,libpython3-stdlib,libgomp1,libstdc++6,ca-certificates"$programs" \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    "$VERSION_CODENAME" "$base/root.tar" >&2
  tar -C "$base/layer" --exclude='./dev/*' -xf "$base/root.tar"
  rm "$base/root.tar"
  theirs=$(basename "$(readlink -f "$base/layer/usr/bin/python3")") ours=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
  [[ $theirs == "$ours" ]] ||
    { echo "environment-image: Debian $VERSION_CODENAME has $theirs and $python is $ours; name another interpreter with PYTHON=" >&2; exit 1; }
  echo "environment-image: installing $(cat "${requirements[@]}" | grep -v '^#' | tr '\n' ' ')" >&2
  "$python" -m venv "$base/venv"
  "$base/venv/bin/pip" install --quiet --disable-pip-version-check --no-compile "${wheels[@]}" --requirement "$source/requirements.txt" \
    --target "$base/layer/opt/environment" >&2
  [[ ! -e $source/requirements-no-deps.txt ]] ||
    "$base/venv/bin/pip" install --quiet --disable-pip-version-check --no-compile --no-deps "${wheels[@]}" \
      --requirement "$source/requirements-no-deps.txt" --target "$base/layer/opt/environment" >&2
  rm -rf "$base/venv"
  find "$base/layer/opt/environment" -type d \( -name tests -o -name __pycache__ \) -prune -exec rm -rf {} +
  touch "$base/complete"
fi
hack/pack-root.sh "$image" "$archive" "$base/layer" "$source" "$arch"
echo "$image is in $archive ($(du -h "$archive" | cut -f 1))"

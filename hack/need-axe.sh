#!/usr/bin/env bash
# Prints the path of the script of axe-core (MPL-2.0), with which tests check that the pages of kubectl tinker ui can be
# read by everybody. Tests alone load it. npm fetches the package once, into .cache/ui. Prints nothing where the package
# cannot be had, and fails where it is another one than the one that was looked at.
set -euo pipefail
cd "$(dirname "$0")/.."
package=axe-core version=4.14.1
sha256=e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745
folder="$PWD/.cache/ui/$package-$version"
if [[ ! -e "$folder/axe.min.js" ]]; then
  mkdir -p "$folder"
  work=$(mktemp -d -p "$folder")
  trap 'rm -rf "$work"' EXIT
  if ! (cd "$work" && npm pack --silent "$package@$version") >/dev/null; then
    echo "need-axe: npm cannot fetch $package $version: install npm and connect it to its registry" >&2
    exit 0
  fi
  if ! echo "$sha256  $work/$package-$version.tgz" | sha256sum --check --quiet; then
    echo "need-axe: $package $version is another package than its SHA-256 says: do not use it, and find out why" >&2
    exit 1
  fi
  tar -xzf "$work/$package-$version.tgz" -C "$work" package/axe.min.js
  mv "$work/package/axe.min.js" "$folder/axe.min.js"
fi
echo "$folder/axe.min.js"

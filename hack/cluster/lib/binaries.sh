# shellcheck shell=bash
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
#
# Builds the cluster's programs from Go modules, and its own images from those. A program is built
# again only when its module's pinned versions or sources have changed.

kubernetes_version() {
	awk '$1 == "k8s.io/kubernetes" { print $2 }' "$here/kubernetes/go.mod"
}

# fingerprint FOLDER names the pinned versions and the sources of the module in FOLDER.
fingerprint() {
	find "$1" -type f \( -name '*.go' -o -name go.mod -o -name go.sum \) | LC_ALL=C sort |
		xargs cat | cksum
}

# programs is how many are wanted, and program the number of the one that is built now.
programs=0 program=0

# build_program FOLDER PACKAGE NAME [LDFLAGS] builds bin/NAME unless it exists already.
build_program() {
	local folder=$1 package=$2 name=$3 flags="-s -w ${4:-}" want began=$SECONDS
	program=$((program + 1))
	want="$(fingerprint "$folder") $package $flags"
	[[ -x $bin/$name && $(cat "$bin/.$name" 2>/dev/null) == "$want" ]] && return
	command -v go >/dev/null || die "building $name needs Go"
	say "building $name ($program of $programs)"
	mkdir -p "$bin"
	(cd "$folder" && CGO_ENABLED=0 GOWORK=off GOFLAGS='' GOARCH='' GOOS='' \
		go build -trimpath -buildvcs=false -ldflags "$flags" -o "$bin/$name.partial" "$package" 9>&-)
	mv "$bin/$name.partial" "$bin/$name"
	printf '%s' "$want" >"$bin/.$name"
	say "built $name in $((SECONDS - began)) s"
}

# build_kubernetes NAME... builds programs of Kubernetes, with the version that they report.
build_kubernetes() {
	local version name key=k8s.io/component-base/version
	version=$(kubernetes_version)
	local major=${version%%.*} minor=${version#*.}
	for name in "$@"; do
		build_program "$here/kubernetes" "k8s.io/kubernetes/cmd/$name" "$name" \
			"-X $key.gitVersion=$version -X $key.gitMajor=${major#v} -X $key.gitMinor=${minor%%.*}"
	done
}

# build_test_binaries builds what tests against an API server without nodes need.
build_test_binaries() {
	programs=$((programs + 4))
	announce_build
	build_program "$here/kubernetes" go.etcd.io/etcd/server/v3 etcd
	build_kubernetes kube-apiserver kube-controller-manager kubectl
}

build_cluster_binaries() {
	programs=5
	build_test_binaries
	build_kubernetes kube-scheduler kube-proxy kubelet
	build_program "$here/images" ./coredns coredns
	build_program "$here/images" ./pause pause
	pack_image pause 65535
	pack_image coredns 65532
}

# announce_build warns once, before the first build of all.
announce_build() {
	[[ -d $bin ]] || say "building Kubernetes $(kubernetes_version) from source; 5 to 10 minutes, once"
}

# pack_image NAME UID makes the image cluster.local/NAME:1 of the program NAME. The program is
# the entrypoint: a pod's sandbox is started without arguments.
pack_image() {
	[[ $images/$1.tar -nt $bin/$1 ]] && return
	"$here/../pack-image.sh" "cluster.local/$1:1" "$images/$1.tar" "$2" "$bin" "$1"
}

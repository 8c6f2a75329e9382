# shellcheck shell=bash
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
#
# Finds what the cluster needs of the machine, and installs the Debian packages that contain it.

# cni_directory prints where the CNI plugins are.
cni_directory() {
	local candidate
	for candidate in /usr/lib/cni /opt/cni/bin /usr/libexec/cni; do
		[[ -x $candidate/bridge && -x $candidate/host-local && -x $candidate/portmap ]] || continue
		printf '%s\n' "$candidate"
		return
	done
	return 1
}

missing_packages() {
	command -v containerd >/dev/null && command -v ctr >/dev/null || echo containerd
	command -v runc >/dev/null || echo runc
	command -v iptables >/dev/null || echo iptables
	command -v ip >/dev/null || echo iproute2
	command -v openssl >/dev/null || echo openssl
	command -v mount >/dev/null && command -v umount >/dev/null || echo mount
	command -v nsenter >/dev/null && command -v setsid >/dev/null || echo util-linux
	cni_directory >/dev/null || echo containernetworking-plugins
}

install_packages() {
	local missing
	mapfile -t missing < <(missing_packages)
	[[ ${#missing[@]} -gt 0 ]] || return 0
	command -v apt-get >/dev/null || die "install ${missing[*]}, or use CLUSTER=kind or CLUSTER=current"
	say "installing ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq 9>&- >&2
	apt-get install -y -qq --no-install-recommends "${missing[@]}" 9>&- >&2
	mapfile -t missing < <(missing_packages)
	[[ ${#missing[@]} -eq 0 ]] || die "still missing after the installation: ${missing[*]}"
}

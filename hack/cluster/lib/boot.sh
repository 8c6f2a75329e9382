#!/usr/bin/env bash
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
#
# The first process of the cluster's own namespaces (mount, pid, network, ipc, uts). When it is killed
# the kernel ends every process, mount, link and firewall rule that was made in them.
#
# usage: boot.sh STATE_FOLDER BRIDGE_ADDRESS/BITS
set -euo pipefail

state=$1
address=$2
# shellcheck source=process.sh
. "$(dirname "$0")/process.sh"

# These are folders at fixed paths that the programs need, each a private one. The state folder gets a short name,
# since the path of a socket must stay below 108 bytes. Mounts become shared only when the old
# /proc has its second place, or the new one would cover that too.
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/cluster /run/machine-proc /run/sysctl
mount --bind "$state" /run/cluster
mount --bind /proc /run/machine-proc
mount -t proc proc /proc
while read -r folder; do
	mount -t tmpfs tmpfs "$folder"
done </run/cluster/mountpoints

# The kubelet sets these, which belong to the whole machine: it is given copies to write.
for name in kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes \
	vm/overcommit_memory vm/panic_on_oom; do
	copy=/run/sysctl/${name//\//.}
	cat "/proc/sys/$name" >"$copy"
	mount --bind "$copy" "/proc/sys/$name"
done
mount --make-rshared /

# The API server writes its host's name into a label, for which not every machine's name is valid.
echo cluster >/proc/sys/kernel/hostname

# The bridge keeps one hardware address: by default it changes as pods come and go.
ip link set lo up
ip link add cni0 address 02:54:4b:00:00:01 type bridge
ip address add "$address" dev cni0
ip link set cni0 up
echo 1 >/proc/sys/net/ipv4/ip_forward

record_self /run/cluster/boot /run/machine-proc
while :; do
	sleep 3600 &
	wait $! || true # waiting also reaps the orphans of the other processes
done

# shellcheck shell=bash
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
#
# Describes whatever of the machine a cluster could leave changed, so that two moments can be compared.

describe_machine() {
	echo "# namespaces of processes"
	local process
	for process in /proc/[0-9]*; do
		readlink "$process"/ns/{mnt,net,pid,ipc,uts} 2>/dev/null || true
	done | sort -u
	echo "# our programs"
	for process in /proc/[0-9]*; do
		readlink "$process/exe" 2>/dev/null || true
	done | grep -E "^$cluster_dir|containerd|runc" || true
	echo "# mounts"
	cat /proc/self/mounts
	echo "# links, addresses, routes and rules"
	ip -oneline link show | cut -d ' ' -f 1-9
	ip -oneline address show | cut -d ' ' -f 1-9
	ip route show table all
	ip rule show
	echo "# firewall"
	grep -v '^#' /proc/net/ip_tables_names 2>/dev/null || true
	iptables-save | grep -v '^#' || true
	echo "# cgroups"
	find /sys/fs/cgroup -type d | grep -c . || true
	find /sys/fs/cgroup -name 'tinker*'
	cat /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null || true
	echo "# folders"
	ls -d /run/* /var/lib/* /var/log/* /opt/* /etc/cni* /tmp/hostpath_pv 2>/dev/null || true
	ls -A "$cluster_dir"
	echo "# kernel settings"
	sysctl --all 2>/dev/null | grep -vE '^(fs\.(dentry-state|file-nr|inode|quota)|kernel\.(ns_last_pid|random\.|pty\.nr)|net\.netfilter\.nf_conntrack_count)'
}

# check_same_machine compares with what was written down before the first start. The kernel may
# take a moment to forget a namespace.
check_same_machine() {
	local attempt
	for attempt in {1..50}; do
		same_machine && return
		sleep 0.2
	done
	cat "$work/difference"
	die "the machine differs, after $attempt looks"
}

# check_changed_machine shows that the comparison would notice a cluster.
check_changed_machine() {
	! same_machine || die "the comparison sees no difference"
	grep -c tinker0 "$work/difference"
}

same_machine() {
	describe_machine >"$work/after"
	diff "$work/before" "$work/after" >"$work/difference"
}

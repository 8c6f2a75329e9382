# shellcheck shell=bash
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
#
# The cgroups of the pods, below one folder of our own in each hierarchy. Version 1 has a
# hierarchy for each controller, version 2 has one for all.

cgroup_mounts() {
	awk '$3 == "cgroup" || $3 == "cgroup2" { print $2 }' /proc/mounts
}

cgroup_version() {
	if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
		echo 2
		return
	fi
	echo 1
}

# create_cgroups NUMBER makes the folders of a node; the kubelet does not start without them.
create_cgroups() {
	[[ $(cgroup_version) == 1 ]] || delegate_controllers
	local folder
	while read -r folder; do
		mkdir -p "$folder/$cgroup/node$1"
	done < <(cgroup_mounts)
}

# delegate_controllers lets the nodes' cgroups of version 2 use the controllers that the kubelet
# looks for, and writes down which were delegated before.
delegate_controllers() {
	local root=/sys/fs/cgroup name
	[[ -e $state/controllers ]] || cat "$root/cgroup.subtree_control" >"$state/controllers"
	mkdir -p "$root/$cgroup"
	for name in cpu cpuset hugetlb io memory pids; do
		grep -qw "$name" "$root/cgroup.controllers" || continue
		echo "+$name" >"$root/cgroup.subtree_control" ||
			die "cannot delegate the cgroup controller $name; in a container use the host's cgroup namespace"
		echo "+$name" >"$root/$cgroup/cgroup.subtree_control"
	done
}

# withdraw_controllers ends every delegation that did not exist before; runc adds some of its own.
withdraw_controllers() {
	local control=/sys/fs/cgroup/cgroup.subtree_control name
	for name in $(cat "$control"); do
		grep -qw "$name" "$state/controllers" && continue
		echo "-$name" >"$control" || say "the cgroup controller $name stays delegated"
	done
}

# remove_cgroups removes what is left once every process has ended; the kernel may take a moment.
remove_cgroups() {
	wait_until 20 "the cgroups to become empty" try_remove_cgroups
	[[ ! -e $state/controllers ]] || withdraw_controllers
}

try_remove_cgroups() {
	local folder left=0
	while read -r folder; do
		[[ -d $folder/$cgroup ]] || continue
		find "$folder/$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null || left=1
	done < <(cgroup_mounts)
	[[ $left -eq 0 ]]
}

# cgroup_pids CONTAINER_ID prints the machine's pids of a container.
cgroup_pids() {
	local folder
	while read -r folder; do
		# A folder that goes while find is in it makes find fail; what it found still counts.
		find "$folder/$cgroup" -type d -name "$1" -exec find {} -name cgroup.procs \; 2>/dev/null || true
	done < <(cgroup_mounts) | xargs -r cat 2>/dev/null | sort -nu
}

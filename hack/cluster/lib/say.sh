# shellcheck shell=bash
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
#
# Functions for messages, waiting and locking. Messages go to stderr: stdout is for results.

say() {
	printf 'cluster: %s\n' "$*" >&2
}

die() {
	say "$@"
	exit 1
}

# wait_until SECONDS WHAT COMMAND... runs the command until it succeeds, and dies after SECONDS.
wait_until() {
	local deadline=$((SECONDS + $1)) what=$2
	shift 2
	until "$@"; do
		[[ $SECONDS -lt $deadline ]] || die "gave up waiting for $what"
		sleep 0.1
	done
}

# lock keeps a second call from changing the same folder at the same time. The lock is descriptor
# 9; whatever outlives this script must be started with that descriptor closed.
lock() {
	mkdir -p "$cluster_dir" && [[ -w $cluster_dir ]] || die "cannot write to $cluster_dir"
	command -v flock >/dev/null || return 0
	exec 9>"$cluster_dir/lock"
	flock --nonblock 9 && return
	say "waiting for another call to end"
	flock 9
}

# kubectl runs the kubectl of this folder, or the machine's, against the cluster.
kubectl() {
	local program=$bin/kubectl
	[[ -x $program ]] || program=$(type -P kubectl) || die "there is no kubectl"
	NO_PROXY='*' no_proxy='*' "$program" --kubeconfig "$kubeconfig" "$@"
}

require_up() {
	[[ -s $kubeconfig ]] || die "there is no cluster; start one with: CLUSTER=$mode $here/cluster up"
}

# shellcheck shell=bash
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
#
# CLUSTER=current: the cluster of the current kubectl context. It belongs to somebody else:
# nothing here starts, stops or changes it.

cluster_require() {
	type -P kubectl >/dev/null || die "CLUSTER=current needs kubectl and a context"
}

cluster_up() {
	mkdir -p "$state"
	(umask 077 && command kubectl config view --minify --flatten --raw >"$kubeconfig")
	kubectl get --raw /readyz >/dev/null || die "the current context does not answer"
}

cluster_down() {
	rm -rf "$state"
}

cluster_status() {
	[[ -s $kubeconfig ]] || { echo "down" && exit 3; }
	kubectl get nodes
}

refuse() {
	die "CLUSTER=current does not touch the nodes: $1"
}

cluster_load() {
	refuse "push the image to a registry that the cluster pulls from, for instance with 'crane push dist/image.tar IMAGE'"
}

cluster_pids() {
	refuse "processes cannot be seen from here"
}

cluster_signal() {
	refuse "processes cannot be signalled from here; use kubectl exec"
}

cluster_kill_kubelet() {
	refuse "kubelets cannot be stopped from here"
}

cluster_start_kubelet() {
	refuse "kubelets cannot be started from here"
}

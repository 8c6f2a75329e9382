# shellcheck shell=bash
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
#
# CLUSTER=kind: a kind cluster where Docker runs. kind brings storage class, DNS and nodes.

kind_name=tinker-operator

kind() {
	command kind "$@" --name "$kind_name"
}

cluster_require() {
	type -P kind >/dev/null || die "CLUSTER=kind needs the program kind"
	docker info &>/dev/null || die "CLUSTER=kind needs a running Docker"
}

cluster_up() {
	mkdir -p "$state"
	command kind get clusters 2>/dev/null | grep -qx "$kind_name" && kind export kubeconfig --kubeconfig "$kubeconfig" && return
	local number
	{
		printf '%s\n' "kind: Cluster" "apiVersion: kind.x-k8s.io/v1alpha4" "nodes:" "- role: control-plane"
		for ((number = 2; number <= ${NODES:-1}; number++)); do
			echo "- role: worker"
		done
	} | kind create cluster --config - --kubeconfig "$kubeconfig" --wait 120s
}

cluster_down() {
	[[ -d $state ]] || return 0
	kind delete cluster --kubeconfig "$kubeconfig"
	rm -rf "$state"
}

cluster_status() {
	[[ -s $kubeconfig ]] || { echo "down" && exit 3; }
	kubectl get nodes
}

cluster_load() {
	kind load image-archive "$1"
}

# container_field NAMESPACE/POD CONTAINER prints the node and the id of a container.
container_field() {
	kubectl --namespace "${1%%/*}" get pod "${1#*/}" \
		-o jsonpath="{.spec.nodeName} {range .status['initContainerStatuses','containerStatuses'][?(@.name=='$2')]}{.containerID}{end}"
}

cluster_pids() {
	local node id
	read -r node id < <(container_field "$1" "$2")
	[[ -n $id ]] || die "pod $1 has no running container $2"
	docker exec "$node" sh -c 'find /sys/fs/cgroup -type d -name "*$0*" -exec cat {}/cgroup.procs \; | sort -nu' "${id##*/}"
}

cluster_signal() {
	local node pids
	read -r node _ < <(container_field "$1" "$2")
	pids=$(cluster_pids "$1" "$2")
	xargs docker exec "$node" kill -s "$3" <<<"$pids"
}

cluster_kill_kubelet() {
	docker exec "$1" systemctl kill --signal KILL kubelet
	docker exec "$1" systemctl stop kubelet
}

cluster_start_kubelet() {
	docker exec "$1" systemctl start kubelet
}

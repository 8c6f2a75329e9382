# shellcheck shell=bash
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
#
# The default cluster: Kubernetes on this machine, in namespaces of its own, without Docker and
# without a registry. Linux and root only.

bridge_address=10.88.0.1 # API server, first node, and the pods' gateway
machine_address=10.88.0.254
pod_network=10.88.0.0/16
service_network=10.96.0.0/16
api_service=10.96.0.1
dns_service=10.96.0.10
link=tinker0         # this machine's end of the cable to the bridge
cgroup=tinker-cluster # folder of the pods in each cgroup hierarchy
fast_node_loss=${FAST_NODE_LOSS:-0}
gvisor=${GVISOR:-0}
PATH=$PATH:/usr/sbin:/sbin

# shellcheck source=process.sh
. "$here/lib/process.sh"
# shellcheck source=packages.sh
. "$here/lib/packages.sh"
# shellcheck source=certificates.sh
. "$here/lib/certificates.sh"
# shellcheck source=cgroups.sh
. "$here/lib/cgroups.sh"
# shellcheck source=control_plane.sh
. "$here/lib/control_plane.sh"
# shellcheck source=node.sh
. "$here/lib/node.sh"
# shellcheck source=volumes.sh
. "$here/lib/volumes.sh"

# cluster_require dies with advice where this kind of cluster cannot run.
cluster_require() {
	local instead="use CLUSTER=kind where Docker runs, or CLUSTER=current for the cluster of your kubectl context"
	[[ $(uname) == Linux ]] || die "the local cluster needs Linux; $instead"
	[[ $(id -u) == 0 ]] || die "the local cluster needs root; $instead"
	command -v go >/dev/null || die "the cluster's programs are built with Go: install it from https://go.dev/dl"
	[[ $cluster_dir != /run/* ]] || die "CLUSTER_DIR must not lie below /run, which the cluster hides from itself"
}

cluster_up() {
	install_packages
	build_cluster_binaries
	[[ $gvisor != 1 ]] || "$here/../gvisor/gvisor" runtime >/dev/null
	if ! booted; then
		cluster_down
		boot
	fi
	local nodes number
	keep_settings
	nodes=$(cat "$state/nodes")
	create_control_plane_certificates
	create_kubeconfig admin "$kubeconfig"
	start_storage_and_api
	for ((number = 1; number <= nodes; number++)); do
		start_node_runtime "$number"
	done
	for ((number = 1; number <= nodes; number++)); do
		wait_until 30 "containerd of node$number" runtime_ready "$number"
		load_own_images "$number"
	done
	wait_until 90 "the API server" api_ready
	start_controllers
	for ((number = 1; number <= nodes; number++)); do
		start_node_kubelet "$number"
	done
	apply_objects
	wait_until 120 "the nodes, DNS and the default service account" all_ready
}

booted() {
	process_alive "$state/boot"
}

# boot makes the namespaces and the veth pair between them and this machine.
boot() {
	local used
	used=$(ip -4 route show root "$pod_network" && ip -4 route show root "$service_network")
	[[ -z $used ]] || die "the cluster's networks are in use on this machine: $used"
	mkdir -p "$state"/{log,pid}
	chmod 755 "$state"
	create_mountpoints
	setsid unshare --mount --pid --net --ipc --uts --fork --kill-child \
		"$here/lib/boot.sh" "$state" "$bridge_address/16" </dev/null >"$state/log/boot.log" 2>&1 9>&- &
	wait_until 10 "the namespaces" booting_ended $!
	ip link add "$link" type veth peer name uplink netns "$(recorded_pid "$state/boot")"
	inside ip link set uplink master cni0 up
	ip address add "$machine_address/16" dev "$link"
	ip link set "$link" up
	ip route add "$service_network" via "$bridge_address" dev "$link"
	# The API server calls webhooks at Services: kube-proxy rewrites only what has a route.
	inside ip route add "$service_network" dev cni0
}

# booting_ended PID waits for boot.sh under the process PID, and dies with the end of its output.
booting_ended() {
	booted && return
	kill -0 "$1" 2>/dev/null && return 1
	tail -n 5 "$state/log/boot.log" >&2
	die "the namespaces could not be made"
}

# create_mountpoints makes the folders that boot.sh covers and writes down which did not exist.
create_mountpoints() {
	local folder
	for folder in /var/lib/cni /var/lib/kubelet /var/log/containers; do
		printf '%s\n' "$folder" >>"$state/mountpoints"
		[[ -d $folder ]] && continue
		printf '%s\n' "$folder" >>"$state/created"
		mkdir "$folder"
	done
}

# keep_settings writes down what the running cluster was started with. Nodes may be added to it.
keep_settings() {
	local running=0
	[[ ! -e $state/nodes ]] || running=$(cat "$state/nodes")
	if [[ ${NODES:-1} -gt $running ]]; then
		printf '%s\n' "${NODES:-1}" >"$state/nodes"
	fi
	fast_node_loss=$(kept FAST_NODE_LOSS fast_node_loss)
	gvisor=$(kept GVISOR gvisor)
}

# kept VARIABLE NAME prints the setting that the running cluster has, and writes it down for a new one.
kept() {
	local file=$state/$2
	[[ -e $file ]] || printf '%s\n' "${!2}" >"$file"
	[[ ${!1:-} == "" || $(cat "$file") == "${!2}" ]] || say "$1=${!2} takes effect after the next down"
	cat "$file"
}

# inside runs a command in the cluster's namespaces, with a plain environment.
inside() {
	nsenter --target "$(recorded_pid "$state/boot")" --mount --pid --net --ipc --uts -- \
		env -i PATH="$PATH" HOME=/root "$@" 9>&-
}

server_alive() {
	process_alive "$state/pid/$1"
}

# server_must_live dies with the end of a server's log if the server has ended.
server_must_live() {
	server_alive "$1" && return
	tail -n 15 "$state/log/$1.log" >&2 || true
	die "$1 has ended; its log is $state/log/$1.log"
}

# start_server NAME COMMAND... starts a server in the namespaces, unless it runs.
start_server() {
	local name=$1
	shift
	server_alive "$name" && return
	say "starting $name"
	rm -f "$state/pid/$name"
	inside setsid --fork "$here/lib/serve.sh" "$name" "$@" </dev/null
	wait_until 10 "$name to start" test -s "$state/pid/$name"
}

load_own_images() {
	[[ ! -e $state/node$1/loaded ]] || return 0
	load_image "$1" "$images/pause.tar"
	load_image "$1" "$images/coredns.tar"
	touch "$state/node$1/loaded"
}

# apply_objects creates what a cluster needs beside its servers: DNS, the storage class, volumes.
apply_objects() {
	{
		sed "s/DNS_SERVICE/$dns_service/" "$here/lib/objects.yaml"
		volume_objects
		[[ $gvisor != 1 ]] || cat "$here/../gvisor/runtimeclass.yaml"
	} | kubectl apply --server-side --field-manager=cluster --filename - >"$state/log/apply.log"
	free_released_volumes
}

all_ready() {
	local nodes
	nodes=$(cat "$state/nodes")
	server_must_live kube-controller-manager
	server_must_live node1-kubelet
	[[ $(kubectl get nodes --no-headers 2>/dev/null | awk '$2 == "Ready"' | wc -l) -ge $nodes ]] &&
		[[ $(kubectl --namespace kube-system get daemonset coredns -o 'jsonpath={.status.numberReady}') -ge $nodes ]] &&
		kubectl --namespace default get serviceaccount default &>/dev/null
}

cluster_down() {
	[[ -d $state ]] || return 0
	[[ $(id -u) == 0 ]] || die "the cluster was started by root"
	say "stopping"
	end_process "$state/boot"
	wait_until 20 "the link $link to vanish" link_is_missing
	remove_cgroups
	if [[ -e $state/created ]]; then
		xargs -r rmdir <"$state/created"
	fi
	rm -rf "$state"
}

link_is_missing() {
	! ip link show "$link" &>/dev/null
}

cluster_status() {
	if ! booted; then
		echo "down"
		exit 3
	fi
	echo "up: Kubernetes $(kubernetes_version), cgroup version $(cgroup_version), KUBECONFIG=$kubeconfig"
	local record ended=0
	for record in "$state"/pid/*; do
		if ! process_alive "$record"; then
			printf '%-26s ended\n' "${record##*/}"
			ended=1
			continue
		fi
		printf '%-26s pid %-8s %s MB\n' "${record##*/}" "$(recorded_pid "$record")" \
			"$(awk '/^VmRSS/ { print int($2 / 1024) }' "/proc/$(recorded_pid "$record")/status")"
	done
	kubectl get nodes
	return $ended
}

cluster_load() {
	local number nodes
	nodes=$(cat "$state/nodes")
	for ((number = 1; number <= nodes; number++)); do
		load_image "$number" "$1"
	done
}

# container_id NAMESPACE/POD CONTAINER prints the id of a container, of init containers too.
container_id() {
	local id
	id=$(kubectl --namespace "${1%%/*}" get pod "${1#*/}" -o jsonpath="{range .status['initContainerStatuses','containerStatuses'][?(@.name=='$2')]}{.containerID}{end}")
	[[ -n $id ]] || die "pod $1 has no running container $2"
	printf '%s\n' "${id##*/}"
}

cluster_pids() {
	local id pids
	id=$(container_id "$1" "$2")
	pids=$(cgroup_pids "$id")
	[[ -n $pids ]] || die "container $2 of pod $1 has no process"
	printf '%s\n' "$pids"
}

cluster_signal() {
	local pids
	pids=$(cluster_pids "$1" "$2")
	xargs kill -s "$3" <<<"$pids"
}

cluster_kill_kubelet() {
	[[ -e $state/pid/$1-kubelet ]] || die "there is no node $1"
	end_process "$state/pid/$1-kubelet"
}

cluster_start_kubelet() {
	[[ -d $state/$1 ]] || die "there is no node $1"
	keep_settings
	start_node_kubelet "${1#node}"
}

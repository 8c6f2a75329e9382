# shellcheck shell=bash
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
#
# Starts and stops nodes. A node is a containerd and a kubelet. Several nodes share this machine's kernel, one bridge and
# the folder of the volumes; each has its own containers, images, cgroups and address.

node_address() {
	printf '10.88.0.%s\n' "$1"
}

# start_node_runtime NUMBER starts the node's containerd.
start_node_runtime() {
	local node=node$1
	mkdir -p "$state/$node"/{cni,plugins,logs}
	create_node_certificate "$1"
	create_cgroups "$1"
	write_network_config "$1" >"$state/$node/cni/10-cluster.conflist"
	write_containerd_config "$1" >"$state/$node/containerd.toml"
	[[ $gvisor != 1 ]] || write_gvisor_config "$1"
	write_kubelet_config "$1" >"$state/$node/kubelet.yaml"
	# The bridge's own address must stay the first: the CNI plugin compares that one.
	[[ $1 == 1 ]] || inside ip address replace "$(node_address "$1")/32" dev cni0
	local path=$PATH
	[[ $gvisor != 1 ]] || path=$bin/gvisor:$PATH # its containerd, which looks for shims in its PATH
	start_server "$node-containerd" env PATH="$path" containerd --config "/run/cluster/$node/containerd.toml"
}

start_node_kubelet() {
	local node=node$1
	local folder=/run/cluster/$node/kubelet
	if [[ $gvisor == 1 && $1 == 1 ]]; then
		# gVisor's shim looks for the volumes of pods nowhere else.
		mkdir -p "$state/$node/kubelet"
		inside sh -c '[ "$1" -ef "$2" ] || mount --bind "$1" "$2"' - "$folder" /var/lib/kubelet
		folder=/var/lib/kubelet
	fi
	start_server "$node-kubelet" "$bin/kubelet" --config="/run/cluster/$node/kubelet.yaml" \
		--kubeconfig="/run/cluster/pki/$node.kubeconfig" --root-dir="$folder" \
		--hostname-override="$node" --node-ip="$(node_address "$1")"
}

# node_ctr NUMBER ARGUMENT... calls the node's containerd.
node_ctr() {
	local number=$1
	shift
	inside ctr --address "/run/node$number/containerd.sock" --namespace k8s.io "$@"
}

runtime_ready() {
	server_must_live "node$1-containerd"
	node_ctr "$1" version &>/dev/null
}

# load_image NUMBER ARCHIVE imports the images of an archive and waits until pods can have them.
load_image() {
	node_ctr "$1" images import - <"$2" >/dev/null
	wait_until 30 "node$1 to take up $2" images_known "$1"
}

# images_known reports whether containerd's Kubernetes side knows every image: it labels those.
images_known() {
	[[ -z $(node_ctr "$1" images ls | awk 'NR > 1 && !/io.cri-containerd.image=managed/') ]]
}

write_network_config() {
	cat <<-END
		{
		  "cniVersion": "1.0.0",
		  "name": "cluster",
		  "plugins": [
		    {
		      "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
		      "ipam": {
		        "type": "host-local", "dataDir": "/run/cluster/node$1/addresses",
		        "ranges": [[{"subnet": "$pod_network", "gateway": "$bridge_address",
		                     "rangeStart": "10.88.$1.1", "rangeEnd": "10.88.$1.254"}]],
		        "routes": [{"dst": "0.0.0.0/0"}]
		      }
		    },
		    {"type": "portmap", "capabilities": {"portMappings": true}}
		  ]
		}
	END
}

# write_containerd_config prints the file in the form that containerd 1.6 reads and 2 translates.
write_containerd_config() {
	local snapshotter=overlayfs
	[[ $(stat -f -c %T "$state") != overlayfs ]] || snapshotter=native # overlays do not stack
	cat <<-END
		version = 2
		root = "/run/cluster/node$1/containerd"
		state = "/run/node$1"
		[grpc]
		  address = "/run/node$1/containerd.sock"
		[plugins."io.containerd.internal.v1.opt"]
		  path = "/run/cluster/node$1/opt"
		[plugins."io.containerd.grpc.v1.cri"]
		  sandbox_image = "cluster.local/pause:1"
		  restrict_oom_score_adj = true
		  netns_mounts_under_state_dir = true
		[plugins."io.containerd.grpc.v1.cri".cni]
		  bin_dir = "$(cni_directory)"
		  conf_dir = "/run/cluster/node$1/cni"
		[plugins."io.containerd.grpc.v1.cri".containerd]
		  snapshotter = "$snapshotter"
		[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
		  runtime_type = "io.containerd.runc.v2"
	END
}

# write_gvisor_config NUMBER adds gVisor to the runtimes of a node, whose pods give it annotations. Its platform needs no kvm.
write_gvisor_config() {
	cat >>"$state/node$1/containerd.toml" <<-END
		[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runsc]
		  runtime_type = "io.containerd.runsc.v1"
		  pod_annotations = ["dev.gvisor.*"]
		[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runsc.options]
		  TypeUrl = "io.containerd.runsc.v1.options"
		  ConfigPath = "/run/cluster/node$1/runsc.toml"
	END
	cat >"$state/node$1/runsc.toml" <<-END
		[runsc_config]
		  platform = "systrap"
	END
}

write_kubelet_config() {
	cat <<-END
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		address: $(node_address "$1")
		healthzPort: 0
		authentication:
		  anonymous: {enabled: false}
		  x509: {clientCAFile: /run/cluster/pki/ca.crt}
		tlsCertFile: /run/cluster/pki/node$1.crt
		tlsPrivateKeyFile: /run/cluster/pki/node$1.key
		clusterDomain: cluster.local
		clusterDNS: [$dns_service]
		resolvConf: ""
		containerRuntimeEndpoint: unix:///run/node$1/containerd.sock
		cgroupDriver: cgroupfs
		cgroupRoot: /$cgroup/node$1
		enforceNodeAllocatable: []
		failCgroupV1: false
		failSwapOn: false
		evictionHard: {memory.available: 100Mi}
		imageGCHighThresholdPercent: 100
		podLogsDir: /run/cluster/node$1/logs
		volumePluginDir: /run/cluster/node$1/plugins
	END
	[[ $fast_node_loss != 1 ]] || printf '%s\n' "nodeStatusUpdateFrequency: 2s" "nodeLeaseDurationSeconds: 8"
}

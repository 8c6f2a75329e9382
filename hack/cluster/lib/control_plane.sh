# shellcheck shell=bash
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
#
# Starts the servers that a cluster has once: etcd, API server, controller manager, scheduler, proxy.

start_storage_and_api() {
	# Nothing here outlives the machine, so etcd need not wait for the disk.
	start_server etcd "$bin/etcd" --data-dir=/run/cluster/etcd --unsafe-no-fsync --log-level=warn \
		--listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379 \
		--listen-peer-urls=http://127.0.0.1:2380
	local tolerations=()
	[[ $fast_node_loss != 1 ]] ||
		tolerations=(--default-not-ready-toleration-seconds=5 --default-unreachable-toleration-seconds=5)
	local pki=/run/cluster/pki
	start_server kube-apiserver "$bin/kube-apiserver" \
		--etcd-servers=http://127.0.0.1:2379 --advertise-address="$bridge_address" \
		--service-cluster-ip-range="$service_network" --allow-privileged=true \
		--authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
		--client-ca-file="$pki/ca.crt" \
		--tls-cert-file="$pki/kube-apiserver.crt" --tls-private-key-file="$pki/kube-apiserver.key" \
		--kubelet-certificate-authority="$pki/ca.crt" --kubelet-preferred-address-types=InternalIP \
		--kubelet-client-certificate="$pki/kubelet-client.crt" --kubelet-client-key="$pki/kubelet-client.key" \
		--service-account-issuer=https://kubernetes.default.svc.cluster.local \
		--service-account-key-file="$pki/service-account.pub" \
		--service-account-signing-key-file="$pki/service-account.key" \
		"${tolerations[@]}"
}

start_controllers() {
	local pki=/run/cluster/pki monitoring=()
	[[ $fast_node_loss != 1 ]] || monitoring=(--node-monitor-period=1s --node-monitor-grace-period=12s)
	# The usual request limits would hold back the first service account for four seconds.
	start_server kube-controller-manager "$bin/kube-controller-manager" \
		--kubeconfig="$pki/kube-controller-manager.kubeconfig" --use-service-account-credentials \
		--leader-elect=false --bind-address=127.0.0.1 --kube-api-qps=500 --kube-api-burst=1000 \
		--root-ca-file="$pki/ca.crt" --service-account-private-key-file="$pki/service-account.key" \
		--cluster-signing-cert-file="$pki/ca.crt" --cluster-signing-key-file="$pki/ca.key" \
		--flex-volume-plugin-dir=/run/cluster/plugins "${monitoring[@]}"
	start_server kube-scheduler "$bin/kube-scheduler" --kubeconfig="$pki/kube-scheduler.kubeconfig" \
		--leader-elect=false --bind-address=127.0.0.1
	# It ends when its file is written again.
	[[ -s $state/kube-proxy.yaml ]] || write_proxy_config >"$state/kube-proxy.yaml"
	start_server kube-proxy "$bin/kube-proxy" --config=/run/cluster/kube-proxy.yaml
}

# write_proxy_config leaves connection tracking alone, which is the machine's. Where bridged
# packets bypass iptables, answers find their way back only if every Service masquerades.
write_proxy_config() {
	local masquerade=true
	[[ ! -e /proc/sys/net/bridge/bridge-nf-call-iptables ]] || masquerade=false
	cat <<-END
		apiVersion: kubeproxy.config.k8s.io/v1alpha1
		kind: KubeProxyConfiguration
		clientConnection: {kubeconfig: /run/cluster/pki/kube-proxy.kubeconfig}
		hostnameOverride: node1
		clusterCIDR: $pod_network
		mode: iptables
		iptables: {masqueradeAll: $masquerade, minSyncPeriod: 200ms}
		conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
	END
}

api_ready() {
	server_must_live etcd
	server_must_live kube-apiserver
	kubectl get --raw /readyz &>/dev/null
}

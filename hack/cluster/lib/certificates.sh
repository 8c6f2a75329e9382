# shellcheck shell=bash
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
#
# The cluster's certificate authority, the certificates that it signs, and the kubeconfigs that
# hold them. Everything is in $state/pki and is deleted with the cluster.

create_authority() {
	local pki=$state/pki
	[[ -s $pki/ca.crt ]] && return
	(umask 077 && mkdir -p "$pki")
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=cluster \
		-keyout "$pki/ca.key" -out "$pki/ca.crt" 2>/dev/null
	openssl ecparam -genkey -name prime256v1 -noout -out "$pki/service-account.key" 2>/dev/null
	openssl ec -in "$pki/service-account.key" -pubout -out "$pki/service-account.pub" 2>/dev/null
}

# create_certificate NAME SUBJECT [ALTERNATIVE_NAMES] signs a certificate for clients, and for
# servers too when it names some.
create_certificate() {
	local name=$1 subject=$2 names=${3:-} pki=$state/pki usage=clientAuth
	[[ -s $pki/$name.crt ]] && return
	[[ -z $names ]] || usage=clientAuth,serverAuth
	openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "$subject" \
		-keyout "$pki/$name.key" -out "$pki/$name.csr" 2>/dev/null
	printf '%s\n' "keyUsage=digitalSignature" "extendedKeyUsage=$usage" \
		${names:+"subjectAltName=$names"} >"$pki/$name.ext"
	openssl x509 -req -in "$pki/$name.csr" -CA "$pki/ca.crt" -CAkey "$pki/ca.key" \
		-set_serial "0x$(openssl rand -hex 16)" -days 3650 -extfile "$pki/$name.ext" -out "$pki/$name.partial" 2>/dev/null
	mv "$pki/$name.partial" "$pki/$name.crt"
	rm "$pki/$name.csr" "$pki/$name.ext"
}

# create_kubeconfig NAME FILE writes a kubeconfig with the certificate NAME.
create_kubeconfig() {
	local name=$1 file=$2 pki=$state/pki
	[[ -s $file ]] && return
	(
		umask 077
		cat >"$file.partial" <<-END
			apiVersion: v1
			kind: Config
			clusters:
			- name: tinker-operator
			  cluster:
			    server: https://$bridge_address:6443
			    certificate-authority-data: $(base64 -w 0 "$pki/ca.crt")
			users:
			- name: $name
			  user:
			    client-certificate-data: $(base64 -w 0 "$pki/$name.crt")
			    client-key-data: $(base64 -w 0 "$pki/$name.key")
			contexts:
			- name: tinker-operator
			  context: {cluster: tinker-operator, user: $name}
			current-context: tinker-operator
		END
	)
	mv "$file.partial" "$file"
}

create_control_plane_certificates() {
	local names="DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
	names+=",DNS:kubernetes.default.svc.cluster.local,IP:127.0.0.1,IP:$bridge_address,IP:$api_service"
	create_authority
	create_certificate kube-apiserver /CN=kube-apiserver "$names"
	create_certificate kubelet-client /O=system:masters/CN=kubelet-client
	create_certificate admin /O=system:masters/CN=admin
	local component
	for component in kube-controller-manager kube-scheduler kube-proxy; do
		create_certificate "$component" "/CN=system:$component"
		create_kubeconfig "$component" "$state/pki/$component.kubeconfig"
	done
}

# create_node_certificate NUMBER
create_node_certificate() {
	create_certificate "node$1" "/O=system:nodes/CN=system:node:node$1" "DNS:node$1,IP:$(node_address "$1")"
	create_kubeconfig "node$1" "$state/pki/node$1.kubeconfig"
}

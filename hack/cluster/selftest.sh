#!/usr/bin/env bash
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
#
# Checks the local cluster: starts it, does what the operator's tests need, loses a node, stops it, and
# compares the machine with what it was before.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
export CLUSTER=local
mode=local
cluster_dir=${CLUSTER_DIR:-$repository/.cluster}
bin=$cluster_dir/bin
images=$cluster_dir/images
state=$cluster_dir/local
kubeconfig=$state/kubeconfig
work=$(mktemp -d)
server=0 # pid of a server that a check has started
what=""  # the check that runs

# shellcheck source=lib/say.sh
. "$here/lib/say.sh"
# shellcheck source=lib/binaries.sh
. "$here/lib/binaries.sh"
# shellcheck source=lib/checks.sh
. "$here/lib/checks.sh"
# shellcheck source=lib/machine.sh
. "$here/lib/machine.sh"

finish() {
	if [[ -n $what ]]; then
		cat "$work/output" >&2
		say "failed: $what"
	fi
	[[ $server == 0 ]] || kill "$server" 2>/dev/null || true
	rm -rf "$work"
}
trap finish EXIT

main() {
	command -v sysctl >/dev/null || "$here/../install-packages.sh" "sysctl, to compare the machine before and after," procps
	! "$here/cluster" status >/dev/null || die "a cluster runs; stop it first"
	"$here/cluster" up && "$here/cluster" down # build and install before anything is compared
	build_program "$here/images" ./probe probe
	pack_image probe 65532
	describe_machine >"$work/before"

	timed "up, one node" "$here/cluster" up
	timed "comparison sees a running cluster" check_changed_machine
	timed "up again" "$here/cluster" up
	timed "loading an image" "$here/cluster" load "$images/probe.tar"
	create_namespace
	timed "first pod ready" check_first_pod
	timed "Job of 20 pods, each looking up a name" check_job
	timed "privileged pod refused" check_restricted
	timed "Services, from a pod, from the machine, from itself" check_service
	timed "pod reaches a server of the machine" check_machine_server
	timed "claim bound, written, released and offered again" check_storage
	timed "processes stopped, continued and killed from outside" check_signals
	timed "second node added" "$here/cluster" up --nodes 2
	timed "down" "$here/cluster" down
	timed "machine as before" check_same_machine

	export FAST_NODE_LOSS=1
	timed "up, two nodes" "$here/cluster" up --nodes 2
	"$here/cluster" load "$images/probe.tar"
	create_namespace
	timed "kubelet killed, pod replaced elsewhere" check_node_loss
	timed "kubelet started again, node ready" check_node_return
	timed "down" "$here/cluster" down
	timed "machine as before" check_same_machine
	echo "selftest: all checks passed"
}

main "$@"

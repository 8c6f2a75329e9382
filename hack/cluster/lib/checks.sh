# shellcheck shell=bash
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
#
# The checks that the self-test makes on a running cluster. Each check ends the test when it fails.

# timed WHAT COMMAND... runs a command and reports how long it took. The command must stand alone:
# as part of a condition, a fault in the middle of a check would not end the test.
timed() {
	local began elapsed
	what=$1
	shift
	began=$(date +%s%N)
	"$@" >"$work/output" 2>&1
	elapsed=$((($(date +%s%N) - began) / 1000000))
	printf 'selftest: %6d.%03d s  %s\n' $((elapsed / 1000)) $((elapsed % 1000)) "$what"
	what=""
}

in_test() {
	kubectl --namespace selftest "$@"
}

# create_namespace makes the namespace of all checks, under the strictest profile.
create_namespace() {
	kubectl create namespace selftest >/dev/null
	kubectl label namespace selftest pod-security.kubernetes.io/enforce=restricted >/dev/null
}

# pod_spec RESTART_POLICY ARGUMENT... prints the specification of a pod that runs the probe.
pod_spec() {
	local policy=$1 arguments
	shift
	arguments=$(printf ', "%s"' "$@")
	cat <<-END
		{restartPolicy: $policy, automountServiceAccountToken: false, terminationGracePeriodSeconds: 2,
		 securityContext: {runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, seccompProfile: {type: RuntimeDefault}},
		 tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 5}],
		 containers: [{name: probe, image: "cluster.local/probe:1", imagePullPolicy: Never, args: [${arguments:2}],
		   volumeMounts: [{name: data, mountPath: /data}],
		   securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}],
		 volumes: [{name: data, ${volume:-emptyDir: {\}}}]}
	END
}

# create_pod NAME ARGUMENT... creates a pod that is started again when it ends.
create_pod() {
	local name=$1
	shift
	in_test apply -f - <<-END
		{apiVersion: v1, kind: Pod, metadata: {name: $name, labels: {app: $name}}, spec: $(pod_spec Always "$@")}
	END
}

# run_job NAME COMPLETIONS ARGUMENT... runs a Job to its end.
run_job() {
	local name=$1 completions=$2
	shift 2
	in_test apply -f - <<-END
		{apiVersion: batch/v1, kind: Job, metadata: {name: $name},
		 spec: {completions: $completions, parallelism: $completions, backoffLimit: 0,
		        template: {spec: $(pod_spec Never "$@")}}}
	END
	wait_until 90 "Job $name" job_ended "$name"
	[[ $(in_test get job "$name" -o 'jsonpath={.status.succeeded}') == "$completions" ]] || {
		in_test logs "job/$name" --all-pods
		die "Job $name failed"
	}
}

job_ended() {
	[[ $(in_test get job "$1" -o 'jsonpath={.status.conditions[*].type}') =~ Complete|Failed ]]
}

await_ready() {
	in_test wait --for=condition=Ready "pod/$1" --timeout=60s
}

check_first_pod() {
	create_pod idle sleep
	await_ready idle
}

check_job() {
	run_job lookup 20 lookup kubernetes.default 10.96.0.1
}

check_restricted() {
	local answer
	answer=$(in_test run root --image cluster.local/probe:1 --privileged 2>&1) && die "a privileged pod was accepted"
	[[ $answer == *"violates PodSecurity"* ]] || die "refused for another reason: $answer"
}

check_service() {
	create_pod web serve hello
	in_test expose pod web --port 80 --target-port 8080
	await_ready web
	run_job get 1 get http://web/ hello
	in_test exec web -- /probe get http://web.selftest/ hello
	"$bin/probe" get "http://$(in_test get service web -o 'jsonpath={.spec.clusterIP}')/" hello
	"$bin/probe" get "http://$(in_test get pod web -o 'jsonpath={.status.podIP}'):8080/" hello
}

check_machine_server() {
	"$bin/probe" serve outside &
	server=$!
	run_job outside 1 get http://10.88.0.254:8080/ outside
	kill "$server"
	server=0
}

check_storage() {
	in_test apply -f - <<-END
		{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: claim},
		 spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}}
	END
	volume="persistentVolumeClaim: {claimName: claim}" run_job write 1 write /data/file kept
	local name
	name=$(in_test get persistentvolumeclaim claim -o 'jsonpath={.spec.volumeName}')
	[[ $(cat "$state/volumes/$name/file") == kept ]] || die "the file is not in the volume's folder"
	in_test delete job/write persistentvolumeclaim/claim --wait
	wait_until 20 "the volume to be released" volume_phase "$name" Released
	"$here/cluster" up
	wait_until 20 "the volume to be offered" volume_phase "$name" Available
	[[ ! -e $state/volumes/$name/file ]] || die "the volume was not emptied"
}

volume_phase() {
	[[ $(kubectl get persistentvolume "$1" -o 'jsonpath={.status.phase}') == "$2" ]]
}

check_signals() {
	local pid
	pid=$("$here/cluster" pids selftest/idle probe)
	"$here/cluster" signal selftest/idle probe STOP
	wait_until 5 "the process to stop" process_state "$pid" T
	"$here/cluster" signal selftest/idle probe CONT
	wait_until 5 "the process to continue" process_state "$pid" S
	"$here/cluster" signal selftest/idle probe KILL
	wait_until 20 "the container to start again" restarted_once
}

process_state() {
	[[ $(awk '/^State/ { print $2 }' "/proc/$1/status") == "$2" ]]
}

restarted_once() {
	[[ $(in_test get pod idle -o 'jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}') == "1 true" ]]
}

# check_node_loss waits for a Deployment's pod to move from the node that fell silent.
check_node_loss() {
	kubectl cordon node1
	in_test apply -f - <<-END
		{apiVersion: apps/v1, kind: Deployment, metadata: {name: mover},
		 spec: {selector: {matchLabels: {app: mover}},
		        template: {metadata: {labels: {app: mover}}, spec: $(pod_spec Always sleep)}}}
	END
	in_test rollout status deployment/mover --timeout=60s
	kubectl uncordon node1
	local pod
	pod=$(in_test get pods -l app=mover -o 'jsonpath={.items[0].metadata.name}')
	"$here/cluster" kill-kubelet node2
	wait_until 60 "the pod to be replaced" replaced
	"$here/cluster" pids "selftest/$pod" probe # it runs on, out of reach
}

replaced() {
	in_test get pods -l app=mover -o 'jsonpath={range .items[*]}{.spec.nodeName}={.status.phase} {end}' | grep -w 'node1=Running' >/dev/null
}

check_node_return() {
	"$here/cluster" start-kubelet node2
	kubectl wait --for=condition=Ready node/node2 --timeout=60s
}

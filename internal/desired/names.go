// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package desired builds the objects that a TrainingRun or a RewardEnvironment should have: pure functions
// of the spec, with neither a client nor a clock. It does not decide when an object is made or deleted.
package desired

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// Ports of a learner.
const (
	ExchangePort  = 7443
	HeartbeatPort = 7444
)

// Settings are the manager's own settings, which are the same for all runs.
type Settings struct {
	// Image is the image of learner, workers and probes.
	Image string
	// PythonImage is the image of users' functions whose environment names no image.
	PythonImage string
	// PackageIndex is the address of the package index of environments that name none; empty for pip's own.
	PackageIndex string
	// DefaultBaseURL is the address of the endpoint of runs that name none.
	DefaultBaseURL string
	// Namespace is the operator's namespace, which has the brokers of TinkerEndpoints.
	Namespace string `json:"-"`
	// Broker are the settings for brokers.
	Broker BrokerSettings `json:"-"`
	// PodDefaults are the defaults of podOverrides.
	PodDefaults v1alpha1.PodOverrides
	// AssignedUsers leaves the user and the group of pods to the cluster, which assigns them.
	AssignedUsers bool
	// SharedServers says that the manager may run Deployments of environment servers.
	SharedServers bool
}

// prefix returns the prefix of the names of an owner's objects. A later owner of the same name has another prefix.
func prefix(name string, uid types.UID) string {
	return name + "-" + string(uid[:min(5, len(uid))])
}

// ServiceName is the name of the run's Service, which the workers dial.
func ServiceName(run *v1alpha1.TrainingRun) string {
	return prefix(run.Name, run.UID)
}

// LearnerJobName is the name of an attempt's learner Job.
func LearnerJobName(run *v1alpha1.TrainingRun, attempt int32) string {
	return fmt.Sprintf("%s-learner-%d", prefix(run.Name, run.UID), attempt)
}

// RolloutJobName is the name of the run's worker Job.
func RolloutJobName(run *v1alpha1.TrainingRun) string {
	return prefix(run.Name, run.UID) + "-rollout"
}

// RunFileName is the name of an attempt's ConfigMap.
func RunFileName(run *v1alpha1.TrainingRun, attempt int32) string {
	return fmt.Sprintf("%s-run-%d", prefix(run.Name, run.UID), attempt)
}

// HistoryName is the name of the ConfigMap that has the head of the run's history.
func HistoryName(run *v1alpha1.TrainingRun) string {
	return prefix(run.Name, run.UID) + "-history"
}

// HistoryChunkName is the name of the ConfigMap that has a chunk of the run's history.
func HistoryChunkName(run *v1alpha1.TrainingRun, chunk string) string {
	return HistoryName(run) + "-" + chunk
}

// CredentialsName is the name of the run's credentials Secret; suffix is contract.SecretSuffix's. Earlier managers
// wrote Secrets without a token of the manager, whose names have "link" in the place of "credentials".
func CredentialsName(run *v1alpha1.TrainingRun, suffix string) string {
	return prefix(run.Name, run.UID) + "-credentials-" + suffix
}

// SameManagerKey reports whether the contents of two credentials Secrets of a run derive from the same manager key, by
// their names.
func SameManagerKey(a, b string) bool {
	return a[strings.LastIndexByte(a, '-')+1:] == b[strings.LastIndexByte(b, '-')+1:]
}

// LearnerAddress is the host:port at which workers reach the learner.
func LearnerAddress(run *v1alpha1.TrainingRun) string {
	return fmt.Sprintf("%s.%s.svc:%d", ServiceName(run), run.Namespace, ExchangePort)
}

// ProbeName is the name of a probe's Job and ConfigMap. It contains the digest of the definition, so that a changed
// spec is probed again, and the number of the try, from 1. The environment's name may have 63 characters, so it is cut.
func ProbeName(env *v1alpha1.RewardEnvironment, definitionDigest string, try int32) string {
	name := env.Name[:min(32, len(env.Name))]
	return fmt.Sprintf("%s-probe-%s-%d", prefix(name, env.UID), definitionDigest[:8], try)
}

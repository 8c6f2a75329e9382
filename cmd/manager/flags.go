// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/models"
	"github.com/tinker-operator/tinker-operator/internal/prices"
)

// hostedBaseURL is the endpoint of hosted Tinker.
const hostedBaseURL = "https://tinker.thinkingmachines.dev/services/tinker-prod"

// options are the manager's command line.
type options struct {
	namespaces     []string
	image          string
	pythonImage    string
	packageIndex   string
	defaultBaseURL string
	sharedServers  bool
	warmPools      bool
	assignedUsers  bool
	managerKeyFile string
	managerKey     []byte
	podDefaults    v1alpha1.PodOverrides
	// endpoints are the TinkerEndpoints to serve, and broker has the settings of their brokers.
	endpoints controller.Endpoints
	broker    desired.BrokerSettings
	// modelsFile and pricesFile have tables that extend the embedded ones.
	modelsFile, pricesFile string

	leaderElect             bool
	leaderElectionNamespace string

	metricsAddress  string
	metricsInsecure bool
	metricsCertDir  string
	probeAddress    string

	logLevel slog.Level
}

// namespaceFile has the namespace of the manager's pod.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// operatorNamespace is the namespace of the leader election, or else of the manager's pod; empty outside of a cluster.
func (o options) operatorNamespace() string {
	if o.leaderElectionNamespace != "" {
		return o.leaderElectionNamespace
	}
	name, err := os.ReadFile(namespaceFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}

// identity is the namespace of the leader election, which managers that never act at the same time share; outside of a
// cluster it is the name of the machine.
func (o options) identity() string {
	if namespace := o.operatorNamespace(); namespace != "" {
		return namespace
	}
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// pythonImageBeside returns the image of functions that is published beside the operator's. A digest belongs to one
// image alone, and is left out.
func pythonImageBeside(image string) string {
	name, _, _ := strings.Cut(image, "@")
	tag := ""
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		name, tag = name[:i], name[i:]
	}
	return name + "-python" + tag
}

// parse reads the command line and the file that it names.
func parse(set *flag.FlagSet, args []string) (options, error) {
	var o options
	var namespaces, podDefaults string
	var broker brokerFlags
	set.StringVar(&namespaces, "namespaces", "",
		"Namespaces to watch, separated by commas; without it all, which needs a ClusterRole.")
	addImages(set, &o)
	set.StringVar(&o.defaultBaseURL, "default-base-url", hostedBaseURL,
		"Endpoint of runs that name none in tinker.baseURL.")
	set.StringVar(&podDefaults, "pod-defaults", "{}",
		"JSON object with what pods of runs and probes have unless their spec says otherwise: the fields of podOverrides, "+
			"without image, initContainers and resourceClaims.")
	set.BoolVar(&o.assignedUsers, "assigned-users", false,
		"Leave runAsUser, runAsGroup and fsGroup of the pods of runs to the cluster, as OpenShift's restricted-v2 requires.")
	set.BoolVar(&o.sharedServers, "shared-environment-servers", false,
		"Run environment servers with ors.server.shared as Deployments, which needs permissions for them.")
	set.BoolVar(&o.warmPools, "warm-pools", false,
		"With --shared-environment-servers, claim sandboxes for execution.pods.warmPoolRef, which needs permissions for "+
			"that.")
	broker.add(set, &o)
	set.StringVar(&o.managerKeyFile, "manager-key-file", "",
		"File with the manager key, at least 32 random bytes, mounted from a Secret. Tokens and TLS keys of runs derive "+
			"from it, so it must stay the same; the manager ends when the file has another key. Required.")
	set.StringVar(&o.modelsFile, "models-file", "",
		"File with models that extend the embedded table, in the form of internal/models/models.json. It is read at the "+
			"start.")
	set.StringVar(&o.pricesFile, "prices-file", "",
		"File with prices that extend the embedded table, in the form of the models.json that hosted Tinker publishes. It "+
			"is read at the start.")
	set.BoolVar(&o.leaderElect, "leader-elect", true, "Let one manager of several act at a time.")
	set.StringVar(&o.leaderElectionNamespace, "leader-election-namespace", "",
		"Namespace of the lease; without it the manager's own.")
	set.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443",
		"Address of the metrics endpoint; 0 switches it off.")
	set.BoolVar(&o.metricsInsecure, "metrics-insecure", false,
		"Serve metrics over HTTP to anybody, instead of over HTTPS to those whom the API server lets get /metrics.")
	set.StringVar(&o.metricsCertDir, "metrics-cert-dir", "",
		"Folder with tls.crt and tls.key of the metrics endpoint; without it the certificate is self-signed.")
	set.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "Address of /healthz and /readyz.")
	set.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "Least level to log: debug, info, warn or error.")
	if err := set.Parse(args); err != nil {
		return options{}, err
	}
	o.namespaces = list(namespaces)
	if o.image == "" {
		return options{}, errors.New("--image is required: the image of learner, worker and probe pods")
	}
	o.pythonImage = cmp.Or(o.pythonImage, pythonImageBeside(o.image))
	var err error
	if o.podDefaults, err = desired.DecodePodDefaults(podDefaults); err != nil {
		return options{}, fmt.Errorf("reading --pod-defaults: %w", err)
	}
	if err := broker.read(&o); err != nil {
		return options{}, err
	}
	o.managerKey, err = readKey(o.managerKeyFile)
	return o, err
}

// addImages adds the flags of the images of pods, and of the package index.
func addImages(set *flag.FlagSet, o *options) {
	set.StringVar(&o.image, "image", "", "Image of learner, worker and probe pods; it holds /learner and /rollout. "+
		"Required.")
	set.StringVar(&o.pythonImage, "python-image", "",
		"Image of the functions of environments whose execution names no image; it has python3. Without it the name of "+
			"--image with -python behind it, and its tag.")
	set.StringVar(&o.packageIndex, "package-index", "",
		"Address of the package index of execution.requirements of environments that name none; without it pip's own.")
}

// list returns the names in a text that has commas between them.
func list(text string) []string {
	var names []string
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// readTables extends the tables of models and prices.
func (o options) readTables() error {
	for _, table := range []struct {
		flag, file string
		extend     func([]byte) error
	}{{"--models-file", o.modelsFile, models.Extend}, {"--prices-file", o.pricesFile, prices.Extend}} {
		if table.file == "" {
			continue
		}
		data, err := os.ReadFile(table.file)
		if err == nil {
			err = table.extend(data)
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", table.flag, err)
		}
	}
	return nil
}

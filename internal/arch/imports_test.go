// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"slices"
	"strings"
	"testing"
)

// permitted says what each package imports beyond the standard library: packages of this module by their
// path below it, others by the path of their module or any package path above them. It is exact: a package that
// imports more fails the test, and so does an entry that nothing uses, so that every new arrow is drawn
// knowingly.
var permitted = map[string][]string{
	"api/v1alpha1":             {"api/v1alpha1/environment", "api/v1alpha1/ref", "api/v1alpha1/tracking", "k8s.io/api", "k8s.io/apimachinery"},
	"api/v1alpha1/environment": {"api/v1alpha1/ref", "k8s.io/api", "k8s.io/apimachinery"},
	"api/v1alpha1/ref":         {},
	"api/v1alpha1/tracking":    {"api/v1alpha1/ref"},
	"cmd/kubectl-tinker":       {"internal/plugin", "internal/plugin/cli", "golang.org/x/crypto"},
	"cmd/learner": {
		"internal/contract", "internal/learner", "internal/learner/bucket", "internal/learner/reader", "internal/learner/store", "internal/tinker/transport", "internal/tokenizer/fetch",
		"internal/transcript/delivery", "internal/version", "golang.org/x/crypto",
	},
	"cmd/manager": {
		"api/v1alpha1", "internal/controller", "internal/controller/metricsauth", "internal/controller/runmetrics", "internal/desired", "internal/desired/overrides", "internal/version",
		"github.com/go-logr/logr", "k8s.io/apimachinery", "k8s.io/client-go",
		"sigs.k8s.io/controller-runtime",
	},
	"cmd/rollout": {
		"internal/contract", "internal/environment/dataset/source", "internal/environment/registry", "internal/exchange",
		"internal/renderer/load", "internal/rollout", "internal/rollout/groupstore", "internal/rollout/probe", "internal/rollout/setup",
		"internal/tinker/client", "internal/tinker/transport", "internal/tokenizer/fetch", "internal/version", "internal/wait", "golang.org/x/crypto",
	},
	"cmd/tinkersim": {
		"internal/atomicfile", "internal/tinkersim", "internal/tinkersim/export", "internal/tinkersim/fault", "internal/tinkersim/latency",
		"internal/tinkersim/model", "internal/tinkersim/vocabulary",
		"internal/version",
	},
	"hack/cluster/images/coredns": {"github.com/coredns/coredns"},
	"hack/cluster/images/pause":   nil,
	"hack/cluster/images/probe":   nil,
	"hack/tools/crdtrim":          {"sigs.k8s.io/yaml"},
	"hack/tools/protogen":         {"github.com/bufbuild/protocompile", "google.golang.org/protobuf"},
	"internal/arch":               nil,
	"internal/atomicfile":         nil,
	"internal/chat":               nil,
	"internal/contract":           {"internal/finite", "internal/contract/settings", "internal/contract/spending", "internal/contract/tracking"},
	"internal/contract/spending":  {"internal/finite"},
	"internal/contract/tracking":  nil,
	"internal/contract/heartbeat": {"internal/contract"},
	"internal/contract/settings":  nil,
	"internal/controller": {
		"api/v1alpha1", "internal/controller/poller", "internal/controller/rewardenvironment",
		"internal/controller/trainingrun", "internal/desired", "k8s.io/api", "k8s.io/apimachinery",
		"sigs.k8s.io/controller-runtime",
	},
	"internal/controller/attempt": {
		"api/v1alpha1", "internal/contract", "internal/controller/budget", "internal/controller/ending", "internal/desired/budget", "internal/status",
		"k8s.io/apimachinery", "k8s.io/utils",
	},
	"internal/controller/budget": {"api/v1alpha1", "internal/contract", "internal/controller/ending", "k8s.io/utils"},
	"internal/controller/ending": {"api/v1alpha1", "internal/contract", "internal/controller/podstate", "internal/desired", "k8s.io/api"},
	"internal/controller/datafiles": {
		"api/v1alpha1", "internal/contract", "internal/desired", "k8s.io/api", "sigs.k8s.io/controller-runtime",
	},
	"internal/controller/observe": {
		"api/v1alpha1", "internal/controller/datafiles", "internal/controller/ending", "internal/controller/objectmap",
		"internal/controller/podstate", "internal/controller/poller", "internal/controller/refusal", "internal/controller/workers", "internal/desired",
		"internal/status", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/utils", "sigs.k8s.io/controller-runtime",
	},
	"internal/controller/objectmap": {"k8s.io/apimachinery", "sigs.k8s.io/controller-runtime"},
	"internal/controller/history": {
		"api/v1alpha1", "internal/contract", "internal/controller/objectmap", "internal/desired", "internal/history", "k8s.io/api", "k8s.io/apimachinery",
		"sigs.k8s.io/controller-runtime",
	},
	"internal/controller/pacing":   {"api/v1alpha1", "internal/contract", "internal/controller/record", "internal/controller/runevents", "internal/status", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/utils", "sigs.k8s.io/controller-runtime"},
	"internal/controller/podstate": {"api/v1alpha1", "internal/contract", "k8s.io/api"},
	"internal/controller/poller": {
		"api/v1alpha1", "internal/contract", "internal/contract/heartbeat", "k8s.io/apimachinery", "sigs.k8s.io/controller-runtime",
	},
	"internal/controller/record":  {"internal/contract", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"},
	"internal/controller/refusal": {"api/v1alpha1", "internal/controller/objectmap", "k8s.io/api", "k8s.io/apimachinery", "sigs.k8s.io/controller-runtime"},
	"internal/controller/resolve": {
		"api/v1alpha1", "internal/desired", "internal/status", "k8s.io/apimachinery", "k8s.io/utils",
	},
	"internal/controller/endpoint":    {"api/v1alpha1", "internal/contract", "internal/status", "k8s.io/api"},
	"internal/controller/metricsauth": {"github.com/go-logr/logr", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"},
	"internal/controller/runfiles": {
		"api/v1alpha1", "internal/contract", "internal/contract/settings", "internal/controller/observe", "internal/desired", "k8s.io/api",
		"k8s.io/apimachinery", "k8s.io/utils", "sigs.k8s.io/controller-runtime",
	},
	"internal/controller/runmetrics": {
		"api/v1alpha1", "github.com/prometheus/client_golang", "k8s.io/apimachinery", "sigs.k8s.io/controller-runtime",
	},
	"internal/controller/runevents": {
		"api/v1alpha1", "internal/contract", "internal/controller/budget", "internal/controller/record", "internal/status", "k8s.io/apimachinery",
	},
	"internal/controller/rewardenvironment": {"internal/controller/datafiles",
		"api/v1alpha1", "internal/contract", "internal/controller/objectmap", "internal/controller/pacing", "internal/controller/podstate", "internal/controller/record", "internal/controller/refusal",
		"internal/desired", "internal/status", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/utils",
		"sigs.k8s.io/controller-runtime",
	},
	"internal/controller/servers": {"api/v1alpha1", "internal/desired", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/utils", "sigs.k8s.io/controller-runtime"},
	"internal/controller/trainingrun": {
		"api/v1alpha1", "internal/contract", "internal/controller/attempt", "internal/controller/budget", "internal/controller/ending", "internal/controller/endpoint", "internal/controller/history", "internal/controller/objectmap", "internal/controller/observe", "internal/controller/pacing", "internal/controller/podstate", "internal/controller/poller",
		"internal/controller/record", "internal/controller/refusal", "internal/controller/resolve", "internal/controller/runevents",
		"internal/controller/runfiles", "internal/controller/servers", "internal/controller/workers", "internal/desired", "internal/desired/budget", "internal/status", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/utils", "sigs.k8s.io/controller-runtime",
	},
	"internal/controller/workers": {
		"api/v1alpha1", "internal/contract", "internal/controller/podstate", "internal/desired", "k8s.io/api", "k8s.io/apimachinery",
		"sigs.k8s.io/controller-runtime",
	},
	"internal/desired": {
		"api/v1alpha1", "api/v1alpha1/environment", "api/v1alpha1/ref", "api/v1alpha1/tracking", "internal/contract", "internal/desired/budget", "internal/desired/definition", "internal/desired/overrides", "internal/desired/services", "internal/status",
		"internal/models", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/utils",
	},
	"internal/desired/overrides":   {"api/v1alpha1", "k8s.io/api", "k8s.io/utils"},
	"internal/desired/definition":  {"api/v1alpha1/environment", "internal/contract", "k8s.io/utils"},
	"internal/desired/services":    {"api/v1alpha1", "internal/contract", "internal/contract/tracking"},
	"internal/desired/budget":      {"api/v1alpha1", "internal/contract", "internal/contract/spending", "internal/prices", "k8s.io/utils"},
	"internal/prices":              {"internal/contract/spending"},
	"internal/environment":         {"internal/chat"},
	"internal/environment/dataset": {"internal/environment/dataset/shuffle", "internal/chat", "internal/contract", "internal/environment"},
	"internal/environment/ors": {
		"internal/chat", "internal/contract", "internal/environment", "internal/environment/tooluse", "internal/wait", "github.com/tmaxmax/go-sse",
	},
	"internal/environment/ors/orstest":         nil,
	"internal/environment/dataset/download":    {"internal/progress", "internal/stall", "internal/wait"},
	"internal/environment/dataset/hub":         {"internal/environment/dataset/download", "internal/environment/dataset/records"},
	"internal/environment/dataset/hub/hubtest": nil,
	"internal/environment/dataset/records":     {"internal/finite", "github.com/klauspost/compress", "github.com/parquet-go/parquet-go"},
	"internal/environment/dataset/rowfile":     nil,
	"internal/environment/dataset/shuffle":     nil,
	"internal/environment/dataset/source": {
		"internal/contract", "internal/environment", "internal/environment/dataset", "internal/environment/dataset/download",
		"internal/environment/dataset/hub", "internal/environment/dataset/records", "internal/environment/dataset/rowfile", "internal/progress",
	},
	"internal/environment/registry": {"internal/environment/dataset/source",
		"internal/contract", "internal/environment", "internal/environment/dataset",
		"internal/environment/ors", "internal/environment/rubric", "internal/environment/rubric/openaijudge", "internal/environment/singleturn", "internal/environment/tooluse", "internal/environment/verify", "internal/environment/workflow",
	},
	"internal/environment/rubric": {
		"internal/chat", "internal/contract", "internal/environment", "internal/environment/dataset", "internal/environment/verify",
		"internal/wait", "golang.org/x/sync",
	},
	"internal/environment/rubric/openaijudge": {
		"internal/chat", "internal/environment", "internal/environment/rubric", "internal/wait", "github.com/openai/openai-go",
	},
	"internal/environment/singleturn": {
		"internal/environment", "internal/environment/dataset",
		"internal/environment/verify",
	},
	"internal/environment/tooluse": {
		"internal/chat", "internal/environment", "internal/environment/dataset",
		"internal/environment/verify",
	},
	"internal/environment/workflow": {
		"internal/chat", "internal/contract", "internal/environment", "internal/environment/dataset", "internal/environment/verify",
	},
	"internal/environment/verify": {
		"internal/contract", "internal/environment", "internal/environment/dataset", "internal/environment/verify/countdown",
		"internal/environment/verify/mathtext", "internal/finite", "github.com/google/cel-go", "github.com/santhosh-tekuri/jsonschema",
	},
	"internal/environment/verify/countdown": nil,
	"internal/environment/verify/mathtext":  nil,
	"internal/exchange": {
		"internal/contract", "internal/exchange/exchangepb", "internal/rl", "internal/wait",
		"google.golang.org/grpc", "google.golang.org/protobuf",
	},
	"internal/finite":  nil,
	"internal/history": {"internal/contract"},
	"internal/learner": {
		"internal/contract", "internal/exchange", "internal/learner/checkpoints", "internal/learner/divergence", "internal/learner/evaluation",
		"internal/learner/failure", "internal/learner/journal", "internal/learner/leases", "internal/learner/opening",
		"internal/learner/preflight", "internal/learner/rejection", "internal/learner/repair", "internal/learner/report", "internal/learner/rollouts", "internal/learner/session",
		"internal/learner/store", "internal/learner/streaming", "internal/learner/tracking", "internal/learner/tracking/openreward", "internal/learner/tracking/runinfo", "internal/learner/trainee", "internal/learner/training", "internal/rl", "internal/rl/measure", "internal/tinker", "internal/tinker/capability", "internal/tinker/client", "internal/tinker/upstream", "internal/tokenizer/fetch", "internal/transcript", "internal/version", "internal/wait",
	},
	"internal/learner/bucket": {
		"gocloud.dev", "cloud.google.com/go/storage", "github.com/Azure/azure-sdk-for-go/sdk/azcore", "github.com/aws/smithy-go", "golang.org/x/oauth2",
		"google.golang.org/api/googleapi",
	},
	"internal/learner/bucket/buckettest": {"github.com/johannesboyne/gofakes3"},
	"internal/learner/checkpoints":       {"internal/contract", "internal/rl"},
	"internal/learner/divergence":        {"internal/finite", "internal/learner/failure", "internal/learner/trainee", "internal/rl"},
	"internal/learner/evaluation": {
		"internal/contract", "internal/exchange", "internal/learner/checkpoints", "internal/learner/failure",
		"internal/learner/leases", "internal/learner/report", "internal/learner/store", "internal/rl", "internal/rl/measure",
	},
	"internal/learner/failure": {"internal/tinker", "internal/tinker/client"},
	"internal/learner/journal": {"internal/learner/store", "internal/rl", "internal/wait", "internal/transcript", "internal/transcript/page"},
	"internal/learner/leases":  {"internal/contract", "internal/exchange", "internal/rl", "internal/wait"},
	"internal/learner/opening": {
		"internal/contract", "internal/learner/checkpoints", "internal/learner/failure", "internal/learner/journal",
		"internal/learner/leases", "internal/learner/trainee", "internal/rl", "internal/tinker",
		"internal/tinker/client",
	},
	"internal/learner/preflight": {
		"internal/contract", "internal/learner/failure", "internal/tinker", "internal/tinker/capability", "internal/tinker/client",
		"internal/tokenizer", "internal/tokenizer/fetch",
	},
	"internal/learner/rejection":               {"internal/contract", "internal/learner/failure", "internal/learner/leases", "internal/learner/trainee", "internal/rl"},
	"internal/learner/repair":                  {"internal/contract", "internal/learner/failure", "internal/learner/preflight", "internal/tinker/client"},
	"internal/learner/report":                  {"internal/contract", "internal/contract/heartbeat", "internal/contract/tracking", "internal/history", "internal/rl/measure", "internal/tinker/client", "internal/tinker/redact", "internal/tinker/upstream", "internal/wait"},
	"internal/learner/rollouts":                {"internal/finite", "internal/rl"},
	"internal/learner/session":                 {"internal/learner/failure", "internal/tinker/client"},
	"internal/learner/reader":                  {"internal/learner/bucket", "internal/learner/store", "internal/transcript/delivery"},
	"internal/learner/store":                   {"internal/finite", "golang.org/x/sync", "internal/atomicfile", "internal/contract/spending", "internal/rl"},
	"internal/learner/streaming":               {"internal/contract", "internal/learner/leases", "internal/rl"},
	"internal/learner/training":                {"internal/contract", "internal/learner/leases", "internal/learner/trainee", "internal/rl", "internal/rl/measure", "internal/tinker"},
	"internal/learner/tracking":                {"internal/finite", "internal/contract/tracking", "internal/learner/store", "internal/learner/tracking/openreward", "internal/learner/tracking/tfevents", "internal/rl", "internal/wait"},
	"internal/learner/tracking/openreward":     {"internal/chat", "internal/rl", "internal/transcript", "github.com/google/uuid"},
	"internal/learner/tracking/openrewardtest": {"internal/learner/tracking/trackertest"},
	"internal/learner/tracking/runinfo":        {"internal/contract", "internal/learner/tracking", "internal/learner/tracking/openreward"},
	"internal/learner/tracking/mlflowtest":     {"internal/learner/tracking/trackertest"},
	"internal/learner/tracking/tfevents":       {"google.golang.org/protobuf"},
	"internal/learner/tracking/trackertest":    nil,
	"internal/learner/tracking/wandbtest":      {"internal/learner/tracking/trackertest"},
	"test/observe":                             nil,
	"internal/learner/trainee": {
		"internal/contract", "internal/learner/checkpoints", "internal/learner/failure", "internal/rl", "internal/tinker",
		"internal/tinker/client",
	},
	"internal/models":  {"internal/nearest"},
	"internal/nearest": nil,
	"internal/plugin": {
		"internal/nearest", "internal/plugin/change", "internal/plugin/checkpoints", "internal/plugin/cli", "internal/plugin/observe", "internal/plugin/rubrics",
		"internal/plugin/tokens", "internal/plugin/transcripts", "internal/plugin/try", "internal/version",
		"github.com/spf13/cobra", "github.com/spf13/pflag",
	},
	"internal/plugin/change": {
		"api/v1alpha1", "internal/contract", "internal/contract/spending", "internal/prices", "internal/controller/endpoint", "internal/controller/resolve", "internal/desired", "internal/learner/preflight", "internal/plugin/checkpoints", "internal/plugin/cli",
		"internal/plugin/manifest", "internal/plugin/observe", "internal/plugin/output", "github.com/spf13/cobra", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/utils", "sigs.k8s.io/controller-runtime",
	},
	"internal/plugin/checkpoints": {
		"api/v1alpha1", "internal/atomicfile", "internal/plugin/cli", "internal/plugin/output", "internal/status", "internal/tinker", "internal/tinker/archive",
		"internal/tinker/client", "internal/tinker/peft", "internal/tinker/transport", "internal/version", "github.com/gofrs/flock", "github.com/spf13/cobra", "golang.org/x/term", "k8s.io/api",
		"k8s.io/apimachinery", "sigs.k8s.io/controller-runtime",
	},
	"internal/plugin/cli": {
		"api/v1alpha1", "internal/nearest", "github.com/go-logr/logr", "github.com/spf13/cobra", "github.com/spf13/pflag", "k8s.io/apimachinery",
		"k8s.io/client-go", "sigs.k8s.io/controller-runtime",
	},
	"internal/plugin/manifest": {
		"api/v1alpha1", "config/crd", "internal/nearest", "k8s.io/apiextensions-apiserver", "k8s.io/apimachinery", "k8s.io/apiserver", "sigs.k8s.io/yaml",
	},
	"internal/plugin/observe": {
		"api/v1alpha1", "internal/contract", "internal/desired", "internal/history", "internal/nearest", "internal/plugin/cli", "internal/plugin/output",
		"charm.land/bubbletea", "github.com/spf13/cobra", "golang.org/x/term", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/utils",
		"sigs.k8s.io/controller-runtime",
	},
	"internal/plugin/output":  {"internal/plugin/cli", "github.com/guptarohit/asciigraph", "github.com/spf13/pflag"},
	"internal/plugin/rubrics": {"internal/environment/dataset/shuffle", "internal/plugin/cli", "github.com/spf13/cobra"},
	"internal/plugin/tokens": {
		"internal/models", "internal/plugin/cli", "internal/renderer", "internal/renderer/chatjson", "internal/renderer/families",
		"internal/tokenizer", "internal/tokenizer/fetch", "github.com/spf13/cobra",
	},
	"internal/plugin/transcripts": {
		"api/v1alpha1", "internal/atomicfile", "internal/controller/podstate", "internal/desired", "internal/plugin/cli", "internal/plugin/output",
		"internal/transcript", "internal/transcript/delivery", "internal/transcript/page", "github.com/spf13/cobra", "k8s.io/api", "k8s.io/apimachinery",
		"k8s.io/client-go", "k8s.io/utils", "sigs.k8s.io/controller-runtime",
	},
	"internal/plugin/try": {
		"api/v1alpha1", "internal/contract", "internal/desired", "internal/environment/dataset/source", "internal/environment/registry",
		"internal/exchange", "internal/learner", "internal/plugin/cli", "internal/plugin/manifest", "internal/plugin/output",
		"internal/plugin/transcripts", "internal/renderer/load", "internal/rl", "internal/rollout", "internal/rollout/groupstore",
		"internal/rollout/probe", "internal/rollout/setup", "internal/tinker", "internal/tinker/client", "internal/tinker/transport",
		"internal/tinkersim", "internal/tokenizer/fetch", "internal/transcript", "internal/version", "internal/wait",
		"github.com/google/uuid", "github.com/spf13/cobra", "golang.org/x/sync", "k8s.io/api", "k8s.io/apimachinery",
	},
	"internal/progress":          nil,
	"internal/renderer":          {"internal/chat"},
	"internal/renderer/chatjson": {"internal/chat", "internal/renderer"},
	"internal/renderer/families": {
		"internal/chat", "internal/models", "internal/renderer", "internal/renderer/format",
		"internal/renderer/pyjson", "internal/renderer/toolcall", "internal/renderer/tsdecl", "internal/tokenizer",
	},
	"internal/renderer/format": {
		"internal/chat", "internal/renderer", "internal/renderer/pyjson", "internal/tokenizer",
	},
	"internal/renderer/load": {
		"internal/contract", "internal/models", "internal/renderer", "internal/renderer/families",
		"internal/tokenizer", "internal/tokenizer/fetch",
	},
	"internal/renderer/pyjson": nil,
	"internal/renderer/toolcall": {
		"internal/chat", "internal/renderer", "internal/renderer/format", "internal/renderer/pyjson",
	},
	"internal/renderer/tsdecl": {"internal/renderer/pyjson"},
	"internal/rl":              {"internal/finite", "internal/contract"},
	"internal/rl/measure":      {"internal/finite", "internal/contract", "internal/rl"},
	"internal/rollout": {
		"internal/contract", "internal/environment", "internal/environment/registry", "internal/environment/rubric", "internal/exchange",
		"internal/finite", "internal/renderer", "internal/renderer/families", "internal/renderer/load", "internal/rl",
		"internal/rollout/episode", "internal/rollout/groupstore", "internal/rollout/health", "internal/tinker",
		"internal/tinker/client", "internal/tinker/upstream", "internal/wait", "golang.org/x/sync",
	},
	"internal/rollout/episode": {
		"internal/chat", "internal/contract", "internal/environment", "internal/finite", "internal/renderer", "internal/rl",
		"internal/transcript", "internal/wait", "golang.org/x/sync",
	},
	"internal/rollout/groupstore": {"internal/atomicfile", "internal/contract", "internal/exchange", "internal/rl"},
	"internal/rollout/health":     {"internal/contract", "internal/environment", "internal/wait"},
	"internal/rollout/probe": {"internal/environment/dataset/source", "internal/environment/verify",
		"internal/chat", "internal/contract", "internal/environment", "internal/environment/registry",
	},
	"internal/rollout/setup": {
		"internal/contract", "internal/environment/dataset/download", "internal/environment/dataset/source", "internal/environment/registry",
		"internal/models", "internal/renderer", "internal/renderer/load", "internal/rollout", "internal/rollout/groupstore",
		"internal/tinker/client", "internal/tokenizer/fetch",
	},
	"internal/safetensors": nil,
	"internal/stall":       nil,
	"internal/status":      {"api/v1alpha1", "internal/contract", "internal/contract/tracking", "internal/finite", "k8s.io/apimachinery", "k8s.io/utils"},
	"internal/tinker": {
		"internal/finite", "internal/tinker/tinkerpb", "github.com/klauspost/compress", "google.golang.org/protobuf",
	},
	"internal/tinker/archive":    {"internal/atomicfile", "internal/safetensors", "internal/stall"},
	"internal/tinker/peft":       {"internal/safetensors", "internal/tinker/archive"},
	"internal/tinker/capability": {"internal/finite", "internal/tinker", "internal/tinker/client", "golang.org/x/sync"},
	"internal/tinker/bytebudget": {"internal/wait"},
	"internal/tinker/pages":      {"internal/tinker"},
	"internal/tinker/client":     {"internal/tinker", "internal/tinker/bytebudget", "internal/tinker/pages", "internal/tinker/redact", "internal/tinker/transport", "internal/wait", "golang.org/x/sync"},
	"internal/tinker/redact":     nil,
	"internal/tinker/transport":  nil,
	"internal/tinker/upstream":   {"internal/tinker", "internal/tinker/client"},
	"internal/tinkersim": {
		"internal/tinker", "internal/tinkersim/checkpoint", "internal/tinkersim/dialect", "internal/tinkersim/fault",
		"internal/tinkersim/future", "internal/tinkersim/latency", "internal/tinkersim/model", "internal/tinkersim/sampling",
		"internal/tinkersim/rubricjudge", "internal/tinkersim/state", "internal/tinkersim/stats", "internal/tinkersim/vocabulary", "internal/wait",
	},
	"internal/tinkersim/checkpoint":        {"internal/atomicfile", "internal/tinker", "github.com/gofrs/flock"},
	"internal/tinkersim/dialect":           {"internal/tinker"},
	"internal/tinkersim/export":            {"internal/safetensors", "internal/tinkersim/model", "internal/tinkersim/model/transformer"},
	"internal/tinkersim/fault":             {"internal/wait"},
	"internal/tinkersim/future":            nil,
	"internal/tinkersim/model":             {"internal/tinkersim/model/transformer"},
	"internal/tinkersim/model/pretrain":    {"internal/tinkersim/model/transformer"},
	"internal/tinkersim/model/transformer": {"gonum.org/v1/gonum"},
	"internal/tinkersim/sampling":          {"internal/tinkersim/model"},
	"internal/tinkersim/latency":           {"internal/wait"},
	"internal/tinkersim/opqueue":           nil,
	"internal/tinkersim/rubricjudge":       nil,
	"internal/tinkersim/state": {
		"internal/tinker", "internal/tinkersim/checkpoint", "internal/tinkersim/export", "internal/tinkersim/fault",
		"internal/tinkersim/future", "internal/tinkersim/latency", "internal/tinkersim/model", "internal/tinkersim/opqueue",
		"internal/tinkersim/sampling", "internal/tinkersim/stats", "internal/wait", "github.com/google/uuid",
	},
	"internal/tinkersim/simulatortest": {"internal/tinkersim"},
	"internal/tinkersim/stats":         {"internal/tinkersim/sampling"},
	"internal/tinkersim/vocabulary":    {"internal/tinkersim/model"},
	"internal/tokenizer":               {"internal/tokenizer/nfc", "internal/tokenizer/split"},
	"internal/tokenizer/fetch":         {"internal/atomicfile", "internal/progress", "internal/stall", "internal/tokenizer"},
	"internal/tokenizer/nfc":           nil,
	"internal/tokenizer/split":         nil,
	"internal/transcript":              {"internal/chat", "internal/rl"},
	"internal/transcript/delivery":     nil,
	"internal/transcript/page":         {"internal/transcript"},
	"internal/version":                 nil,
	"internal/wait":                    nil,
	"test/archive":                     {"internal/tinker"},
	"test/freeport":                    nil,
	"test/conformance":                 nil,
	"test/endpoint":                    {"internal/tinker", "internal/tinker/capability", "internal/tinker/client", "internal/version"},
	"test/environments":                nil,
	"test/environments/adapters":       nil,
	"test/model":                       {"test/model/engine", "test/model/scenarios"},
	"test/model/adapter":               {"test/model/engine"},
	"test/model/credentials":           {"test/model/engine"},
	"test/model/engine":                nil,
	"test/model/manager":               {"test/model/engine"},
	"test/model/protocol":              {"test/model/engine"},
	"test/model/sampling":              {"test/model/engine"},
	"test/model/scenarios": {
		"test/model/adapter", "test/model/credentials", "test/model/engine", "test/model/manager",
		"test/model/protocol", "test/model/sampling", "test/model/wire",
	},
	"test/model/wire":   {"test/model/engine"},
	"test/models/bench": {"internal/tokenizer", "internal/tokenizer/split"},
	"test/sample": {
		"api/v1alpha1", "internal/contract", "internal/desired", "internal/environment/registry", "k8s.io/api/core/v1", "k8s.io/apimachinery", "sigs.k8s.io/yaml",
	},
	"test/skyrl": nil,
}

func TestPackagesPointOneWay(t *testing.T) {
	all := imports(t)
	for dir, imported := range all {
		entries, ok := permitted[dir]
		if !ok {
			t.Errorf("%s is not in the table of imports: say what it may import", dir)
			continue
		}
		used := map[string]bool{}
		for _, name := range imported {
			if entry, ok := entryFor(entries, name); ok {
				used[entry] = true
			} else {
				t.Errorf("%s may not import %s", dir, strings.TrimPrefix(name, module))
			}
		}
		for _, entry := range entries {
			if !used[entry] {
				t.Errorf("%s does not import %s: delete the entry from the table", dir, entry)
			}
		}
	}
	for dir := range permitted {
		if _, ok := all[dir]; !ok {
			t.Errorf("%s does not exist: delete it from the table of imports", dir)
		}
	}
}

// entryFor returns the entry that permits an import; "" permits the standard library.
func entryFor(entries []string, name string) (string, bool) {
	if own, ok := strings.CutPrefix(name, module); ok {
		return own, slices.Contains(entries, own)
	}
	first, _, _ := strings.Cut(name, "/")
	if !strings.Contains(first, ".") {
		return "", true
	}
	for _, entry := range entries {
		if name == entry || strings.HasPrefix(name, entry+"/") {
			return entry, true
		}
	}
	return "", false
}

// TestProgramsDoNotImportEachOther checks what follows from the table: the manager cannot reach the Tinker API, and the
// programs of the pods do not import Kubernetes.
func TestProgramsDoNotImportEachOther(t *testing.T) {
	tests := map[string][]string{
		"cmd/manager": {"internal/tinker", "internal/learner", "internal/rollout", "internal/tinkersim"},
		// Drivers of buckets make a program larger by a quarter.
		"cmd/kubectl-tinker": {"internal/learner/bucket"},
		"cmd/learner":        {"k8s.io", "sigs.k8s.io", "internal/rollout", "internal/controller", "internal/tinkersim"},
		"cmd/rollout":        {"k8s.io", "sigs.k8s.io", "internal/learner", "internal/controller", "internal/tinkersim"},
		"cmd/tinkersim":      {"k8s.io", "sigs.k8s.io", "internal/learner", "internal/rollout", "internal/contract"},
	}
	for program, forbidden := range tests {
		reached := map[string]bool{}
		reach(program, reached)
		for name := range reached {
			if slices.ContainsFunc(forbidden, func(f string) bool { return name == f || strings.HasPrefix(name, f+"/") }) {
				t.Errorf("%s reaches %s", program, name)
			}
		}
	}
}

// reach adds all that a package imports, directly or through others.
func reach(dir string, reached map[string]bool) {
	for _, next := range permitted[dir] {
		if !reached[next] {
			reached[next] = true
			reach(next, reached)
		}
	}
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"regexp"
	"strings"
	"testing"
)

// rule says what the packages that match may import: of this module, and of others.
type rule struct {
	packages string
	own      string // below the module; "" is nothing
	others   string // of third parties; "" is nothing
}

const (
	kubernetes = `k8s\.io/.*|sigs\.k8s\.io/.*|github\.com/go-logr/logr`
	protobuf   = `google\.golang\.org/protobuf/.*`
	leaves     = `internal/(version|metrics)`
)

// rules are the table of README.md, "Where things are": packages point one way. The first that
// matches counts; a package that no rule names fails the test, so that a new one is placed knowingly.
var rules = []rule{
	{`api/v1alpha1`, ``, `k8s\.io/api/.*|k8s\.io/apimachinery/.*|sigs\.k8s\.io/controller-runtime/pkg/scheme`},
	{`internal/(rl|contract|version|arch)`, ``, ``},
	{`internal/tinker/tinkerpb`, ``, protobuf},
	{`internal/tinker`, `internal/tinker/tinkerpb`, protobuf + `|github\.com/klauspost/compress/.*`},
	{`internal/tinker/capability`, `internal/tinker`, ``},
	{`internal/exchange/exchangepb`, ``, protobuf + `|google\.golang\.org/grpc.*`},
	{`internal/exchange`, `internal/(rl|contract|exchange/exchangepb)`, protobuf + `|google\.golang\.org/grpc.*`},
	{`internal/environment/(singleturn|tooluse)`, `internal/environment(/.*)?`, ``},
	{`internal/environment/registry`, `internal/(environment(/.*)?|contract)`, ``},
	{`internal/environment(/.*)?`, `internal/environment`, ``},
	{`internal/models`, ``, ``},
	{`internal/tokenizer(/(split|nfc))?`, `internal/tokenizer/(split|nfc)`, ``},
	{`internal/tokenizer/fetch`, `internal/tokenizer`, ``},
	{`internal/renderer/load`, `internal/(models|renderer|contract|tokenizer(/fetch)?)`, ``},
	{`internal/renderer(/.*)?`, `internal/(tokenizer|models|renderer(/.*)?)`, ``},
	{`internal/tinkersim/model(/.*)?`, `internal/tinkersim/model(/transformer)?`, `gonum\.org/.*|github\.com/klauspost/compress/.*`},
	{`internal/tinkersim/(future|fault)`, ``, ``},
	{`internal/tinkersim/checkpoint`, `internal/tinker`, ``},
	{`internal/tinkersim/vocabulary`, `internal/(tokenizer|tinkersim/model)`, ``},
	{`internal/tinkersim/sampling`, `internal/tinkersim/model`, ``},
	{`internal/tinkersim(/state)?`, `internal/(tinker|tinkersim/.*)|` + leaves, ``},
	{`internal/learner/store`, `internal/rl`, ``},
	{`internal/learner/checkpoints`, `internal/rl`, ``},
	{`internal/learner/leases`, `internal/(rl|exchange)`, ``},
	{`internal/learner/trainee`, `internal/(rl|contract|tinker|learner/checkpoints)`, ``},
	{`internal/learner`, `internal/(tinker(/capability)?|tokenizer/fetch|rl|exchange|contract|learner/.*)|` + leaves, ``},
	{`internal/rollout/groupstore`, `internal/(exchange|rl)`, ``},
	{`internal/rollout/episode`, `internal/(environment|renderer|rl|contract)`, `golang\.org/x/sync/.*`},
	{`internal/rollout/probe`, `internal/(environment|contract|environment/registry)`, ``},
	{`internal/rollout`, `internal/(tinker|rl|environment(/registry)?|renderer(/load)?|tokenizer|exchange|contract|rollout/.*)`, `golang\.org/x/sync/.*`},
	{`internal/desired`, `api/v1alpha1|internal/(models|contract)`, kubernetes},
	{`internal/status`, `api/v1alpha1|internal/contract`, kubernetes},
	{`internal/controller(/.*)?`, `api/v1alpha1|internal/(controller/.*|desired|status|contract)|` + leaves, kubernetes},
	{`cmd/manager`, `api/v1alpha1|internal/(controller|contract|desired)|` + leaves, kubernetes},
	{`cmd/learner`, `internal/(learner|tokenizer/fetch|contract|tinker)|` + leaves, `golang\.org/x/crypto/x509roots/fallback`},
	{`cmd/rollout`, `internal/(rollout(/.*)?|environment.*|contract|tinker|exchange|tokenizer(/fetch)?|renderer(/load)?)|` + leaves, `golang\.org/x/crypto/x509roots/fallback`},
	{`cmd/kubectl-tinker`, `internal/(models|renderer(/chatjson)?|tokenizer(/fetch)?)|` + leaves, `golang\.org/x/crypto/x509roots/fallback`},
	{`cmd/tinkersim`, `internal/tinkersim(/(fault|vocabulary))?|` + leaves, ``},
}

func TestPackagesPointOneWay(t *testing.T) {
	for dir, imported := range imports(t) {
		r, ok := ruleOf(dir)
		if !ok {
			t.Errorf("%s is not in the table of imports: say what it may import", dir)
			continue
		}
		for _, name := range imported {
			if !permits(r, name) {
				t.Errorf("%s may not import %s", dir, name)
			}
		}
	}
}

func ruleOf(dir string) (rule, bool) {
	for _, r := range rules {
		if whole(r.packages).MatchString(dir) {
			return r, true
		}
	}
	return rule{}, false
}

func permits(r rule, name string) bool {
	if own, ok := strings.CutPrefix(name, module); ok {
		return r.own != "" && whole(r.own).MatchString(own)
	}
	first, _, _ := strings.Cut(name, "/")
	if !strings.Contains(first, ".") {
		return true // the standard library
	}
	return r.others != "" && whole(r.others).MatchString(name)
}

func whole(pattern string) *regexp.Regexp { return regexp.MustCompile(`^(?:` + pattern + `)$`) }

# Targets of tinker-operator. `make demo` shows what it does; `make test` runs everything that CI runs.
SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# One set of flags everywhere, so that tests, image and tools share the build cache.
export GOFLAGS := -trimpath

comma := ,
MODULE := github.com/tinker-operator/tinker-operator
TOOLS := go tool -modfile=hack/tools/go.mod
# GOLANGCI is golangci-lint together with kube-api-linter.
GOLANGCI := $(TOOLS) golangci-lint-kube-api-linter
CACHE := $(CURDIR)/.cache
GOTESTSUM := $(CACHE)/tests/gotestsum
CLUSTER_SCRIPT := hack/cluster/cluster
KUBE_BINARIES ?= $(CURDIR)/.cluster/bin
IMAGE ?= tinker-operator:dev
FUZZTIME ?= 10s
CHAOS ?= 5
DEATHS ?= 10000
DRAWS ?= 5000
FAULTS ?= 1000
EVENTS ?= 24
HOSTILE_HOURS ?= 24
# The unit tests read nothing but the tree, so that Go may take results of unchanged packages from its cache. Shuffled they have none.
UNIT := ./api/... ./cmd/... ./config/... ./internal/... ./test/e2e/connections ./test/endpoint/... ./test/model/... ./test/networkpolicy ./test/wheel
SEED ?= 0

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "; print "usage: make TARGET"} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*## / {printf "  %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Use

.PHONY: demo
demo: ## Boot a cluster unless one runs, install the chart, train until the reward has risen.
	@hack/demo/demo up

.PHONY: demo-down
demo-down: ## Remove all that `make demo` made.
	@hack/demo/demo down

##@ Develop

.PHONY: build
build: ## Build the programs into bin/.
	@CGO_ENABLED=0 go build -trimpath -tags "$$(cat hack/build-tags)" -ldflags "-s -w" -o bin/ ./cmd/...

.PHONY: image
image: ## Build the one image of all programs into dist/image.tar, without Docker (ARCH=arm64: for other nodes, into dist/image-arm64.tar).
	@$(if $(ARCH),GOARCH=$(ARCH) )hack/image.sh $(IMAGE) dist/image$(if $(ARCH),-$(ARCH)).tar

.PHONY: environment-image
environment-image: ## Build an environment's image without Docker, and load it into the local cluster: NAME=reasoning-gym or ./FOLDER.
	@name=$$(basename "$(NAME)"); hack/environment-image.sh "$(NAME)" "environment-$$name:dev" "dist/environment-$$name.tar"
	@$(CLUSTER_SCRIPT) load "dist/environment-$$(basename "$(NAME)").tar"

.PHONY: release
release: ## Make all that a release publishes in dist/release: VERSION=0.2.0.
	@hack/release.sh "$(VERSION)"

.PHONY: generate
generate: ## Generate Go: protobuf, deep copies.
	@cd hack/tools && go run ./protogen -module $(MODULE) -root ../.. \
		internal/tinker/tinkerpb/tinker_public.proto internal/exchange/exchangepb/exchange.proto
	@$(TOOLS) controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/...

.PHONY: manifests
manifests: ## Generate manifests: CRDs and RBAC, the chart's copy of the rules, docs/api.md, docs/troubleshooting.md and docs/metrics.md.
	@$(TOOLS) controller-gen crd:allowDangerousTypes=true,maxDescLen=400 paths=./api/... output:crd:artifacts:config=config/crd/bases
	@cd hack/tools && go run ./crdtrim ../../config/crd/bases/*.yaml
	@cd hack/tools && go run ./chartschema ../../config/crd/bases/rl.tinker-operator.dev_trainingruns.yaml ../../charts/tinker-operator/values.schema.json
	@$(TOOLS) controller-gen rbac:roleName=manager-role paths=./internal/controller/... output:rbac:artifacts:config=config/rbac
	@hack/chart.sh
	@$(TOOLS) crd-ref-docs --log-level=ERROR --source-path=api/v1alpha1 --config=hack/api-docs.yaml --renderer=markdown --output-path=docs/api.md
	@go run ./internal/problem/page > docs/troubleshooting.md
	@go run ./internal/metric/page > docs/metrics.md
	@sed -i '/^Package ref /,+1d' docs/api.md # The group's introduction is the comment of whichever of its Go packages is read first.

.PHONY: fmt
fmt: ## Format the Go code.
	@$(GOLANGCI) fmt

.PHONY: lint
lint: ## Lint Go, shell, chart and alerts.
	@$(GOLANGCI) run
	@hack/lint-chart.sh
	@hack/lint-alerts.sh

.PHONY: verify
verify: ## Generate everything and fail if that changes a file.
	@hack/verify.sh

.PHONY: bench
bench: ## Run the benchmarks: ratios against a bound or a peer measured in the same run.
	@hack/bench.sh

.PHONY: bench-compare
bench-compare: ## Train beside tinker-cookbook's rl/train.py and supervised/train.py, and print what each needs (installs 6 GB).
	@hack/need-python.sh
	@test/conformance/compare

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (10s).
	@hack/fuzz.sh $(FUZZTIME)

.PHONY: chaos
chaos: ## Run the unit tests in random order, the survival suite CHAOS (5) times, kill DEATHS (10000) learners, draw DRAWS (5000) wrong answers, answer the manager wrongly for HOSTILE_HOURS (24) of simulated time, diagnose 42 runs, kill each process of a run with agents at EVENTS (24) events, and compare the usage of runs with FAULTS (1000) faults with the bill.
	@go test -race -shuffle=on -count=1 -timeout 30m $(UNIT)
	@CGO_ENABLED=0 go test -shuffle=on -count=$(CHAOS) -timeout 3h ./test/survival/...
	@CGO_ENABLED=0 SURVIVAL_DEATHS=$(DEATHS) SURVIVAL_SEED=$(SEED) \
		go test -run '^TestRandomDeaths$$' -count=1 -timeout 3h -v ./test/survival | grep -v '^ *=== \|^ *--- PASS'
	@CGO_ENABLED=0 SURVIVAL_DRAWS=$(DRAWS) SURVIVAL_SEED=$(SEED) \
		go test -run '^TestRandomAnswers$$' -count=1 -timeout 3h -v ./test/survival | grep -v '^ *=== \|^ *--- PASS'
	@CGO_ENABLED=0 HOSTILE_HOURS=$(HOSTILE_HOURS) HOSTILE_SEED=$(SEED) \
		go test -run '^TestHostileLearners$$' -count=1 -timeout 1h -v ./internal/controller/trainingrun | grep -v '^ *=== \|^ *--- PASS'
	@CGO_ENABLED=0 SURVIVAL_DIAGNOSIS=all \
		go test -run '^TestDiagnosis$$' -count=1 -timeout 1h -v ./test/survival | grep -v '^ *=== \|^ *--- PASS'
	@CGO_ENABLED=0 SURVIVAL_EVENTS=$(EVENTS) SURVIVAL_SEED=$(SEED) \
		go test -run '^TestAgentsSurviveAtEachEvent$$' -count=1 -timeout 3h -v ./test/survival | grep -v '^ *=== \|^ *--- PASS'
	@CGO_ENABLED=0 SURVIVAL_FAULTS=$(FAULTS) SURVIVAL_SEED=$(SEED) \
		go test -run '^TestSpendingAgreesWithTheBill$$' -count=1 -timeout 3h -v ./test/survival | grep -v '^ *=== \|^ *--- PASS'

##@ Test

# The integration suite mostly waits: it runs beside those that compute, and its output follows theirs.
.PHONY: test
test: $(GOTESTSUM) ## Run everything that CI runs: verify, lint, unit, survival, conformance, integration, end to end.
	@rm -rf $(CACHE)/tests/summary
	@$(MAKE) verify lint
	@status=0; log=$(CACHE)/tests/test-integration.log; \
	$(MAKE) test-integration SUM=1 >$$log 2>&1 & integration=$$!; \
	for suite in test-unit test-survival conformance-models conformance; do $(MAKE) $$suite SUM=1 || status=1; done; \
	wait $$integration || status=1; cat $$log; \
	$(MAKE) test-e2e SUM=1 || status=1; \
	hack/test.sh --total || status=1; exit $$status

$(GOTESTSUM): hack/tools/go.mod hack/tools/go.sum
	@mkdir -p $(@D)
	@go -C hack/tools build -o $@ gotest.tools/gotestsum && touch $@

# suite runs `go test` with the arguments $(1) and the environment $(2), and counts. A suite that runs alone
# prints the closing line itself.
define suite
	@[[ -n "$(SUM)" ]] || rm -f $(CACHE)/tests/summary
	@status=0; $(2) hack/test.sh $@ $(1) || status=1; \
	[[ -n "$(SUM)" ]] || hack/test.sh --total || status=1; exit $$status
endef

.PHONY: test-unit
test-unit: $(GOTESTSUM) ## Run the unit tests with the race detector, of packages that changed since they passed.
	@hack/need-compiler.sh
	@hack/need-python.sh
	$(call suite,-race -timeout $(or $(SUITE_TIMEOUT),20m) $(UNIT))

.PHONY: test-survival
test-survival: $(GOTESTSUM) ## Run whole trainings with a fault at every fault point, in one process and in several.
	@hack/need-python.sh
	$(call suite,-shuffle=on -timeout $(or $(SUITE_TIMEOUT),40m) ./test/survival/... ./internal/tinkersim/model/... ./internal/tinker/capability/... \
		./internal/environment/dataset/source ./internal/environment/verify,CGO_ENABLED=0)

.PHONY: conformance
conformance: $(GOTESTSUM) ## Run two versions of the official Python SDK against tinkersim, and official clients against the dialects.
	@hack/need-python.sh
	$(call suite,-tags conformance -count=1 -timeout 30m ./test/conformance/... ./test/dialects ./test/environments,CGO_ENABLED=0)
	@cat $(CACHE)/conformance-calls-*.txt

.PHONY: conformance-cookbook
conformance-cookbook: ## Run tinker-cookbook's own loops against tinkersim (installs 6 GB; not in `make test`).
	@hack/need-python.sh
	@test/conformance/cookbook

.PHONY: conformance-supervised
conformance-supervised: $(GOTESTSUM) ## Compare supervised training and distillation with two versions of tinker-cookbook (5 minutes; installs 6 GB; not in `make test`).
	@hack/need-python.sh
	$(call suite,-tags conformance -count=1 -timeout 30m ./test/supervised,CGO_ENABLED=0)

.PHONY: conformance-code-tests
conformance-code-tests: $(GOTESTSUM) ## Compare reward.tests with the grader of tinker-cookbook on 419 programs (4 minutes; not in `make test`).
	@hack/need-python.sh
	$(call suite,-tags conformance -count=1 -timeout 30m ./test/codetests,CGO_ENABLED=0)

.PHONY: conformance-environments
conformance-environments: $(GOTESTSUM) ## Run the adapters of verifiers and OpenEnv with their packages (installs 1 GB; not in `make test`).
	@hack/need-python.sh
	$(call suite,-tags conformance -count=1 -timeout 30m ./test/environments/adapters,CGO_ENABLED=0)

.PHONY: conformance-environments-cookbook
conformance-environments-cookbook: $(GOTESTSUM) ## Play environments of two versions of tinker-cookbook, and compare the rewards with its own (installs 400 MB; not in `make test`).
	@hack/need-python.sh
	$(call suite,-tags conformance -count=1 -timeout 30m ./test/environments/cookbook,CGO_ENABLED=0)

.PHONY: conformance-gvisor
conformance-gvisor: $(GOTESTSUM) ## Run the runner and the hostile programs in gVisor, which is built once from its module (10 minutes; not in `make test`).
	@hack/need-python.sh
	@hack/gvisor/gvisor build >/dev/null
	@CGO_ENABLED=0 go build -o $(CACHE)/gvisor/runner ./cmd/runner
	$(call suite,-count=1 -p 1 -timeout 40m -exec '$(CURDIR)/hack/gvisor/gvisor exec' ./cmd/runner ./internal/runner/process ./internal/runner/scratch,CGO_ENABLED=0 RUNNER_TEST_PROGRAM=$(CACHE)/gvisor/runner RUNNER_TEST_LEVEL=RuntimeClass)

.PHONY: upstream
upstream: ## Print what is pinned of the SDK, cookbook, SkyRL, templates and models, beside what is newest (docs/releasing.md).
	@hack/need-python.sh
	@python3 hack/upstream.py

.PHONY: conformance-skyrl
conformance-skyrl: $(GOTESTSUM) ## Check every feature of SkyRL 0.3.0 and 0.4.0, and train at both, in a process and on the local cluster (installs 14 GB; not in `make test`).
	@hack/need-python.sh
	@test/conformance/skyrl/versions
	$(call suite,-tags e2e$(comma)skyrl -count=1 -timeout 150m -p 1 -run '^TestSkyRL(Next)?$$' ./test/endpoint ./test/survival ./test/e2e,CGO_ENABLED=0)

.PHONY: conformance-endpoint
conformance-endpoint: ## Print what a server supports: TINKER_API_KEY in the environment, URL= MODEL= (SDK=oldest for the older SDK).
	@hack/need-python.sh
	@go run ./test/endpoint -url '$(URL)' -model '$(MODEL)'
	@test/conformance/endpoint "$(URL)" "$(MODEL)"

.PHONY: conformance-evaluations
conformance-evaluations: $(GOTESTSUM) ## Have lm-eval and inspect-ai evaluate a served checkpoint (installs 1 GB; not in `make test`).
	@hack/need-python.sh
	$(call suite,-tags conformance$(comma)evaluations -count=1 -timeout 60m -run '^TestEvaluationsOfOthers$$' ./test/dialects,CGO_ENABLED=0)

.PHONY: conformance-agents
conformance-agents: $(GOTESTSUM) ## Have agents of openai-agents, litellm, mini-swe-agent, LangGraph and Pydantic AI play at a gateway, and mini-swe-agent repair repositories (installs 1 GB; not in `make test`).
	@hack/need-python.sh
	@mkdir -p $(CACHE) && rm -f $(CACHE)/conformance-agents.txt
	$(call suite,-tags conformance$(comma)agents -count=1 -timeout 60m -run '^Test(Frameworks|AgentsOfOpenAI|MiniSWEAgent)' ./test/dialects,CGO_ENABLED=0)
	@sort $(CACHE)/conformance-agents.txt

.PHONY: conformance-models
conformance-models: $(GOTESTSUM) ## Compare tokenizers with the reference packages (MODELS_TEXTS=2000 texts a family), and made chat templates with jinja2.
	@hack/need-python.sh
	$(call suite,-tags models -count=1 -timeout 60m ./test/models/...,CGO_ENABLED=0)

.PHONY: conformance-templates
conformance-templates: $(GOTESTSUM) ## Compare chat templates with jinja2: those of trl and llama.cpp with their turns, edits of them, and MODELS_TEXTS made ones (10 minutes; not in `make test`).
	@hack/need-python.sh
	$(call suite,-tags models$(comma)templates -count=1 -timeout 200m -run 'Template|Recorded' ./test/models,CGO_ENABLED=0)

.PHONY: conformance-observe
conformance-observe: ## Compare with the official packages of tracking services, with peft, headless Chromium, and with Prometheus on the local cluster (installs 8 GB; not in `make test`).
	@hack/need-python.sh
	@hack/need-chromium.sh
	@CGO_ENABLED=0 go test -tags observe -count=1 -timeout 60m -v ./test/observe/...
	@CGO_ENABLED=0 go test -tags e2e$(comma)prometheus -count=1 -timeout 60m -v -run '^TestPrometheusReadsARun$$' ./test/e2e/...

.PHONY: test-ui
test-ui: $(GOTESTSUM) ## Open the pages of kubectl tinker ui in headless Chromium, and check them with axe-core (4 minutes; PICTURES=FOLDER keeps pictures; not in `make test`).
	@hack/need-chromium.sh
	@hack/need-axe.sh >/dev/null
	@rm -f $(CACHE)/ui-report.txt
	$(call suite,-tags ui -count=1 -timeout 20m ./test/ui -axe "$$(hack/need-axe.sh)" -report $(CACHE)/ui-report.txt $(if $(PICTURES),-pictures $(abspath $(PICTURES))),CGO_ENABLED=0)
	@cat $(CACHE)/ui-report.txt

.PHONY: test-integration
test-integration: $(GOTESTSUM) ## Run the controllers against a real API server and controller manager.
	@$(CLUSTER_SCRIPT) binaries >/dev/null
	$(call suite,-tags integration -count=1 -timeout $(or $(SUITE_TIMEOUT),40m) ./test/integration/...,CGO_ENABLED=0 KUBE_BINARIES=$(KUBE_BINARIES))

.PHONY: test-python-module
test-python-module: $(GOTESTSUM) ## Create, follow and plot runs with the Python module against a real API server (1 minute; installs 500 MB; not in `make test`).
	@hack/need-python.sh
	@$(CLUSTER_SCRIPT) binaries >/dev/null
	$(call suite,-tags python -count=1 -timeout 20m ./test/integration -ginkgo.fail-on-empty -ginkgo.focus='The Python module',CGO_ENABLED=0 KUBE_BINARIES=$(KUBE_BINARIES))

.PHONY: test-sandbox-controller
test-sandbox-controller: $(GOTESTSUM) ## Claim pods of the real controller of agent-sandbox at a real API server (ten minutes, of which five build it once; not in `make test`).
	@$(CLUSTER_SCRIPT) binaries >/dev/null
	@hack/agent-sandbox/sandbox build
	$(call suite,-tags sandbox -count=1 -timeout 20m ./test/integration -ginkgo.fail-on-empty -ginkgo.focus='The controller of agent-sandbox',CGO_ENABLED=0 KUBE_BINARIES=$(KUBE_BINARIES))

.PHONY: test-e2e
test-e2e: $(GOTESTSUM) ## Run whole trainings, and kill their pods, on the local cluster.
	$(call suite,-tags e2e -count=1 -timeout 70m ./test/e2e/...,CGO_ENABLED=0)

.PHONY: test-e2e-servers
test-e2e-servers: $(GOTESTSUM) ## Crash and move environment servers on the local cluster (3 minutes; not in `make test`).
	$(call suite,-tags e2e$(comma)servers -count=1 -parallel 4 -timeout 40m -run '^TestEnvironmentServerFaults$$' ./test/e2e/...,CGO_ENABLED=0)

.PHONY: test-e2e-repairs
test-e2e-repairs: $(GOTESTSUM) ## Measure how long runs take to continue after repairs, on the local cluster (5 minutes; not in `make test`).
	$(call suite,-tags e2e$(comma)repairs -count=1 -parallel 8 -timeout 40m -run '^TestRepairs$$' ./test/e2e/...,CGO_ENABLED=0)

.PHONY: test-e2e-kueue
test-e2e-kueue: $(GOTESTSUM) ## Queue, preempt and place runs under the real Kueue on the local cluster (30 minutes, of which a quarter of an hour builds Kueue once; not in `make test`).
	$(call suite,-tags e2e$(comma)kueue -count=1 -timeout 80m -run '^TestKueue$$' ./test/e2e/...,CGO_ENABLED=0)

.PHONY: test-e2e-sandbox
test-e2e-sandbox: $(GOTESTSUM) ## Run functions in pods of a warm pool of the real agent-sandbox on the local cluster (15 minutes, of which five build agent-sandbox once; not in `make test`).
	$(call suite,-tags e2e$(comma)sandbox -count=1 -timeout 60m -run '^TestSandboxPool$$' ./test/e2e/...,CGO_ENABLED=0)

.PHONY: test-e2e-samples
test-e2e-samples: $(GOTESTSUM) ## Apply the samples that `make test` leaves out on the local cluster (15 minutes).
	$(call suite,-tags e2e$(comma)samples -count=1 -timeout 60m -run '^TestSamples$$' ./test/e2e/...,CGO_ENABLED=0)

BUSY ?= 8
.PHONY: test-e2e-gvisor
test-e2e-gvisor: $(GOTESTSUM) ## Run programs of the policy in pods of gVisor on a local cluster that begins with it (10 minutes, of which five build gVisor and containerd once; not in `make test`).
	$(call suite,-tags e2e$(comma)gvisor -count=1 -timeout 60m -run '^TestGVisor$$' ./test/e2e/...,CGO_ENABLED=0 GVISOR=1)

.PHONY: test-busy
test-busy: ## Run unit, survival and integration suites at once beside BUSY (8) processes that spin (two hours; not in `make test`).
	@hack/need-compiler.sh
	@hack/need-python.sh
	@rm -f $(CACHE)/tests/summary
	@status=0; GOMAXPROCS=6 hack/busy.sh $(BUSY) $(MAKE) -k -j 3 --output-sync=target "GOFLAGS=-trimpath -count=1" SUITE_TIMEOUT=3h SUM=1 \
		test-unit test-survival test-integration || status=1; \
	hack/test.sh --total || status=1; exit $$status

.PHONY: model-check
model-check: ## Explore the model of the protocol in full (under 4 GB, some minutes).
	@CGO_ENABLED=0 go run ./test/model -big

##@ Deploy

KUBECTL ?= kubectl
DEPLOY_NAMESPACE := tinker-operator-system
MANAGER_KEY := tinker-operator-manager-key

.PHONY: install
install: ## Install the CRDs into the cluster of the current kubeconfig.
	@$(KUBECTL) apply --server-side -k config/crd

.PHONY: uninstall
uninstall: ## Delete the CRDs, and with them every TrainingRun, RewardEnvironment and TinkerEndpoint.
	@$(KUBECTL) delete --ignore-not-found -k config/crd

.PHONY: deploy
deploy: ## Install CRDs and manager with kustomize (IMAGE=...), and create the manager key if it is missing.
	@$(KUBECTL) kustomize config/default | sed 's|tinker-operator:dev|$(IMAGE)|' | $(KUBECTL) apply --server-side -f -
	@$(KUBECTL) -n $(DEPLOY_NAMESPACE) get secret $(MANAGER_KEY) >/dev/null 2>&1 || \
		head -c 32 /dev/urandom | $(KUBECTL) -n $(DEPLOY_NAMESPACE) create secret generic $(MANAGER_KEY) --from-file=manager-key=/dev/stdin

.PHONY: undeploy
undeploy: ## Delete the manager and its key; CRDs and runs stay (make uninstall deletes them).
	@$(KUBECTL) delete --ignore-not-found clusterrole,clusterrolebinding -l app.kubernetes.io/part-of=tinker-operator
	@$(KUBECTL) delete --ignore-not-found namespace $(DEPLOY_NAMESPACE)

##@ Cluster

.PHONY: cluster-up
cluster-up: ## Start the local cluster (CLUSTER=local, kind or current).
	@$(CLUSTER_SCRIPT) up

.PHONY: cluster-down
cluster-down: ## Stop the local cluster and leave nothing behind.
	@$(CLUSTER_SCRIPT) down

.PHONY: cluster-status
cluster-status: ## Print the servers and nodes of the local cluster.
	@$(CLUSTER_SCRIPT) status

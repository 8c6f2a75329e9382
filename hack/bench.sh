#!/usr/bin/env bash
# Runs the benchmarks. The results are ratios measured in one run: a step against the time that the server needs for it anyway
# (step/bound, goal: at most 1.15), turns of an environment server against the time of its tools and samples (turns/bound, goal:
# at least 0.9; core/bound is what a whole core would give), tokenizers against the packages that others use (goal: above 1). Times
# depend on the machine. What samples learn depends on their seeds. BENCH_MB
# is how much text is encoded (4; 10 is the measurement). BENCH_STEPS (40) and BENCH_SEEDS (3) are the length and the number of the
# runs with hosted latencies, which take an hour and a half.
# SCALE_RUNS (1000) is how many runs one manager follows, with a real API server and simulated pods; 0 leaves that out. E2E=1 measures on the local cluster: it
# kills the learner ten times, and applies samples.
set -euo pipefail
cd "$(dirname "$0")/.."

hack/need-python.sh

bench() { CGO_ENABLED=0 go test -run '^$' -bench "$1" -benchtime "$2" "${@:3}" | grep -E '^(Benchmark|pkg:|--- FAIL|    [a-z_]+\.go:)'; }

echo "== a step of 32 groups of 8, in one process: learner, two workers, tinkersim"
bench '^BenchmarkStep$' 1x ./test/survival
echo "== what a group of 8 with one prompt buys, with sampling.sharedPrompt and without (goal with it: one prompt and one request)"
bench '^BenchmarkSharedPrompt$' 1x ./test/survival
echo "== CPU and memory of the same step with a learner and two workers as processes"
bench '^BenchmarkClient$' 1x ./test/survival
echo "== steps at an endpoint with the latencies of the hosted service, divided by ten (goal: of step/bound without a lag, of synchronous/step with one)"
bench '^BenchmarkHosted$' 1x -timeout 3h ./test/survival
echo "== models that a learner makes beside the one that it opens again from a state of its own (goal: none)"
bench '^BenchmarkReopen$' 1x ./test/survival
echo "== 500 sessions of an environment server at once, played by one worker of one core (goal: turns/bound of 0.9 and 160 MiB)"
bench '^BenchmarkSessions$' 1x ./test/survival
echo "== 2,000 conversations of 20 turns and 32,000 tokens at once, played by one worker of one core (goal: 1024 MiB, and late/early near 1)"
bench '^BenchmarkConversations$' 1x -timeout 30m ./test/survival
echo "== what config/samples/solver-judge.yaml and rlvr.yaml learn on held-out tasks with three seeds (goal: 0.15 with each), and controls (0.05)"
bench '^Benchmark(SolverJudge|Rubrics)$' 1x -timeout 3h ./test/survival
echo "== the same of config/samples/python-reward.yaml, python-environment.yaml and self-play.yaml, whose code is Python"
bench '^Benchmark(PythonReward|PythonEnvironment|SelfPlay)$' 1x -timeout 3h ./test/survival
echo "== the same of config/samples/cookbook.yaml, whose environment is the cookbook's own"
COOKBOOK_BENCH_PYTHON=$(test/conformance/venv "$PWD/config/samples/environments/cookbook/requirements.txt")/bin/python \
  bench '^BenchmarkCookbookSample$' 1x -timeout 3h ./test/survival
echo "== the same of the reward of config/samples/code-tests.yaml, after a supervised run that shows programs with random operators"
bench '^BenchmarkCodeTests$' 1x -timeout 3h ./test/survival
echo "== the gain of half of config/samples/distillation.yaml on held-out tasks with three seeds (goal: 0.1 with each), and with a teacher that knows no more (0.05)"
bench '^BenchmarkDistillation$' 1x -timeout 1h ./test/survival
echo "== the same of config/samples/sft.yaml, also of the negative log-likelihood of held-out rows (goal: 0.1 of each), and with the answers of other rows (0.05)"
bench '^BenchmarkSupervisedSample$' 1x -timeout 1h ./test/survival
echo "== the same of both runs of config/samples/sft-then-rl.yaml (goal: 0.05 of each), and with shuffled rewards in the second (0.05)"
bench '^BenchmarkChain$' 1x -timeout 1h ./test/survival
echo "== CPU and memory of a supervised step of 32 conversations: a learner as a process"
bench '^BenchmarkSupervised$' 1x ./test/survival
echo "== the exchange and the simulator's model"
bench . 1s ./internal/exchange ./internal/rl ./internal/tinkersim/model
echo "== a learner resumes after 10,000 steps: its rows, against the goal of 1.5 s in all"
bench '^BenchmarkResume$' 1x ./internal/learner/artifacts
echo "== the learner's own work for a batch, against the goal of 50 ms of CPU and 20 MB for 512 groups"
bench '^BenchmarkBatch$' 5x ./internal/learner/leases
echo "== renewals and directives of 100 and of 1,000 workers, against the goal of 0.05 of a core"
bench '^BenchmarkWorkers$' 20x ./internal/learner/leases
echo "== from the last group of a batch to optim_step, 2 million tokens in 9 chunks: the learner's own work, against the goal of 60 ms of CPU"
bench '^BenchmarkSubmit$' 20x ./internal/learner
echo "== the learner's memory for a batch of 100 million tokens in 2,000 groups, at an endpoint that answers without computing (goal: 1024 MiB)"
bench '^BenchmarkLargeBatch$' 1x ./internal/learner
echo "== what an endpoint with hosted latencies, divided by ten, supports of what a usual run needs, against the goal of 10 s"
bench '^BenchmarkHosted$' 1x ./internal/tinker/capability
echo "== from the start of a learner to its first lease at such an endpoint, against the goals of 10 s, and of 5 s where another run has checked it"
bench '^BenchmarkFirstLease$' 1x ./test/survival
echo "== a broker beside the direct way and a bare reverse proxy: 2,000 samples a second (goal: 1 ms more, 0.25 ms of CPU), forward_backward (10 ms of CPU a MB), 10,000 idle polls (512 MiB)"
bench '^BenchmarkBroker' 1x ./internal/broker
echo "== a row of a data set by its index, against the goal of 5 ms"
bench '^BenchmarkRow$' 1s ./internal/environment/dataset/source
echo "== an epoch of a million supervised rows from disk, against the goal of 256 MiB"
bench '^BenchmarkMillionRows$' 1x ./internal/supervised
bench '^BenchmarkMillionRowsOfFile$' 1x ./internal/learner/examples
echo "== calls of a Python reward with replies of 2 kB, runner and Python on one core (goal: 1,000 calls/s; call/echo is against two bare pipes)"
bench '^BenchmarkReward$' 1x ./cmd/runner
echo "== 200 calls at once of a Python reward that awaits 100 ms (goal: a median of 250 ms)"
bench '^BenchmarkAsync$' 1x ./cmd/runner
echo "== an episode of a command that imports openai: CPU and memory of its own with a fork, against a process that starts afresh (goal: forked/afresh of 0.25)"
RUNNER_BENCH_PYTHON=$(test/conformance/venv dialects)/bin/python bench '^BenchmarkForkedCommand$' 1x ./cmd/runner
echo "== a request of an agent that extends 4,000 tokens by 200 (goal: a median of 2 ms of CPU)"
bench '^BenchmarkExtension$' 200x ./internal/gateway
echo "== 500 conversations of 20 turns of agents at once, clients and gateway on one core (goal: the sampled tokens are kept in 100%)"
bench '^BenchmarkConversations$' 1x ./internal/gateway
echo "== turns of agents of the official clients of OpenAI and Anthropic that keep the sampled tokens (goal: 100%)"
CGO_ENABLED=0 go test -tags conformance -count=1 -v -run '^TestAgentsOfOfficialClients$' ./test/dialects | grep -o 'the clients of .* turns'
echo "== 20 Go clients sample for 20 runs through a broker, a minute each, against the goals of half of its share for each run and 0.9 of the limit for all"
bench '^BenchmarkShares$' 1x ./internal/broker
echo "== tokenizers, one thread, MB/s: encode and decode against the reference packages"
go run ./test/models/bench -python "$(hack/models/python.sh)" -mb "${BENCH_MB:-4}"
echo "== the image, with all programs in one layer, and the manager in it (goals: 60 MB and 45 MB)"
hack/image.sh tinker-operator:bench .cache/bench/image.tar >/dev/null
awk '{ printf "image %.1f MB, manager %.1f MB\n", $1 / 1e6, $2 / 1e6 }' <<<"$(stat -c %s .cache/bench/image.tar .cache/image/manager | xargs)"
scale_runs="${SCALE_RUNS:-1000}"
if [[ "$scale_runs" != 0 ]]; then
  echo "== $scale_runs runs under one manager"
  hack/cluster/cluster binaries >/dev/null
  CGO_ENABLED=0 SCALE_RUNS="$scale_runs" KUBE_BINARIES="${KUBE_BINARIES:-$PWD/.cluster/bin}" \
    go test -tags integration -count=1 -timeout 30m -v ./test/integration -ginkgo.focus 'Many runs' |
    awk '/runs trained/ && !seen[$0]++ || /^--- FAIL/'
fi
if [[ "$scale_runs" != 0 ]]; then
  echo "== 500 queued runs under one manager (goals: 0.05 of a core, and no write)"
  CGO_ENABLED=0 SCALE_RUNS=500 KUBE_BINARIES="${KUBE_BINARIES:-$PWD/.cluster/bin}" \
    go test -tags integration -count=1 -timeout 30m -v ./test/integration -ginkgo.focus 'Many queued runs' |
    awk '/runs queued/ && !seen[$0]++ || /^--- FAIL/'
fi
if [[ "${E2E:-}" == 1 ]]; then
  echo "== learner killed, next step trained: ten times on the local cluster (goal: a median of 3 s)"
  bench '^BenchmarkRecovery$' 1x -tags e2e -timeout 20m ./test/e2e
  echo "== kubectl apply of config/samples/python-reward.yaml until the status shows a step, the longest of three times (goal: 60 s)"
  bench '^BenchmarkFirstStep$' 1x -tags e2e -timeout 20m ./test/e2e
  echo "== kubectl apply of programs that raise while they are imported until the exception is shown (goal: 15 s)"
  bench '^BenchmarkImportError$' 1x -tags e2e -timeout 20m ./test/e2e
fi

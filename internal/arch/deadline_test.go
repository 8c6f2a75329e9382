// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

// outbound names the expressions that make a connection, a client, a process, or a context that may outlive its
// caller's.
var outbound = map[string]bool{
	"http.Client": true, "http.Transport": true, "http.DefaultClient": true, "http.DefaultTransport": true,
	"http.Get": true, "http.Head": true, "http.Post": true, "http.PostForm": true,
	"net.Dialer": true, "net.Dial": true, "net.DialTimeout": true, "tls.Dial": true, "tls.Dialer": true,
	"grpc.NewClient": true, "grpc.Dial": true, "grpc.DialContext": true,
	"exec.Command": true, "exec.CommandContext": true,
	"context.WithoutCancel": true, "context.Background": true, "context.TODO": true,
}

// bound is the number of expressions of a kind in a file, and the bound that ends their calls.
type bound struct {
	n    int
	ends string
}

// bounded lists each place with its bound. A call without a deadline blocks its caller forever if a server accepts the
// connection and never answers.
var bounded = map[string]bound{
	"internal/broker/broker.go context.Background":        {1, "the broker: Drain"},
	"internal/broker/checks/checks.go context.Background": {1, "the broker: Close, and 10 minutes a check"},
	"internal/broker/loop.go http.Client":                 {1, "tinker/client: a minute a request"},
	"internal/broker/loop.go http.Transport":              {1, "its client's requests"},
	"internal/broker/settings.go http.Client":             {1, "10 minutes a request, and the run's connection"},
	"cmd/broker/lease.go context.WithoutCancel":           {1, "the end of the broker's term"},
	"cmd/broker/main.go context.Background":               {1, "the process: SIGINT and SIGTERM"},
	"cmd/broker/main.go context.WithoutCancel":            {1, "the process"},
	"cmd/broker/main.go http.Client":                      {1, "package broker: 10 minutes a request"},
	"cmd/broker/serve.go context.Background":              {1, "2 s"},
	"cmd/kubectl-tinker/main.go context.Background":       {1, "the process: SIGINT and SIGTERM"},
	"cmd/learner/main.go context.Background": {3,
		"the process: a transcript is read from files; the drain of the learner"},
	"cmd/learner/main.go http.Client":        {1, "tinker/client: a minute a request"},
	"cmd/rollout/main.go context.Background": {1, "the process: SIGINT and SIGTERM"},
	"cmd/rollout/worker.go context.Background": {1,
		"the process; a poll that its caller has left takes a minute a request"},
	"cmd/rollout/worker.go http.Client": {1, "tinker/client: a minute a request"},
	"internal/runner/command/command_linux.go context.Background": {1,
		"the process: SIGTERM once no caller is connected"},
	"internal/runner/spawn/spawn.go exec.Command": {1,
		"the runner ends the process with its call"},
	"internal/runner/spawn/prefork_linux.go exec.Command": {1,
		"40 s for its imports; the runner ends it with the process above, and each fork with its call"},
	"internal/runner/client/client.go net.Dialer":                         {2, "10 s, and the call's context"},
	"internal/controller/poller/post.go http.Client":                      {1, "the poller's Timeout of a heartbeat"},
	"internal/controller/poller/post.go http.Transport":                   {1, "the poller's Timeout of a heartbeat"},
	"internal/controller/poller/post.go net.Dialer":                       {1, "2 s"},
	"internal/controller/metrics/collector.go context.Background":         {1, "the collector's timeout"},
	"internal/environment/call.go context.WithoutCancel":                  {1, "30 s"},
	"internal/download/request.go http.DefaultClient":                     {1, "package stall: a minute without a byte"},
	"internal/environment/pythonreward/function.go context.WithoutCancel": {1, "2 minutes"},
	"internal/environment/ors/discover.go context.WithoutCancel":          {1, "10 s"},
	"internal/environment/ors/request.go http.Client": {1,
		"timeouts.createSeconds or callSeconds, and half a minute"},
	"internal/environment/ors/request.go http.Transport":        {1, "its client's Timeout"},
	"internal/environment/ors/request.go net.Dialer":            {1, "10 s"},
	"internal/environment/ors/session.go context.Background":    {1, "the end of the session, and 30 s a ping"},
	"internal/environment/ors/session.go context.WithoutCancel": {1, "10 s"},
	"internal/exchange/client.go net.Dialer":                    {1, "5 s"},
	"internal/exchange/connection.go grpc.NewClient":            {1, "a time limit of each call, and keepalive"},
	"internal/exchange/server.go context.Background":            {1, "the end of the server"},
	"internal/learner/artifacts/remote.go context.Background":   {4, "the bucket's limit of each request"},
	"internal/learner/tracking/http.go http.Client":             {1, "a minute a request"},
	"internal/learner/sessions.go context.WithoutCancel":        {1, "5 s"},
	"internal/learner/trainee/retry.go context.WithoutCancel":   {1, "30 s"},
	"internal/plugin/checkpoints/endpoint.go http.Client": {2,
		"tinker/client: a minute a request; package stall for archives"},
	"internal/plugin/runpod/runpod.go context.WithoutCancel":         {1, "10 s"},
	"internal/plugin/checkpoints/export.go context.WithoutCancel":    {1, "10 s"},
	"internal/plugin/try/play.go context.WithoutCancel":              {1, "5 s"},
	"internal/plugin/try/prompts.go context.WithoutCancel":           {1, "10 s"},
	"internal/plugin/transcripts/transcripts.go exec.CommandContext": {1, "the command: SIGINT"},
	"internal/plugin/runpod/forward.go http.Client":                  {1, "30 s"},
	"internal/plugin/artifacts/session.go http.Client":               {1, "5 minutes"},
	"internal/plugin/runpod/session.go http.Transport":               {1, "its client's Timeout"},
	"internal/plugin/ui/ui.go context.WithoutCancel":                 {1, "5 s"},
	"internal/plugin/try/train.go net.Dialer": {1,
		"the exchange's time limit of a call, to this process"},
	"internal/plugin/try/commands.go exec.CommandContext":        {1, "the trial, and 5 s more"},
	"internal/plugin/try/commands.go context.WithoutCancel":      {1, "the trial, and 5 s more"},
	"internal/plugin/try/programs_linux.go exec.CommandContext":  {1, "the trial"},
	"internal/plugin/try/trial.go http.Client":                   {1, "tinker/client: a minute a request"},
	"internal/rollout/episode/deadline.go context.WithoutCancel": {1, "30 s"},
	"internal/rollout/probe/probe.go context.WithoutCancel":      {1, "30 s"},
	"internal/rollout/submit.go context.Background":              {1, "a line of the log"},
	"internal/rollout/worker.go context.WithoutCancel":           {1, "the worker's grace"},
	"internal/serving/sampler.go context.WithoutCancel":          {1, "3 s"},
	"internal/tinker/client/client.go http.Client":               {1, "a minute a request"},
	"internal/tinker/transport/transport.go http.Transport":      {1, "the client's limit of a request"},
	"internal/tinker/transport/transport.go net.Dialer":          {1, "10 s"},
}

// TestOutboundCallsHaveDeadlines compares the expressions that make outbound calls with the list of bounds. The
// simulator makes none.
func TestOutboundCallsHaveDeadlines(t *testing.T) {
	found := map[string]int{}
	for _, s := range load(t, false) {
		isProgram := strings.HasPrefix(s.path, "internal/") || strings.HasPrefix(s.path, "cmd/")
		if !isProgram || strings.HasPrefix(s.path, "internal/tinkersim/") || strings.HasPrefix(s.path, "cmd/tinkersim/") {
			continue
		}
		for what, n := range outboundIn(s.file) {
			found[s.path+" "+what] += n
		}
	}
	for _, place := range slices.Sorted(maps.Keys(found)) {
		if got, want := found[place], bounded[place].n; got != want {
			t.Errorf("%s: %d times, want %d: set a deadline for its calls, and list the place with its bound", place, got,
				want)
		}
	}
	for _, place := range slices.Sorted(maps.Keys(bounded)) {
		if found[place] == 0 {
			t.Errorf("%s is listed and not in the file: remove it from the list", place)
		}
	}
}

// outboundIn counts the outbound expressions of a file. The type of a field or an argument does not count: it makes
// nothing.
func outboundIn(file *ast.File) map[string]int {
	found := map[string]int{}
	count := func(node ast.Expr) {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if base, ok := selector.X.(*ast.Ident); ok && outbound[base.Name+"."+selector.Sel.Name] {
				found[base.Name+"."+selector.Sel.Name]++
			}
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.CompositeLit:
			count(n.Type)
		case *ast.CallExpr:
			count(n.Fun)
			if fun, ok := n.Fun.(*ast.Ident); ok && fun.Name == "new" && len(n.Args) == 1 {
				count(n.Args[0])
			}
			for _, argument := range n.Args {
				if selector, ok := argument.(*ast.SelectorExpr); ok && strings.HasPrefix(selector.Sel.Name, "Default") {
					count(argument)
				}
			}
		case *ast.ValueSpec:
			count(n.Type) // var client http.Client
			for _, value := range n.Values {
				count(value)
			}
		case *ast.AssignStmt:
			for _, value := range n.Rhs {
				count(value)
			}
		case *ast.KeyValueExpr:
			count(n.Value)
		}
		return true
	})
	return found
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/broker"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/simulatortest"
)

const apiKey = "tml-platform-key"

var tokenKey = bytes.Repeat([]byte{7}, 32)

// The runs: two of one team, and one of another.
var (
	first  = broker.Run{Owner: broker.Owner{UID: "first", Namespace: "team"}}
	second = broker.Run{Owner: broker.Owner{UID: "second", Namespace: "team"}}
	other  = broker.Run{Owner: broker.Owner{UID: "other", Namespace: "elsewhere"}}
)

// fixture is a broker in front of a simulator.
type fixture struct {
	t      *testing.T
	sim    *tinkersim.Server
	broker *broker.Broker
	config broker.Config
	url    string
}

// newFixture serves a broker with the three runs in front of a simulator that requires a JWT.
func newFixture(t *testing.T, change func(*broker.Config)) *fixture {
	t.Helper()
	config := tinker.DefaultServerConfig()
	config.PJWTAuthEnabled = true
	f := &fixture{t: t}
	var upstream string
	f.sim, upstream = simulatortest.Serve(t, tinkersim.Options{APIKey: apiKey, Config: &config})
	f.config = broker.Config{Endpoint: "shared", BaseURL: upstream, APIKey: apiKey, TokenKey: tokenKey, Dir: t.TempDir()}
	if change != nil {
		change(&f.config)
	}
	f.open()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.broker.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	f.url = server.URL
	return f
}

// open opens the broker from its folder, as another process would.
func (f *fixture) open() {
	f.t.Helper()
	opened, err := broker.Open(f.config)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(opened.Close)
	opened.SetRuns([]broker.Run{first, second, other})
	f.broker = opened
}

// as returns a client with the token of a run.
func (f *fixture) as(run broker.Run) *client.Client {
	f.t.Helper()
	c, err := client.New(client.Config{BaseURL: f.url, APIKey: contract.RunToken(tokenKey, run.UID)})
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// answer is the answer to a request.
type answer struct {
	status int
	header http.Header
	body   string
}

// call sends a request with a token.
func (f *fixture) call(token, method, path, body string, header ...string) answer {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), method, f.url+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set(tinker.HeaderAPIKey, token)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	plain := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := plain.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	read, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(read)}
}

func (f *fixture) callAs(run broker.Run, method, path, body string, header ...string) answer {
	f.t.Helper()
	return f.call(contract.RunToken(tokenKey, run.UID), method, path, body, header...)
}

// objects are the objects that a run made.
type objects struct{ session, model, state, weights, sampler, future string }

// make makes an object of each kind as a run.
func (f *fixture) make(run broker.Run) objects {
	f.t.Helper()
	ctx, c := f.t.Context(), f.as(run)
	must := func(err error) {
		f.t.Helper()
		if err != nil {
			f.t.Fatal(err)
		}
	}
	var made objects
	var err error
	made.session, err = c.CreateSession(ctx, client.SessionRequest{UserMetadata: map[string]string{"mine": "yes"}})
	must(err)
	m, err := c.CreateModel(ctx, tinker.CreateModelRequest{Session: made.session, BaseModel: tinkersim.ModelName,
		Lora: tinker.LoraConfig{Rank: 4, TrainAttn: true, TrainMLP: true, TrainUnembed: true}})
	must(err)
	made.model = m.ID()
	state, err := m.SaveState(ctx, client.SaveRequest{Name: "state"})
	must(err)
	weights, err := m.SaveSampler(ctx, client.SaveRequest{Name: "weights"})
	must(err)
	saved, err := state.Wait(ctx)
	must(err)
	made.state = saved.Path
	saved, err = weights.Wait(ctx)
	must(err)
	made.weights = saved.Path
	made.sampler, err = c.CreateSamplingSession(ctx, made.session, 0, made.weights, "")
	must(err)
	got := f.callAs(run, http.MethodPost, "/api/v1/asample", sampleBody("sampling_session_id", made.sampler))
	var submitted tinker.FutureResponse
	must(json.Unmarshal([]byte(got.body), &submitted))
	made.future = submitted.RequestID
	return made
}

func sampleBody(name, value string) string {
	return fmt.Sprintf(`{%q:%q,"num_samples":1,"seq_id":9,"prompt":{"chunks":[{"type":"encoded_text","tokens":[1,2]}]},`+
		`"sampling_params":{"max_tokens":2}}`, name, value)
}

func collect[T any](seq func(yield func(T, error) bool)) ([]T, error) {
	var all []T
	for item, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, item)
	}
	return all, nil
}

// checkListings checks that a run lists the objects that it made, and no others.
func (f *fixture) checkListings(run broker.Run, made objects) {
	f.t.Helper()
	ctx, c := f.t.Context(), f.as(run)
	models, err := collect(c.TrainingRuns(ctx))
	if err != nil || len(models) != 1 || models[0].TrainingRunID != made.model {
		f.t.Errorf("%s lists the models %+v (%v), want %s", run.UID, models, err, made.model)
	}
	if len(models) == 1 && models[0].UserMetadata[broker.MetadataRun] != run.UID {
		f.t.Errorf("the metadata of the model are %v, want the metadata of the run", models[0].UserMetadata)
	}
	checkpoints, err := collect(c.Checkpoints(ctx))
	if err != nil || len(checkpoints) != 2 {
		f.t.Errorf("%s lists the checkpoints %+v (%v), want %s and %s", run.UID, checkpoints, err, made.state, made.weights)
	}
	for _, checkpoint := range checkpoints {
		if checkpoint.TinkerPath != made.state && checkpoint.TinkerPath != made.weights {
			f.t.Errorf("%s lists the checkpoint %s", run.UID, checkpoint.TinkerPath)
		}
	}
	want := fmt.Sprintf(`{"sessions":[%q]}`, made.session)
	if got := f.callAs(run, http.MethodGet, "/api/v1/sessions", ""); got.body != want {
		f.t.Errorf("%s lists the sessions %s, want %s", run.UID, got.body, want)
	}
}

func TestRunsUseAndListWhatTheyMade(t *testing.T) {
	f := newFixture(t, nil)
	mine, theirs := f.make(first), f.make(other)
	for range 2 { // in this process, and in another one
		f.checkListings(first, mine)
		f.checkListings(other, theirs)
		if got := f.callAs(first, http.MethodPost, "/api/v1/retrieve_future",
			fmt.Sprintf(`{"request_id":%q}`, mine.future)); got.status != http.StatusOK {
			t.Errorf("polling: got %+v", got)
		}
		f.broker.Close()
		f.open()
	}
	got := f.callAs(first, http.MethodGet, "/api/v1/sessions/"+mine.session, "")
	if !strings.Contains(got.body, mine.model) {
		t.Errorf("the session is %+v, want its model %s", got, mine.model)
	}
}

func TestLostRecordsOfModelsAreRestored(t *testing.T) {
	f := newFixture(t, nil)
	mine, theirs := f.make(first), f.make(other)
	f.config.Dir = t.TempDir()
	f.open()
	if !f.broker.IsEmpty() {
		t.Error("a broker with another folder knows owners")
	}
	if n, err := f.broker.Restore(t.Context()); n != 2 || err != nil {
		t.Errorf("Restore = %d, %v, want 2 models", n, err)
	}
	ctx := t.Context()
	models, err := collect(f.as(first).TrainingRuns(ctx))
	if err != nil || len(models) != 1 || models[0].TrainingRunID != mine.model {
		t.Errorf("the run lists %+v (%v), want %s", models, err, mine.model)
	}
	if _, err := f.as(first).WeightsInfo(ctx, theirs.state); client.CategoryFrom(err) != tinker.CategoryNotFound {
		t.Errorf("WeightsInfo of another team = %v, want not found", err)
	}
}

// routesWith returns the requests that name the objects of a run, by their purpose.
func routesWith(made objects, ownSession string) map[string][]string {
	const v1 = "/api/v1/"
	text := func(format string, values ...any) string { return fmt.Sprintf(format, values...) }
	model, path, session := text(`{"model_id":%q,"seq_id":1`, made.model), v1+"training_runs/"+made.model,
		text(`{"session_id":%q`, made.session)
	return map[string][]string{
		"heartbeat":       {"POST", v1 + "session_heartbeat", session + `}`},
		"session":         {"GET", v1 + "sessions/" + made.session},
		"finish":          {"POST", v1 + "sessions/" + made.session + "/finish", `{}`},
		"sampler of base": {"POST", v1 + "create_sampling_session", session + `,"base_model":"` + tinkersim.ModelName + `"}`},
		"sampler of a checkpoint": {"POST", v1 + "create_sampling_session",
			text(`{"session_id":%q,"sampling_session_seq_id":5,"model_path":%q}`, ownSession, made.weights)},
		"sampler":             {"GET", v1 + "samplers/" + made.sampler},
		"sample":              {"POST", v1 + "asample", sampleBody("sampling_session_id", made.sampler)},
		"sample a checkpoint": {"POST", v1 + "asample", sampleBody("model_path", made.weights)},
		"create":              {"POST", v1 + "create_model", session + `,"model_seq_id":7,"base_model":"` + tinkersim.ModelName + `"}`},
		"unload":              {"POST", v1 + "unload_model", model + `}`},
		"info":                {"POST", v1 + "get_info", model + `}`},
		"train":               {"POST", v1 + "forward_backward", model + `,"forward_backward_input":{"data":[]}}`},
		"forward":             {"POST", v1 + "forward", model + `,"forward_input":{"data":[]}}`},
		"optimize":            {"POST", v1 + "optim_step", model + `,"adam_params":{}}`},
		"save":                {"POST", v1 + "save_weights", model + `,"path":"stolen"}`},
		"save for sampler":    {"POST", v1 + "save_weights_for_sampler", model + `,"path":"stolen"}`},
		"save external":       {"POST", v1 + "save_weights_external", model + `,"path":"stolen"}`},
		"load into it":        {"POST", v1 + "load_weights", model + text(`,"path":%q}`, made.state)},
		"load it": {"POST", v1 + "load_weights",
			text(`{"session_id":%q,"model_seq_id":8,"path":%q}`, ownSession, made.state)},
		"weights info":   {"POST", v1 + "weights_info", text(`{"tinker_path":%q}`, made.state)},
		"result":         {"POST", v1 + "retrieve_future", text(`{"request_id":%q}`, made.future)},
		"cancel":         {"POST", v1 + "cancel_future", text(`{"request_id":%q}`, made.future)},
		"model":          {"GET", path},
		"checkpoints":    {"GET", path + "/checkpoints"},
		"archive":        {"GET", path + "/checkpoints/weights/state/archive"},
		"external files": {"GET", path + "/checkpoints/weights/state/external_weights_urls"},
		"ttl":            {"PUT", path + "/checkpoints/weights/state/ttl", `{"ttl_seconds":1}`},
		"delete":         {"DELETE", path + "/checkpoints/weights/state"},
		"publish":        {"POST", path + "/checkpoints/weights/state/publish"},
		"unpublish":      {"DELETE", path + "/checkpoints/weights/state/publish"},
		"an unknown field": {"POST", v1 + "create_session",
			text(`{"tags":[],"source_path":%q}`, made.state)},
	}
}

// permitted are the routes by which a run may use the checkpoints of its namespace.
var permitted = map[string]bool{
	"sampler of a checkpoint": true, "sample a checkpoint": true, "load it": true, "weights info": true, "archive": true,
	"an unknown field": true,
}

func TestNoRouteReachesTheObjectsOfAnotherRun(t *testing.T) {
	f := newFixture(t, func(c *broker.Config) { c.Publication = true })
	mine := f.make(first)
	sessions := map[string]string{second.UID: f.make(second).session, other.UID: f.make(other).session}
	before := f.sim.Stats().Calls
	for _, run := range []broker.Run{other, second} {
		for name, r := range routesWith(mine, sessions[run.UID]) {
			got := f.callAs(run, r[0], r[1], strings.Join(r[2:], ""))
			if run == second && permitted[name] {
				if got.status >= 400 && got.header.Get(tinker.HeaderBrokerCode) != "" {
					t.Errorf("%s of a run of the same namespace: %+v, want the answer of the server", name, got)
				}
				continue
			}
			if got.status != http.StatusNotFound || got.header.Get(tinker.HeaderBrokerCode) != string(problem.ObjectNotOwned) ||
				got.header.Get(tinker.HeaderBrokerForwarded) != "false" {
				t.Errorf("%s by %s: %s %s = %+v, want 404 of the broker", name, run.UID, r[0], r[1], got)
			}
		}
	}
	data, err := tinker.EncodeForwardBackward(tinker.ForwardBackwardRequest{ModelID: mine.model, SeqID: 1})
	if err != nil {
		t.Fatal(err)
	}
	zipped, err := tinker.Compress(data)
	if err != nil {
		t.Fatal(err)
	}
	for encoding, body := range map[string][]byte{"identity": data, "zstd": zipped} {
		got := f.callAs(other, http.MethodPost, "/api/v1/forward_backward", string(body),
			"Content-Type", tinker.ContentProtobuf, "Content-Encoding", encoding)
		if got.status != http.StatusNotFound {
			t.Errorf("training in protobuf as %s: %+v, want 404", encoding, got)
		}
	}
	if calls := f.sim.Stats().Calls; calls["optim_step"] != before["optim_step"] || calls["ttl"] != before["ttl"] {
		t.Errorf("the server saw %v after %v, want no step and no edit", calls, before)
	}
	f.checkListings(first, mine)
	// The server itself answers the same requests from the run, which shows that the table names real routes.
	for name, r := range routesWith(mine, mine.session) {
		got := f.callAs(first, r[0], r[1], strings.Join(r[2:], ""))
		if got.header.Get(tinker.HeaderBrokerCode) != "" {
			t.Errorf("%s by the owner: %+v, want the answer of the server", name, got)
		}
	}
}

func TestPathsAreReadAsTheServerReadsThem(t *testing.T) {
	f := newFixture(t, nil)
	mine, theirs := f.make(first), f.make(other)
	for _, path := range []string{
		"/api/v1/training_runs/" + mine.model + "%2F..%2F" + theirs.model,
		"/api/v1/training_runs/" + mine.model + "/../" + theirs.model,
		"/api/v1/training_runs/" + mine.model + "/checkpoints/../../" + theirs.model + "/checkpoints",
		"/api/v1/training_runs//" + theirs.model,
		"/api/v1/sessions/" + mine.session + "%3Fx/finish",
		"/api/v1/samplers/" + theirs.sampler + "%00",
		"/api/v1//training_runs/" + theirs.model,
		"/x/api/v1/training_runs/" + mine.model,
		"DELETE /api/v1/training_runs/" + mine.model + "/checkpoints/weights/..",
		"DELETE /api/v1/training_runs/" + mine.model + "/checkpoints/weights/state%3Fx",
	} {
		method, target, ok := strings.Cut(path, " ")
		if !ok {
			method, target = http.MethodGet, path
		}
		if got := f.callAs(first, method, target, ""); got.status != http.StatusNotFound ||
			got.header.Get(tinker.HeaderBrokerForwarded) != "false" {
			t.Errorf("%s %s = %+v, want 404 of the broker", method, target, got)
		}
	}
}

func TestRoutesWithoutARuleAreRefusedByName(t *testing.T) {
	f := newFixture(t, nil)
	mine := f.make(first)
	for path, want := range map[string]int{
		"POST /api/v1/training_runs/" + mine.model + "/checkpoints/weights/state/publish": http.StatusForbidden,
		"GET /api/v1/billing/usage/events":                                                http.StatusForbidden,
		"GET /api/v1/audit":                                                               http.StatusForbidden,
		"POST /api/v1/copy_weights":                                                       http.StatusForbidden,
		"PUT /api/v1/sessions/" + mine.session + "/project":                               http.StatusForbidden,
		"GET /api/v1/sessions/" + mine.session + "/trace_export":                          http.StatusForbidden,
		"POST /api/v1/retrieve_futures":                                                   http.StatusNotFound,
		"POST /api/v1/auth/token":                                                         http.StatusNotFound,
		"POST /oai/api/v1/completions":                                                    http.StatusNotFound,
	} {
		method, target, _ := strings.Cut(path, " ")
		got := f.callAs(first, method, target, "{}")
		if got.status != want || got.header.Get(tinker.HeaderBrokerCode) != string(problem.RouteRefused) {
			t.Errorf("%s = %+v, want %d RouteRefused", path, got, want)
		}
	}
}

// TestPublicationNeedsTheRuleOfTheEndpoint publishes a checkpoint of the run with and without the endpoint's consent.
func TestPublicationNeedsTheRuleOfTheEndpoint(t *testing.T) {
	for _, permitted := range []bool{false, true} {
		f := newFixture(t, func(c *broker.Config) { c.Publication = permitted })
		mine := f.make(first)
		err := f.as(first).Publish(t.Context(), mine.state, true)
		listed, listErr := f.as(first).RunCheckpoints(t.Context(), mine.model)
		if listErr != nil {
			t.Fatal(listErr)
		}
		public := slices.ContainsFunc(listed, func(c tinker.Checkpoint) bool { return c.Public })
		if public != permitted || (err == nil) != permitted {
			t.Errorf("permitted %v: publishing = %v, and the checkpoint is public: %v", permitted, err, public)
		}
		if !permitted && !strings.Contains(err.Error(), "spec.allowed.publication") {
			t.Errorf("the refusal is %v, want one that names the field", err)
		}
		if err := f.as(first).Publish(t.Context(), mine.state, false); err != nil {
			t.Errorf("permitted %v: making a checkpoint private: %v", permitted, err)
		}
	}
}

func TestTokensCountWhileTheirRunIsNamed(t *testing.T) {
	f := newFixture(t, nil)
	token := contract.RunToken(tokenKey, first.UID)
	check := func(token string, want int) {
		t.Helper()
		if got := f.call(token, http.MethodGet, "/api/v1/get_server_capabilities", ""); got.status != want {
			t.Errorf("status = %d (%s), want %d", got.status, got.body, want)
		}
	}
	check(token, http.StatusOK)
	for _, strange := range []string{"", apiKey, "tml-", token + "0", contract.RunToken(tokenKey, "unknown")} {
		check(strange, http.StatusUnauthorized)
	}
	f.broker.SetRuns([]broker.Run{second})
	check(token, http.StatusUnauthorized)
}

func TestFormerRunsObjectsAreTheRunsOwn(t *testing.T) {
	f := newFixture(t, nil)
	mine := f.make(first)
	heir := broker.Run{Owner: broker.Owner{UID: "heir", Namespace: "team"}, Former: first.UID}
	thief := broker.Run{Owner: broker.Owner{UID: "thief", Namespace: "elsewhere"}, Former: first.UID}
	f.broker.SetRuns([]broker.Run{heir, thief})
	path := "/api/v1/training_runs/" + mine.model
	if got := f.callAs(heir, http.MethodGet, path, ""); got.status != http.StatusOK {
		t.Errorf("the heir gets %+v, want the model", got)
	}
	if got := f.callAs(thief, http.MethodGet, path, ""); got.status != http.StatusNotFound {
		t.Errorf("a run of another namespace gets %+v, want 404", got)
	}
}

func TestConfigurationsAreTheBrokers(t *testing.T) {
	f := newFixture(t, func(c *broker.Config) { c.Models = []string{"another/model"} })
	got := f.callAs(first, http.MethodPost, "/api/v1/client/config", `{"sdk_version":"1"}`)
	if !strings.Contains(got.body, `"pjwt_auth_enabled":false`) {
		t.Errorf("configuration = %+v, want one without JWT", got)
	}
	if got := f.callAs(first, http.MethodGet, "/api/v1/get_server_capabilities", ""); strings.Contains(got.body,
		tinkersim.ModelName) {
		t.Errorf("capabilities = %s, want permitted models alone", got.body)
	}
	session, err := f.as(first).CreateSession(t.Context(), client.SessionRequest{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.as(first).CreateSamplingSession(t.Context(), session, 0, "", tinkersim.ModelName)
	if client.CategoryFrom(err) != tinker.CategoryUser || !strings.Contains(err.Error(), "does not permit") {
		t.Errorf("a model that is not permitted: %v, want a refusal that says so", err)
	}
}

func TestReadableCheckpointsOfOtherTeams(t *testing.T) {
	var readable []broker.Readable
	f := newFixture(t, nil)
	mine := f.make(first)
	readable = append(readable, broker.Readable{Namespaces: []string{"elsewhere"}, Checkpoints: []string{mine.state}})
	f.config.Readable = readable
	f.broker.Close()
	f.open()
	ctx, c := t.Context(), f.as(other)
	if _, err := c.WeightsInfo(ctx, mine.state); err != nil {
		t.Errorf("WeightsInfo of a readable checkpoint: %v", err)
	}
	if _, err := c.WeightsInfo(ctx, mine.weights); client.CategoryFrom(err) != tinker.CategoryNotFound {
		t.Errorf("WeightsInfo of another one: %v, want not found", err)
	}
	if err := c.DeleteCheckpoint(ctx, mine.state); client.CategoryFrom(err) != tinker.CategoryNotFound {
		t.Errorf("deleting a readable checkpoint: %v, want not found", err)
	}
}

func TestRunsHaveNoProjectOfTheirOwn(t *testing.T) {
	f, s := scripted(t)
	if got := f.callAs(first, http.MethodPost, "/api/v1/create_session", `{"tags":[],"project_id":"stolen"}`); got.status !=
		http.StatusOK {
		t.Fatalf("create_session = %+v", got)
	}
	want := `create_session {"tags":[],"user_metadata":{"tinker-operator.dev/namespace":"team",` +
		`"tinker-operator.dev/run":"first"}}`
	if seen := s.requests(); len(seen) != 1 || seen[0] != want {
		t.Errorf("the server saw %q, want %q", seen, want)
	}
}

func TestRunsCannotWriteTheBrokersMetadata(t *testing.T) {
	f := newFixture(t, func(c *broker.Config) { c.Project = "platform" })
	ctx, c := t.Context(), f.as(first)
	forged := map[string]string{broker.MetadataRun: other.UID, broker.MetadataNamespace: other.Namespace, "mine": "kept"}
	session, err := c.CreateSession(ctx, client.SessionRequest{UserMetadata: forged, ProjectID: "stolen"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.CreateModel(ctx, tinker.CreateModelRequest{Session: session, BaseModel: tinkersim.ModelName,
		Lora: tinker.DefaultLora(), UserMetadata: forged})
	if err != nil {
		t.Fatal(err)
	}
	found, err := c.TrainingRun(ctx, m.ID())
	if err != nil {
		t.Fatal(err)
	}
	if got := found.UserMetadata; got[broker.MetadataRun] != first.UID || got[broker.MetadataNamespace] != "team" ||
		got["mine"] != "kept" {
		t.Errorf("metadata = %v, want the metadata of the run that made the model, and its own", got)
	}
	direct, err := client.New(client.Config{BaseURL: f.config.BaseURL, APIKey: apiKey})
	if err != nil {
		t.Fatal(err)
	}
	projects := func(id string) int {
		query := f.config.BaseURL + "/api/v1/training_runs?project_id=" + id
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, query, nil)
		if err != nil {
			t.Fatal(err)
		}
		credential, err := direct.Credential(ctx)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(tinker.HeaderAPIKey, credential)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var list tinker.TrainingRunList
		if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
			t.Fatal(err)
		}
		return len(list.TrainingRuns)
	}
	if got := projects("platform"); got != 1 {
		t.Errorf("the project of the endpoint has %d models, want 1", got)
	}
	if got := projects("stolen"); got != 0 {
		t.Errorf("the project that the run named has %d models, want 0", got)
	}
}

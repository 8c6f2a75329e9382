// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/httpstatus"
)

// serve starts a learner's side over TLS, and returns a client that trusts it, and its address.
func serve(t *testing.T, observe func(contract.HeartbeatRequest) contract.HeartbeatReply) (Client, string) {
	t.Helper()
	server := httptest.NewTLSServer(Handler("uid", func(token string) bool { return token == "token" }, observe))
	t.Cleanup(server.Close)
	return Client{HTTP: server.Client(), Token: "token"}, strings.TrimPrefix(server.URL, "https://")
}

func TestPost(t *testing.T) {
	var received contract.HeartbeatRequest
	client, address := serve(t, func(r contract.HeartbeatRequest) contract.HeartbeatReply {
		received = r
		return contract.HeartbeatReply{RunUID: "uid", Attempt: 2, Sequence: 7, Progress: contract.Progress{
			Phase: contract.PhaseTraining, Step: 3, Metrics: map[string]float64{"a": 1, "b": math.NaN(), "c": math.Inf(-1)},
		}}
	})
	sent := contract.HeartbeatRequest{RunUID: "uid", Attempt: 3, Desired: contract.DesiredDrain}
	got, err := client.Post(t.Context(), address, sent)
	if err != nil {
		t.Fatalf("Post: %v", err)
	}
	if diff := cmp.Diff(sent, received); diff != "" {
		t.Errorf("the request changed on its way (-sent +received):\n%s", diff)
	}
	want := contract.HeartbeatReply{RunUID: "uid", Attempt: 2, Sequence: 7, Progress: contract.Progress{
		Phase: contract.PhaseTraining, Step: 3, Metrics: map[string]float64{"a": 1}, Diverged: true,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
}

func TestHandlerRefuses(t *testing.T) {
	client, address := serve(t, func(contract.HeartbeatRequest) contract.HeartbeatReply {
		t.Error("a request that is refused reached the learner")
		return contract.HeartbeatReply{}
	})
	cases := map[string]struct {
		token string
		run   string
		want  int
	}{
		"no token of the run": {"other", "uid", http.StatusUnauthorized},
		"no token at all":     {"", "uid", http.StatusUnauthorized},
		"another run":         {"token", "other", http.StatusMisdirectedRequest},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Client{HTTP: client.HTTP, Token: tc.token}.Post(t.Context(), address,
				contract.HeartbeatRequest{RunUID: tc.run})
			var status *httpstatus.Error
			if !errors.As(err, &status) || status.Status != tc.want {
				t.Errorf("Post = %v, want status %d", err, tc.want)
			}
		})
	}
	response, err := client.HTTP.Get("https://" + address + contract.HeartbeatPath)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET = %d, want %d", response.StatusCode, http.StatusMethodNotAllowed)
	}
	request, _ := http.NewRequest(http.MethodPost, "https://"+address+contract.HeartbeatPath, strings.NewReader("no json"))
	request.Header.Set("Authorization", "Bearer token")
	response, err = client.HTTP.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusBadRequest {
		t.Errorf("POST of nonsense = %d, want %d", response.StatusCode, http.StatusBadRequest)
	}
}

func TestPostOfNoReply(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = w.Write([]byte("<html>"))
	}))
	defer server.Close()
	client := Client{HTTP: server.Client()}
	if _, err := client.Post(t.Context(), strings.TrimPrefix(server.URL, "https://"),
		contract.HeartbeatRequest{}); err == nil {
		t.Error("an invalid reply was accepted")
	}
	if _, err := client.Post(t.Context(), "127.0.0.1:1", contract.HeartbeatRequest{}); err == nil {
		t.Error("nobody answered, and there is no error")
	}
}

// TestPostOfALongReply checks that the longest reply is read, and that the error for a longer one names the limit.
func TestPostOfALongReply(t *testing.T) {
	for name, tc := range map[string]struct {
		bytes int
		want  string
	}{
		"the longest": {maxReplyBytes, ""},
		"too long": {maxReplyBytes + 1,
			"decoding heartbeat's reply: it is longer than the 512 KiB that the manager reads"},
	} {
		t.Run(name, func(t *testing.T) {
			body := `{"runUID":"` + strings.Repeat("x", tc.bytes-len(`{"runUID":""}`)) + `"}`
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_,
					_ = w.Write([]byte(body))
			}))
			defer server.Close()
			_, err := Client{HTTP: server.Client()}.Post(t.Context(), strings.TrimPrefix(server.URL, "https://"),
				contract.HeartbeatRequest{})
			if _, unread := errors.AsType[*ReplyError](err); unread != (tc.want != "") || unread && err.Error() != tc.want {
				t.Errorf("Post = %v, want %q", err, tc.want)
			}
		})
	}
}

// FuzzHandler posts arbitrary bytes to a learner, and checks that the learner refuses them or answers with a reply
// that can be read.
func FuzzHandler(f *testing.F) {
	f.Add(`{"runUID":"uid","attempt":2,"desired":"Drain"}`, 0.5)
	f.Add(`{"runUID":"uid","attempt":2147483648}`, math.NaN())
	f.Fuzz(func(t *testing.T, body string, metric float64) {
		handler := Handler("uid", func(string) bool { return true },
			func(r contract.HeartbeatRequest) contract.HeartbeatReply {
				return contract.HeartbeatReply{RunUID: r.RunUID, Attempt: r.Attempt,
					Progress: contract.Progress{Metrics: map[string]float64{"m": metric}}}
			})
		request := httptest.NewRequest(http.MethodPost, contract.HeartbeatPath, strings.NewReader(body))
		request.Header.Set("Authorization", "Bearer token")
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		if recorder.Code >= http.StatusInternalServerError {
			t.Fatalf("%q is answered %d", body, recorder.Code)
		}
		var reply contract.HeartbeatReply
		if recorder.Code == http.StatusOK && json.Unmarshal(recorder.Body.Bytes(), &reply) != nil {
			t.Errorf("%q is answered with %q", body, recorder.Body)
		}
	})
}

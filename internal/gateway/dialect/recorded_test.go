// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// recording has requests and options of the official clients, recorded by test/dialects.
type recording struct {
	Versions map[string]string   `json:"versions"`
	Options  map[string][]string `json:"options"`
	Requests []struct {
		Name     string          `json:"name"`
		Endpoint string          `json:"endpoint"`
		Body     json.RawMessage `json:"body"`
	} `json:"requests"`
}

// paths are the endpoints, by their names in the recording.
var paths = map[string]Endpoint{
	"chat/completions": ChatCompletions, "completions": Completions, "responses": Responses, "messages": Messages,
	"messages/count_tokens": CountTokens,
}

func mustRead(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func load(t *testing.T) recording {
	t.Helper()
	var r recording
	if err := json.Unmarshal(mustRead(t, "testdata/requests.json"), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Requests) < 100 {
		t.Fatalf("got %d recorded requests, want at least 100", len(r.Requests))
	}
	return r
}

// testOptions are the options of most tests: signatures begin with "signature-of-".
func testOptions(policy Policy) Options {
	return Options{
		Unsupported: policy, Limits: DefaultLimits(),
		Verify: func(thinking, signature string) bool { return signature == testSign(thinking) },
	}
}

func testSign(thinking string) string { return fmt.Sprintf("signature-of-%d-bytes", len(thinking)) }

// outcome describes the result of decoding a request in one line.
func outcome(request *Request, err error) string {
	if err != nil {
		e := err.(*Error) //nolint:errorlint // Decode says that it is one.
		return fmt.Sprintf("refused: %s: %s", e.Param, e.Message)
	}
	words := []string{"decoded"}
	if len(request.Overruled) > 0 {
		words = append(words, "overruled "+strings.Join(request.Overruled, " "))
	}
	for _, field := range request.Ignored {
		words = append(words, "ignored "+field.Name+" at "+field.Path)
	}
	return strings.Join(words, ", ")
}

func TestRecordedRequests(t *testing.T) {
	const golden = "testdata/outcomes.txt"
	var lines []string
	for _, r := range load(t).Requests {
		for policy, name := range map[Policy]string{Ignore: "Ignore", Refuse: "Refuse"} {
			request, err := Decode(paths[r.Endpoint], r.Body, testOptions(policy))
			lines = append(lines, r.Name+" "+name+": "+outcome(request, err))
		}
	}
	slices.Sort(lines)
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(mustRead(t, golden)), got); diff != "" {
		t.Errorf("outcomes differ (-want +got); -update writes them:\n%s", diff)
	}
}

// olderOptions are options that the recorded versions of the clients no longer have.
var olderOptions = map[Endpoint][]string{Messages: {"temperature", "top_k", "top_p"}}

// headers are options that the clients send as headers.
var headers = []string{"user_profile_id", "workspace_id"}

// TestTreatmentOfEveryPublicOption compares the table of options with the options of the official clients, and each
// treatment with the result of a request that sets the option.
func TestTreatmentOfEveryPublicOption(t *testing.T) {
	r := load(t)
	bodies := map[string]json.RawMessage{}
	for _, request := range r.Requests {
		bodies[request.Name] = request.Body
	}
	for path, endpoint := range paths {
		treatments := TreatmentOf(endpoint)
		for _, name := range olderOptions[endpoint] {
			if treatments[name] != Overruled {
				t.Errorf("%s: %s is %s, want overruled", path, name, treatments[name])
			}
			delete(treatments, name)
		}
		if diff := cmp.Diff(r.Options[path], slices.Sorted(maps.Keys(treatments))); diff != "" {
			t.Errorf("%s: options of the clients (-) and of the table (+) differ:\n%s", path, diff)
		}
		for name, treatment := range treatments {
			body, ok := bodies["option/"+path+"/"+name]
			if !ok {
				body = bodies["option/"+path+"/required"]
			}
			if err := hasTreatment(endpoint, name, treatment, body); err != nil {
				t.Errorf("%s: %s is %s, but %v", path, name, treatment, err)
			}
		}
	}
}

// hasTreatment returns an error if the codec treats an option of a body in another way.
func hasTreatment(endpoint Endpoint, name string, treatment Treatment, body json.RawMessage) error {
	var fields map[string]json.RawMessage
	err := json.Unmarshal(body, &fields)
	if slices.Contains(headers, name) && fields[name] == nil && treatment == Accepted {
		return nil
	}
	if err != nil || fields[name] == nil {
		return errors.Join(errors.New("no recorded request has it"), err)
	}
	request, err := Decode(endpoint, body, testOptions(Ignore))
	if err == nil && treatment == Refused {
		return errors.New("it was decoded")
	}
	if err != nil && treatment != Refused {
		return err
	}
	if err != nil {
		if e := err.(*Error); e.Param != name { //nolint:errorlint // Decode says that it is one.
			return fmt.Errorf("the error names %q", e.Param)
		}
		return nil
	}
	if overruled := slices.Contains(request.Overruled, name); overruled != (treatment == Overruled) {
		return fmt.Errorf("overruled are %q", request.Overruled)
	}
	ignored := slices.ContainsFunc(request.Ignored, func(f Field) bool { return f.Name == name })
	if ignored != (treatment == Unsupported) {
		return fmt.Errorf("ignored are %v", request.Ignored)
	}
	return nil
}

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParsePath(t *testing.T) {
	cases := map[string]struct {
		path  string
		want  Path
		id    string
		kind  string
		fails bool
	}{
		"A state": {
			path: "tinker://3f6b:train:0/weights/0010", want: Path{Run: "3f6b:train:0", Kind: KindState, Name: "0010"},
			id: "weights/0010", kind: CheckpointTraining,
		},
		"Sampler weights, with a dot in the name": {
			path: "tinker://m/sampler_weights/a.b-c_d", want: Path{Run: "m", Kind: KindSampler, Name: "a.b-c_d"},
			id: "sampler_weights/a.b-c_d", kind: CheckpointSampler,
		},
		"Another scheme":               {path: "http://m/weights/a", fails: true},
		"No scheme":                    {path: "m/weights/a", fails: true},
		"A kind that is not known":     {path: "tinker://m/adapters/a", fails: true},
		"Two parts":                    {path: "tinker://m/a", fails: true},
		"Four parts":                   {path: "tinker://m/weights/a/b", fails: true},
		"No run":                       {path: "tinker:///weights/a", fails: true},
		"No name":                      {path: "tinker://m/weights/", fails: true},
		"A name that climbs":           {path: "tinker://m/weights/..", fails: true},
		"A run that climbs":            {path: "tinker://../weights/a", fails: true},
		"A name that would be a query": {path: "tinker://m/weights/a?b", fails: true},
		"A name with an escape":        {path: "tinker://m/weights/a%2f", fails: true},
		"A name with a backslash":      {path: `tinker://m/weights/a\b`, fails: true},
		"A name with a blank":          {path: "tinker://m/weights/a b", fails: true},
		"A name beyond ASCII":          {path: "tinker://m/weights/ä", fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParsePath(tc.path)
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.fails {
				t.Fatalf("ParsePath: %v, (-want +got):\n%s", err, diff)
			}
			if err == nil && (got.String() != tc.path || got.CheckpointID() != tc.id || got.Kind.CheckpointType() != tc.kind) {
				t.Errorf("%q, %q, %q", got, got.CheckpointID(), got.Kind.CheckpointType())
			}
		})
	}
}

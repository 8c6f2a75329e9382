// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transcripts

import (
	"os"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/bucket"
	"github.com/tinker-operator/tinker-operator/internal/learner/bucket/buckettest"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// write commits a step of a run to a store, as its learner does.
func write(t *testing.T, address, uid string) {
	t.Helper()
	objects, err := bucket.Open(t.Context(), address, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = objects.Close() })
	s, err := artifacts.OpenBucketStore(objects, t.TempDir(), uid)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Claim(1, "me"); err != nil {
		t.Fatal(err)
	}
	version := rl.Version{Step: 1, Lineage: rl.Genesis("a")}
	data, err := transcript.EncodeLines(transcript.Line{Step: 1, Lineage: version.Lineage.String()},
		[]transcript.TaskGroup{{Recorded: true}}, transcript.Trained{})
	if err != nil {
		t.Fatal(err)
	}
	row := artifacts.Row{Version: version}
	if err := s.WriteStep(row, data); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteRow(row); err != nil {
		t.Fatal(err)
	}
	if err := s.Rebuild(version, func(rl.Version) (rl.Lineage, bool) { return rl.Lineage{}, false }); err != nil {
		t.Fatal(err)
	}
}

func TestWhichStoresThisMachineHasKeysOf(t *testing.T) {
	keys := map[string]string{"AWS_ACCESS_KEY_ID": "key", "AWS_ENDPOINT_URL_S3": "https://minio.example",
		"AZURE_STORAGE_KEY": "key"}
	for address, want := range map[string]bool{
		"s3://runs/a":                              true,
		"s3://runs/a?region=eu":                    true,
		"s3://runs?endpoint=https://minio.example": true,
		"s3://runs?endpoint=https://evil.example":  false,
		"s3://runs?profile=other":                  false,
		"azblob://runs/a":                          true,
		"azblob://runs/a?domain=evil.example":      false,
		"gs://runs/a":                              false,
		"file:///etc":                              false,
		"":                                         false,
	} {
		run := newRun()
		run.Spec.Artifacts = &v1alpha1.Artifacts{URL: address}
		if got := hasKeys(run, func(name string) string { return keys[name] }); got != want {
			t.Errorf("%s: has keys is %t, want %t", address, got, want)
		}
	}
}

// TestReadStore reads the files of a learner in a store that is compatible with S3.
func TestReadStore(t *testing.T) {
	store := buckettest.Start(t, nil)
	run := newRun()
	run.UID, run.Spec.Artifacts = "uid", &v1alpha1.Artifacts{URL: store.URL("team")}
	variable := func(string) string { return "" }
	found, err := readStore(t.Context(), run, question{step: newest}, variable)
	if err != nil || len(found.Steps) != 0 {
		t.Fatalf("an empty store answers %+v, %v", found, err)
	}
	write(t, run.Spec.Artifacts.URL, "uid")
	found, err = readStore(t.Context(), run, question{step: newest}, variable)
	if err != nil || len(found.Steps) != 1 || !strings.Contains(string(found.Transcript), `"step":1`) {
		t.Errorf("the store answers %+v, %v", found, err)
	}
	run.Spec.Artifacts.URL = strings.Replace(run.Spec.Artifacts.URL, "runs", "none", 1)
	if _, err := readStore(t.Context(), run, question{step: newest}, variable); err == nil ||
		!strings.Contains(err.Error(), "with this machine's keys") {
		t.Errorf("a bucket that does not exist: %v", err)
	}
}

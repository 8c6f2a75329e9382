// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/hub/hubtest"
)

// task is a row of the Parquet files.
type task struct {
	Nums   []int64 `parquet:"nums,list"`
	Target int64   `parquet:"target"`
	Text   string  `parquet:"text"`
}

// parquetFile returns a Parquet file of n tasks in one row group. Their numbers begin at first.
func parquetFile(t testing.TB, first, n int) []byte {
	t.Helper()
	var file bytes.Buffer
	w := parquet.NewGenericWriter[task](&file, parquet.MaxRowsPerRowGroup(1<<40), parquet.Compression(&parquet.Snappy))
	for i := range n {
		row := task{Nums: []int64{int64(first + i), 2}, Target: int64(i % 99), Text: strings.Repeat("text ", i%80)}
		if _, err := w.Write([]task{row}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// newHub returns a hub with two shards of train.
func newHub(t *testing.T) *hubtest.Hub {
	t.Helper()
	return hubtest.New(t, "org/countdown", map[string][]byte{
		"data/train-00000-of-00002.parquet": parquetFile(t, 0, 3000), "data/train-00001-of-00002.parquet": parquetFile(t,
			3000, 1000),
		"README.md": []byte("text"),
	})
}

// ofHub returns the definition of a hub's repository with changes.
func ofHub(h *hubtest.Hub, changes ...func(*contract.Dataset)) contract.Dataset {
	d := contract.Dataset{Dataset: settings.Dataset{
		Hub: &settings.Hub{Repository: h.Repository, BaseURL: h.URL}, Prompt: "$(nums) make $(target)",
		Splits: []settings.DataSplit{{Name: "test", Source: "train", Take: new(int64(1024))},
			{Name: "train", Source: "train", Skip: 1024}},
	}}
	for _, change := range changes {
		change(&d)
	}
	return d
}

func TestHub(t *testing.T) {
	for name, fault := range map[string]func(*hubtest.Hub){
		"a hub that answers":      func(*hubtest.Hub) {},
		"a hub that answers 429":  func(h *hubtest.Hub) { h.Busy = 3 },
		"a connection that broke": func(h *hubtest.Hub) { h.BreakAfter = 9000 },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			fault(h)
			l := mounted(t, nil)
			d := open(t, l, ofHub(h))
			row, err := d.Row(t.Context(), "train", 2000)
			if err != nil || row.Prompt != "3024, 2 make 24" {
				t.Fatalf("Row = %+v, %v", row, err)
			}
			contents := l.Contents(ofHub(h))
			if contents.Revision != hubtest.Commit || len(contents.Sources) != 1 || contents.Sources[0].Rows != 4000 {
				t.Errorf("Contents = %+v", contents)
			}
			// A pinned definition reads the same data wherever the branch moves.
			h.Change(func(h *hubtest.Hub) { h.Revisions["main"] = strings.Repeat("f", 40) })
			again, err := open(t, mounted(t, nil), ofHub(h, func(d *contract.Dataset) { d.Contents = contents })).Row(
				t.Context(), "train", 2000)
			if err != nil || again.Prompt != row.Prompt {
				t.Errorf("the pinned row is %+v, %v", again, err)
			}
		})
	}
}

func TestHubRefusals(t *testing.T) {
	withToken := func(d *contract.Dataset) { d.Hub.TokenSecretKeyRef = &ref.SecretKey{Name: "hf", Key: "TOKEN"} }
	cases := map[string]struct {
		hub    func(*hubtest.Hub)
		change func(*contract.Dataset)
		want   string
	}{
		"a private repository": {hub: func(h *hubtest.Hub) { h.Token = "other" },
			want: "dataset.hub.repository: the hub answers 401 for org/countdown: it does not exist, or it is private " +
				"or gated; correct the name, or give tokenSecretKeyRef"},
		"a wrong token": {hub: func(h *hubtest.Hub) { h.Token = "other" }, change: withToken,
			want: "dataset.hub.tokenSecretKeyRef: the hub answers 401 for org/countdown: the token is not valid"},
		"conditions that were not accepted": {hub: func(h *hubtest.Hub) { h.Token, h.Granted = "hf_token", false },
			change: withToken,
			want: "dataset.hub.tokenSecretKeyRef: the hub answers 403 for org/countdown: the token's owner has no " +
				"access; accept"},
		"a gated repository without a token": {hub: func(h *hubtest.Hub) { h.Granted = false },
			want: "dataset.hub.tokenSecretKeyRef: the hub answers 403 for org/countdown: it is gated"},
		"an unknown repository": {hub: func(h *hubtest.Hub) { h.Repository = "org/moved" },
			change: func(d *contract.Dataset) {
				withToken(d)
				d.Hub.Repository = "org/none"
			}, want: "dataset.hub.repository: the hub answers 404 for org/none at revision main: correct repository " +
				"or revision"},
		"an unknown revision": {change: func(d *contract.Dataset) { d.Hub.Revision = "v9" },
			want: "dataset.hub.repository: the hub answers 404 for org/countdown at revision v9"},
		"a missing Secret": {change: func(d *contract.Dataset) {
			d.Hub.TokenSecretKeyRef = &ref.SecretKey{Name: "none", Key: "TOKEN"}
		},
			want: `dataset.hub.tokenSecretKeyRef: Secret "none" does not exist in this namespace, or has no key "TOKEN"`},
		"an unknown split": {change: func(d *contract.Dataset) { d.Splits[1].Source = "dev" },
			want: `dataset.splits[1] (train): the data has no split "dev"; it has train: correct source`},
		"an unknown config": {change: func(d *contract.Dataset) { d.Hub.Config = "c" },
			want: `dataset.hub.repository: config "c" of the repository has no files`},
		"a name that no column has": {change: func(d *contract.Dataset) { d.Prompt = "$(question)" },
			want: `dataset.prompt: row 1 of data/train-00000-of-00002.parquet has no column "question"; its columns are nums, target, text: correct the name`},
		"a commit that changed": {hub: func(h *hubtest.Hub) {
			h.Files["data/train-00001-of-00002.parquet"] = parquetFile(t, 1, 10)
		},
			change: func(d *contract.Dataset) {
				d.Contents = &contract.DataContents{Revision: hubtest.Commit,
					Sources: []contract.DataSource{{Name: "train", SHA256: sha("x")}}}
			}, want: "dataset.hub.repository: split train has sha256 "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			if tc.hub != nil {
				tc.hub(h)
			}
			definition := ofHub(h)
			if tc.change != nil {
				tc.change(&definition)
			}
			l := mounted(t, map[string]string{"secret/hf/TOKEN": "hf_token\n"})
			_, err := open(t, l, definition).Splits(t.Context())
			var wrong *Error
			if !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("Splits = %v, want %s", err, tc.want)
			}
		})
	}
}

func TestGatedHubWithAccess(t *testing.T) {
	h := newHub(t)
	h.Token = "hf_token"
	l := mounted(t, map[string]string{"secret/hf/TOKEN": "hf_token\n"})
	d := open(t, l, ofHub(h, func(d *contract.Dataset) {
		d.Hub.TokenSecretKeyRef = &ref.SecretKey{Name: "hf", Key: "TOKEN"}
	}))
	if _, err := d.Splits(t.Context()); err != nil {
		t.Errorf("Splits: %v", err)
	}
}

// TestDamagedDownload checks that a file that differs from the hub's listing is a fault that may pass.
func TestDamagedDownload(t *testing.T) {
	h := hubtest.New(t, "org/rows", map[string][]byte{"large.jsonl": []byte(rows)})
	h.Damage = true
	definition := ofHub(h, func(d *contract.Dataset) { d.Splits, d.Prompt = nil, "fixed" })
	l := mounted(t, nil)
	_, err := open(t, l, definition).Splits(t.Context())
	var fault *environment.Fault
	if !errors.As(err, &fault) || fault.Permanent || !strings.Contains(err.Error(), "in the hub's listing") {
		t.Errorf("Splits = %v, want a fault that may pass", err)
	}
	h.Change(func(h *hubtest.Hub) { h.Damage = false })
	if splits, err := open(t, l, definition).Splits(t.Context()); err != nil || len(splits) != 1 || splits[0].Tasks != 3 {
		t.Errorf("Splits = %v, %v", splits, err)
	}
}

// TestPermits checks that loaders that share four permits never have more than four downloads at once.
func TestPermits(t *testing.T) {
	h := newHub(t)
	permits := make(chan struct{}, 4)
	failed := make(chan error)
	const workers = 20
	for range workers {
		l := New(Config{Dir: t.TempDir(), Space: 1 << 30, Permit: func(context.Context) (func(), error) {
			permits <- struct{}{}
			return func() { <-permits }, nil
		}})
		go func() {
			d, err := l.Open(t.Context(), ofHub(h))
			if err == nil {
				_, err = d.Splits(t.Context())
			}
			failed <- err
		}()
	}
	for range workers {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if h.MostDownloads > 4 || h.MostDownloads == 0 {
		t.Errorf("%d files were sent at once, want at most 4", h.MostDownloads)
	}
	files := slices.DeleteFunc(slices.Clone(h.Requests),
		func(path string) bool { return !strings.HasPrefix(path, "/store/") })
	if len(files) != 2*workers {
		t.Errorf("%d files were sent, want %d: each worker fetches each file once", len(files), 2*workers)
	}
}

func TestFolderWithoutSpace(t *testing.T) {
	l := mounted(t, nil)
	l.config.Dir = filepath.Join(l.config.Dir, "none")
	h := newHub(t)
	_, err := open(t, l, ofHub(h)).Splits(t.Context())
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Splits = %v", err)
	}
	l = mounted(t, nil)
	l.config.Space = int64(len(h.Files["data/train-00000-of-00002.parquet"])) - 1
	var wrong *Error
	if _, err := open(t, l, ofHub(h)).Splits(t.Context()); !errors.As(err, &wrong) || !strings.Contains(fmt.Sprint(err),
		"of disk that a pod has for data") {
		t.Errorf("Splits = %v", err)
	}
}

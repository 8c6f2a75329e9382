// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/download"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/hub"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/hub/hubtest"
	"github.com/tinker-operator/tinker-operator/internal/httpstatus"
)

func TestRead(t *testing.T) {
	served := hubtest.New(t, "org/data", map[string][]byte{
		"data/train-00000-of-00002.parquet": []byte("one"), "data/train-00001-of-00002.parquet": []byte("two"),
		"data/test-00000-of-00001.parquet": []byte("three"), "README.md": []byte("text"), "odd name#1.jsonl": []byte("{}"),
	})
	served.Busy = 1
	r := hub.Repository{Client: &download.Client{}, URL: served.URL, Name: "org/data"}
	commit, err := r.Read(t.Context(), "main")
	if err != nil || commit.SHA != hubtest.Commit || len(commit.Files) != 5 {
		t.Fatalf("Read = %+v, %v", commit, err)
	}
	splits, err := commit.Splits("")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"test", "train"}, slices.Sorted(maps.Keys(splits))); diff != "" ||
		len(splits["train"]) != 2 || splits["train"][0].SHA256 == "" {
		t.Errorf("Splits = %+v", splits)
	}
	for path, want := range map[string]string{"data/train-00001-of-00002.parquet": "two", "odd name#1.jsonl": "{}"} {
		body, err := r.Open(t.Context(), commit.SHA, path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(body)
		if string(got) != want || err != nil {
			t.Errorf("%s has %q, %v", path, got, err)
		}
		if err := body.Close(); err != nil {
			t.Error(err)
		}
	}
	var status *httpstatus.Error
	if _, err := r.Read(t.Context(), "refs/convert/parquet"); !errors.As(err, &status) || status.Status != 404 {
		t.Errorf("Read of an unknown revision = %v", err)
	}
	if last := served.Requests[len(served.Requests)-1]; !strings.HasSuffix(last, "/revision/refs%2Fconvert%2Fparquet") {
		t.Errorf("the revision is asked for at %s", last)
	}
}

// listed returns files of a commit.
func listed(paths ...string) []hub.File {
	files := make([]hub.File, 0, len(paths))
	for _, path := range paths {
		files = append(files, hub.File{Path: path})
	}
	return files
}

func TestSplits(t *testing.T) {
	cases := map[string]struct {
		card, config string
		files        []string
		// want has the files of each split; err is a part of the error if there is one.
		want map[string]string
		err  string
	}{
		"shards": {files: []string{"README.md", "data/train-00000-of-00002.parquet", "data/train-00001-of-00002-abc.parquet",
			"data/extra-00000-of-00001.parquet"},
			want: map[string]string{"train": "data/train-00000-of-00002.parquet data/train-00001-of-00002-abc.parquet",
				"extra": "data/extra-00000-of-00001.parquet"}},
		"names of files": {files: []string{"dataset_infos.json", "my_train.jsonl", "test.jsonl", "dev.jsonl.gz",
			"notes.jsonl"},
			want: map[string]string{"train": "my_train.jsonl", "test": "test.jsonl", "validation": "dev.jsonl.gz"}},
		"names of folders": {files: []string{"training/a.jsonl", "training/b.jsonl", "eval/c.jsonl"},
			want: map[string]string{"train": "training/a.jsonl training/b.jsonl", "test": "eval/c.jsonl"}},
		"no names": {files: []string{"a.parquet", "b.parquet", "c.json"},
			want: map[string]string{"train": "a.parquet b.parquet"}},
		"a folder of the config": {config: "main", files: []string{"main/train-00000-of-00001.parquet",
			"main/test-00000-of-00001.parquet", "socratic/train-00000-of-00001.parquet"},
			want: map[string]string{"train": "main/train-00000-of-00001.parquet", "test": "main/test-00000-of-00001.parquet"}},
		"a conversion by the hub": {config: "default", files: []string{"default/train/0000.parquet",
			"default/train/0001.parquet"}, want: map[string]string{"train": "default/train/0000.parquet " +
			"default/train/0001.parquet"}},
		"a card with splits and globs": {
			card: `[{"config_name": "default", "data_files": [{"split": "train", "path": "d/tr*"}, {"split": "hard", "path": ["x/**/h-[0-9].jsonl", "y"]}]}]`, files: []string{"d/tr1.jsonl", "d/tr2.jsonl", "d/te.jsonl", "x/h-1.jsonl", "x/a/b/h-2.jsonl", "x/h-a.jsonl", "y/z.jsonl"}, want: map[string]string{"train": "d/tr1.jsonl d/tr2.jsonl", "hard": "x/a/b/h-2.jsonl x/h-1.jsonl y/z.jsonl"}},
		"a card with a folder": {card: `[{"config_name": "default", "data_dir": "./clean/"}]`,
			files: []string{"clean/train.jsonl", "clean/test.jsonl", "noisy/train.jsonl"},
			want:  map[string]string{"train": "clean/train.jsonl", "test": "clean/test.jsonl"}},
		"a card with a folder for each config": {
			card:  `[{"config_name": "a", "data_dir": "a/v1", "default": true}, {"config_name": "b", "data_dir": "b"}]`,
			files: []string{"a/v1/x.jsonl", "a/v2/x.jsonl", "b/x.jsonl"}, want: map[string]string{"train": "a/v1/x.jsonl"}},
		"a card with patterns in a folder": {
			card:  `[{"config_name": "default", "data_dir": "a", "data_files": "x*"}]`,
			files: []string{"a/x1.jsonl", "a/y.jsonl", "x1.jsonl"}, want: map[string]string{"train": "a/x1.jsonl"}},
		"a card with one pattern": {card: `[{"config_name": "only", "data_files": "a/*.jsonl"}]`,
			files: []string{"a/b.jsonl", "c.jsonl"}, want: map[string]string{"train": "a/b.jsonl"}},
		"a card with a map": {card: `[{"config_name": "only", "data_files": {"test": "a.jsonl"}}]`,
			files: []string{"a.jsonl"}, want: map[string]string{"test": "a.jsonl"}},
		"the default config": {
			card: `[{"config_name": "a", "data_files": "a.jsonl"}, {"config_name": "b", "data_files": "b.jsonl", "default": true}]`, files: []string{"a.jsonl", "b.jsonl"}, want: map[string]string{"train": "b.jsonl"}},
		"a config by its name": {
			card: `[{"config_name": "a", "data_files": "a.jsonl"}, {"config_name": "b", "data_files": "b.jsonl"}]`, config: "a",
			files: []string{"a.jsonl", "b.jsonl"}, want: map[string]string{"train": "a.jsonl"}},
		"several configs": {
			card:  `[{"config_name": "a", "data_files": "a.jsonl"}, {"config_name": "b", "data_files": "b.jsonl"}]`,
			files: []string{"a.jsonl"}, err: "config: the repository has the configs a, b: choose one of them"},
		"an unknown config": {card: `[{"config_name": "a", "data_files": "a.jsonl"}]`, config: "c",
			files: []string{"a.jsonl"}, err: `config: the repository has no config "c"; it has a: correct it`},
		"an unknown folder": {config: "c", files: []string{"a.jsonl"},
			err: `repository: config "c" of the repository has no files in Parquet or JSONL at this revision; all its files end in .jsonl: correct config`},
		"other formats": {files: []string{"a.csv", "b.txt", ".gitattributes"},
			err: "all its files end in .csv, .txt: correct config or revision; the hub's own conversion is revision " +
				"refs/convert/parquet"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			commit := hub.Commit{Files: listed(tc.files...)}
			slices.SortFunc(commit.Files, func(a, b hub.File) int { return strings.Compare(a.Path, b.Path) })
			if tc.card != "" {
				if err := json.Unmarshal([]byte(tc.card), &commit.Configs); err != nil {
					t.Fatal(err)
				}
			}
			splits, err := commit.Splits(tc.config)
			var wrong *hub.LayoutError
			if tc.err != "" && (!errors.As(err, &wrong) || !strings.Contains(err.Error(), tc.err)) || tc.err == "" &&
				err != nil {
				t.Fatalf("Splits = %v, want %s", err, tc.err)
			}
			var got map[string]string
			for split, files := range splits {
				if got == nil {
					got = map[string]string{}
				}
				var paths []string
				for _, f := range files {
					paths = append(paths, f.Path)
				}
				got[split] = strings.Join(paths, " ")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Splits (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReadSendsTheTokenToNoOtherServer serves a listing whose first page names the next page at another address.
func TestReadSendsTheTokenToNoOtherServer(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("another server is sent %s with the token %q", r.URL, r.Header.Get("Authorization"))
		http.NotFound(w, r)
	}))
	defer other.Close()
	for name, next := range map[string]string{
		"another host":   other.URL + "/page",
		"another scheme": "https://HOST/page",
	} {
		t.Run(name, func(t *testing.T) {
			var served *httptest.Server
			served = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "/revision/") {
					_, _ = io.WriteString(w, `{"sha": "`+hubtest.Commit+`"}`)
					return
				}
				host := strings.TrimPrefix(served.URL, "http://")
				w.Header().Set("Link", `<`+strings.Replace(next, "HOST", host, 1)+`>; rel="next"`)
				_, _ = io.WriteString(w, "[]")
			}))
			defer served.Close()
			r := hub.Repository{Client: &download.Client{}, URL: served.URL, Name: "org/data", Token: "secret"}
			if _, err := r.Read(t.Context(), "main"); err == nil || !strings.Contains(err.Error(), "elsewhere") {
				t.Errorf("Read: err = %v, want one that says where the listing continues", err)
			}
		})
	}
}

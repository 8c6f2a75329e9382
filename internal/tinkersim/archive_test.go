// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim_test

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/test/archive"
)

// unpack fetches the archive of a checkpoint and returns its files.
func (b *backend) unpack(path string) map[string]string {
	b.t.Helper()
	body := archive.Open(b.t, b.url, "tml-test", path)
	defer body.Close()
	files := map[string]string{}
	for reader := tar.NewReader(body); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			b.t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg || !header.ModTime.Equal(time.Unix(0, 0)) {
			b.t.Errorf("%s is of type %q and time %v", header.Name, header.Typeflag, header.ModTime)
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			b.t.Fatal(err)
		}
		files[header.Name] = string(data)
	}
}

// TestArchiveIdentifiesWeights checks that equal training on two servers, under different names, gives equal archives.
func TestArchiveIdentifiesWeights(t *testing.T) {
	type archives struct{ state, sampler map[string]string }
	var got []archives
	for i := range 2 {
		b := start(t, tinkersim.Options{})
		session := b.newSession()
		model := b.newModel(session, i)
		b.do("forward_backward", chunk(t, model, 1, "text"))
		b.do("optim_step", optim(model, 2))
		name := []string{"a", "b"}[i]
		b.do("save_weights", fill(`{"model_id":"M","path":"N","seq_id":3}`, "M", model, "N", name))
		b.do("save_weights_for_sampler", fill(`{"model_id":"M","path":"N","seq_id":4}`, "M", model, "N", name))
		got = append(got, archives{b.unpack("tinker://" + model + "/weights/" + name),
			b.unpack("tinker://" + model + "/sampler_weights/" + name)})
	}
	if diff := cmp.Diff(got[0], got[1], cmp.AllowUnexported(archives{})); diff != "" {
		t.Errorf("the archives of equal weights differ:\n%.300s", diff)
	}
	if got[0].state["adapter_model.bin"] == "" || got[0].state["adapter_config.json"] == "" {
		t.Errorf("files are missing: %d", len(got[0].state))
	}
	b, _, model := startTrained(t, tinkersim.Options{})
	other := b.unpack("tinker://" + model + "/weights/one")["adapter_model.bin"]
	if other == got[0].state["adapter_model.bin"] {
		t.Errorf("other weights have the same adapter file, with sha256 %x", sha256.Sum256([]byte(other)))
	}
}

func TestArchiveAfterLoad(t *testing.T) {
	b, session, model := startTrained(t, tinkersim.Options{})
	want := b.unpack("tinker://" + model + "/weights/one")
	for i, optimizer := range []bool{true, false} {
		other := b.newModel(session, i+1)
		b.do("load_weights", fill(`{"model_id":"M","seq_id":1,"path":"P","optimizer":O}`, "M", other, "P",
			"tinker://"+model+"/weights/one", "O", optimizer))
		if b.adapter(other, 2, "again") != want["adapter_model.bin"] {
			t.Errorf("loaded with optimizer=%v, the adapter file differs", optimizer)
		}
	}
}

func TestArchiveLinkExpires(t *testing.T) {
	c := newClock()
	b, _, model := startTrained(t, tinkersim.Options{Clock: c.Now})
	link, err := b.call(http.MethodGet, "/api/v1/training_runs/"+model+"/checkpoints/weights/one/archive", "")
	if err != nil || link.status != http.StatusFound || link.header.Get("Expires") != "Sat, 21 Nov 2026 12:15:00 GMT" {
		t.Fatalf("%d %v %v", link.status, link.header, err)
	}
	path := link.header.Get("Location")[len(b.url):]
	for _, want := range []int{http.StatusOK, http.StatusForbidden} {
		if got, err := b.call(http.MethodGet, path, "", "X-API-Key", ""); err != nil || got.status != want {
			t.Errorf("at %v: %d, %v, want %d", c.Now(), got.status, err, want)
		}
		c.advance(15 * time.Minute)
	}
}

// TestExternalWeights checks that weights for other programs outlive the process, that their files have URLs that
// expire, and that they are neither loaded nor sampled from.
func TestExternalWeights(t *testing.T) {
	c, dir := newClock(), t.TempDir()
	before, session, model := startTrained(t, tinkersim.Options{Clock: c.Now, Dir: dir})
	before.do("save_weights_external", fill(`{"model_id":"M","path":"x","seq_id":9}`, "M", model))
	path := "tinker://" + model + "/external_weights/x"
	for operation, body := range map[string]string{
		"load_weights":            `{"path":"P","optimizer":false,"session_id":"S","model_seq_id":7}`,
		"create_sampling_session": `{"session_id":"S","sampling_session_seq_id":7,"model_path":"P"}`,
		"weights_info":            `{"tinker_path":"P"}`,
	} {
		if got, err := before.call(http.MethodPost, "/api/v1/"+operation, fill(body, "P", path, "S", session)); err != nil ||
			got.status != http.StatusBadRequest {
			t.Errorf("%s of external weights: %d, %v", operation, got.status, err)
		}
	}
	before.sim.Close()

	b := start(t, tinkersim.Options{Clock: c.Now, Dir: dir})
	list, err := b.call(http.MethodGet, "/api/v1/training_runs/"+model+"/checkpoints", "")
	if err != nil || !strings.Contains(list.body, `"checkpoint_type":"external"`) {
		t.Errorf("the listing lacks the weights: %v %s", err, list.body)
	}
	var signed struct{ URLs map[string]string }
	urls, err := b.call(http.MethodGet, "/api/v1/training_runs/"+model+
		"/checkpoints/external_weights/x/external_weights_urls", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(urls.body), &signed); err != nil || len(signed.URLs) != 2 {
		t.Fatalf("URLs %s, %v", urls.body, err)
	}
	for _, want := range []int{http.StatusOK, http.StatusForbidden} {
		for name, url := range signed.URLs {
			got, err := b.call(http.MethodGet, url[len(b.url):], "", "X-API-Key", "")
			if err != nil || got.status != want || got.body == "" {
				t.Errorf("%s at %v: %d, %v, want %d", name, c.Now(), got.status, err, want)
			}
		}
		c.advance(15 * time.Minute)
	}
	for _, rest := range []string{"external_weights/x/archive", "weights/one/external_weights_urls",
		"external_weights/none/external_weights_urls"} {
		if got, err := b.call(http.MethodGet, "/api/v1/training_runs/"+model+"/checkpoints/"+rest, ""); err != nil ||
			got.status/100 != 4 {
			t.Errorf("%s: %d, %v", rest, got.status, err)
		}
	}
}

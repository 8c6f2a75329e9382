// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
	"github.com/tinker-operator/tinker-operator/internal/download"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/archive"
	tinkerclient "github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// exportTTL is the time for which external weights stay at the endpoint if the download is not completed: the shortest
// time that hosted Tinker permits.
const exportTTL = time.Hour

// exportPatience is the time that an endpoint has to load a state and save it as external weights.
const exportPatience = 15 * time.Minute

// exports reports whether an endpoint can export external weights: it then says that a state has none, while other
// endpoints do not know the request.
func (e Endpoint) exports(ctx context.Context, state string) bool {
	limited, cancel := context.WithTimeout(ctx, archivePatience)
	defer cancel()
	api, err := e.Client(func(string) {}, cancel)
	if err != nil {
		return false
	}
	_, err = api.ExternalWeights(limited, state)
	return tinkerclient.CategoryFrom(err) == tinker.CategoryUser
}

// fetchExternal makes the endpoint save a state as external weights, downloads their files, and deletes them at the
// endpoint. The next download uses the weights that an interrupted download has saved, as long as they exist.
func (d *adapterDownload) fetchExternal(ctx context.Context, state string) ([]archive.File, error) {
	report := d.report(state)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	api, err := d.from.Client(report, cancel)
	if err != nil {
		return nil, err
	}
	saved := d.partial("external", state)
	unlock, err := d.lock(saved + ".lock")
	if err != nil {
		return nil, err
	}
	defer unlock()
	defer func() { _ = os.Remove(saved + ".lock") }()
	path, err := d.external(ctx, api, state, saved)
	if err != nil {
		return nil, d.from.explain(err)
	}
	names := map[string]string{}
	for _, name := range []string{archive.ConfigFile, archive.TensorsFile} {
		partial := d.partial(name, path)
		locate := func(ctx context.Context) (string, error) { return d.from.locateExternal(ctx, api, path, name) }
		downloads := &download.Client{HTTP: d.from.http, Tries: 5, Report: report}
		if _, err := downloads.File(ctx, download.Source{Locate: locate, Name: name}, partial); err != nil {
			return nil, err
		}
		names[name] = partial
	}
	files, err := d.install(state, func(folder string) ([]archive.File, error) { return archive.Copy(names, folder) })
	if err != nil {
		return nil, err
	}
	if err := api.DeleteCheckpoint(ctx, path); err != nil {
		report(fmt.Sprintf("%s is not deleted at the endpoint, and expires within an hour: %v", path, err))
	}
	return files, errors.Join(os.Remove(saved), download.Discard(names[archive.ConfigFile]),
		download.Discard(names[archive.TensorsFile]))
}

// external returns the path of external weights of a state: of weights that an earlier download has saved, whose path
// is in the file saved, or of new weights.
func (d *adapterDownload) external(ctx context.Context, api *tinkerclient.Client, state, saved string) (string, error) {
	earlier, err := os.ReadFile(saved)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading the path of external weights: %w", err)
	}
	if path := strings.TrimSpace(string(earlier)); path != "" {
		if _, err := api.ExternalWeights(ctx, path); err == nil {
			return path, nil
		}
	}
	d.report(state)("the endpoint loads the state and saves it as external weights")
	limited, cancel := context.WithTimeout(ctx, exportPatience)
	defer cancel()
	path, err := saveExternal(limited, api, state)
	if err != nil {
		return "", err
	}
	return path, atomicfile.Write(saved, 0o644, []byte(path+"\n"))
}

// saveExternal loads a state into a new model and saves its weights as external weights. It needs no optimizer.
func saveExternal(ctx context.Context, api *tinkerclient.Client, state string) (path string, err error) {
	info, err := api.WeightsInfo(ctx, state)
	if err != nil {
		return "", err
	}
	if !info.IsLora || info.LoraRank == nil {
		return "", fmt.Errorf("%s has no adapter: choose another checkpoint", state)
	}
	if err := api.Connect(ctx); err != nil {
		return "", err
	}
	session, err := api.CreateSession(ctx, tinkerclient.SessionRequest{DisplayName: "kubectl tinker checkpoints download"})
	if err != nil {
		return "", err
	}
	alive, end := context.WithCancel(ctx)
	defer end()
	go api.KeepAlive(alive, session, nil)
	defer func() {
		finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = api.FinishSession(finish, session) // It ends by itself without heartbeats.
	}()
	model, err := api.CreateModel(ctx, tinker.CreateModelRequest{Session: session, BaseModel: info.BaseModel,
		Lora: tinker.LoraConfig{Rank: *info.LoraRank, TrainUnembed: ptr.Deref(info.TrainUnembed, true),
			TrainMLP: ptr.Deref(info.TrainMLP, true), TrainAttn: ptr.Deref(info.TrainAttn, true)}})
	if err != nil {
		return "", err
	}
	loading, err := model.LoadState(ctx, state, false)
	if err != nil {
		return "", err
	}
	if _, err := loading.Wait(ctx); err != nil {
		return "", err
	}
	saving, err := model.SaveExternal(ctx, tinkerclient.SaveRequest{Name: "download",
		TTLSeconds: int64(exportTTL.Seconds())})
	if err != nil {
		return "", err
	}
	result, err := saving.Wait(ctx)
	return result.Path, err
}

// locateExternal returns the URL of a file of external weights.
func (e Endpoint) locateExternal(ctx context.Context, api *tinkerclient.Client, path, name string) (string, error) {
	limited, cancel := context.WithTimeout(ctx, archivePatience)
	defer cancel()
	files, err := api.ExternalWeights(limited, path)
	if err != nil {
		return "", e.explain(err)
	}
	base, err := url.Parse(e.baseURL)
	if err != nil {
		return "", fmt.Errorf("parsing the base URL: %w", err)
	}
	location, err := base.Parse(files.URLs[name])
	if err != nil || files.URLs[name] == "" {
		return "", fmt.Errorf("the external weights %s have no %s: %w", path, name, archive.ErrNoAdapter)
	}
	return location.String(), nil
}

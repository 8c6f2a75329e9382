// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package assets has the files that the pages of kubectl tinker ui load: a style sheet, a script, and the libraries
// of others below vendor, at the versions of vendor/SOURCES.
package assets

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"time"
)

//go:embed app.css app.js icon.svg vendor
var files embed.FS

// Prefix is the path below which the files are served.
const Prefix = "/assets/"

// Version changes with each change of a file.
var Version = func() string {
	sum := sha256.New()
	_ = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := files.ReadFile(name)
		sum.Write(data)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil))[:12]
}()

// types are the media types of the files that are served, by their extensions.
var types = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml"}

// Serve answers requests for files.
func Serve(w http.ResponseWriter, r *http.Request) {
	name := path.Clean(r.URL.Path[len(Prefix):])
	data, err := files.ReadFile(name)
	kind, served := types[path.Ext(name)]
	if err != nil || !served {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "private, max-age=86400")
	w.Header().Set("ETag", `"`+Version+`"`)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
}

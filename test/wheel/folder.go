// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package wheel

import (
	"fmt"
	"net/http"
	"os"
	"strings"
)

// normal changes the name of a package to the form that an index uses.
var normal = strings.NewReplacer("_", "-", ".", "-")

// Folder serves the wheels of a folder as a package index. Its URL ends with /simple.
func Folder(dir string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /wheels/", http.StripPrefix("/wheels/", http.FileServer(http.Dir(dir))))
	mux.HandleFunc("GET /simple/{name}/", func(w http.ResponseWriter, r *http.Request) {
		files, err := os.ReadDir(dir)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		links := ""
		for _, file := range files {
			name, _, _ := strings.Cut(file.Name(), "-")
			if strings.ToLower(normal.Replace(name)) == r.PathValue("name") {
				links += fmt.Sprintf("<a href=\"/wheels/%s\">%s</a>\n", file.Name(), file.Name())
			}
		}
		if links == "" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!DOCTYPE html>\n", links)
	})
	return mux
}

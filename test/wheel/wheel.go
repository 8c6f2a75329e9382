// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package wheel makes Python packages for tests.
package wheel

import (
	"archive/zip"
	"bytes"
	"fmt"
	"testing"
)

// Name is the file name of the wheel of a package.
func Name(name, version string) string { return name + "-" + version + "-py3-none-any.whl" }

// Make returns the wheel of a package with one module of the same name and the variable VALUE. The package requires the
// packages in needs.
func Make(t testing.TB, name, version, value string, needs ...string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	archive := zip.NewWriter(&buffer)
	info := name + "-" + version + ".dist-info/"
	metadata := fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\n", name, version)
	for _, other := range needs {
		metadata += "Requires-Dist: " + other + "\n"
	}
	for _, file := range []struct{ name, text string }{
		{name + ".py", fmt.Sprintf("VALUE = %q\n", value)},
		{info + "METADATA", metadata},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{info + "RECORD", name + ".py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n"},
	} {
		w, err := archive.Create(file.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(file.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

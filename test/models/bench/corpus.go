// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// documentChars is the length of the documents into which text is cut.
const documentChars = 4000

// foreign sentences make up one in eight documents, so about one in twenty characters is not ASCII.
var foreign = []string{
	"Сегодня модель решила новую задачу и получила награду. ", "Η εκπαίδευση συνεχίζεται από το τελευταίο σημείο. ",
	"今天的训练比昨天快了一倍，奖励也提高了。", "新しい環境では、道具を使って答えを探します。", "학습은 저장된 곳에서 다시 시작됩니다. ",
	"आज मॉडल ने सही उत्तर दिया और आगे बढ़ा। ", "استأنف التدريب من آخر نقطة محفوظة. ",
	"Die Übung läuft größtenteils schon über Nacht. ",
	"L'entraînement a repris après l'arrêt, à l'étape précédente. ", "El niño aprendió rápido: ¿qué más podría pasar? ",
	"Mô hình học nhanh hơn khi phần thưởng rõ ràng. ", "แบบจำลองเรียนรู้ได้เร็วขึ้นทุกวัน ", "😀👍🏽 🚀 → ✓ … “ok” — ½ ≤ ² ",
}

// corpus returns documents with size bytes in all: the sources of Go and of Python, which have much English in their
// comments, and sentences in other languages.
func corpus(ctx context.Context, p packages, size int) ([]string, error) {
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	library, err := exec.CommandContext(ctx, p.python, "-c", "import os; print(os.path.dirname(os.__file__))").Output()
	if err != nil {
		return nil, err
	}
	var all []string
	for _, from := range []struct{ folder, suffix string }{{filepath.Join(strings.TrimSpace(string(goroot)), "src"),
		".go"}, {strings.TrimSpace(string(library)), ".py"}} {
		documents, err := sources(from.folder, from.suffix)
		if err != nil {
			return nil, err
		}
		all = append(all, documents...)
	}
	chance := rand.New(rand.NewPCG(1, 2))
	for i := range len(all) / 8 {
		all[i*8] = sentences(chance)
	}
	chance.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i, document := range all {
		if size -= len(document); size <= 0 {
			return all[:i+1], nil
		}
	}
	return all, nil
}

func sentences(chance *rand.Rand) string {
	var b strings.Builder
	for b.Len() < documentChars {
		b.WriteString(foreign[chance.IntN(len(foreign))])
	}
	return b.String()
}

// sources returns the files of a folder with a suffix, cut into documents.
func sources(folder, suffix string) ([]string, error) {
	var documents []string
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, suffix) {
			return err
		}
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) || !utf8.Valid(text) {
			return nil // a link to nowhere, or a test of encodings
		}
		for runes := []rune(string(text)); len(runes) > 0; {
			n := min(len(runes), documentChars)
			documents = append(documents, string(runes[:n]))
			runes = runes[n:]
		}
		return err
	})
	return documents, err
}

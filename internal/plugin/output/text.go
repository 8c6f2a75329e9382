// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/guptarohit/asciigraph"
)

// Number returns a number in four digits, or whole if it is large, and "" for nil.
func Number(v *float64) string {
	if v == nil {
		return ""
	}
	if large := math.Abs(*v); large >= 1e4 && large < 1e15 {
		return strconv.FormatFloat(*v, 'f', 0, 64)
	}
	return strconv.FormatFloat(*v, 'g', 4, 64)
}

// Count returns a number of things in at most five characters: 950, 12.3k, 4.56M.
func Count(n int64) string {
	value, units := float64(n), []string{"", "k", "M", "G", "T"}
	for i, unit := range units {
		if math.Abs(value) < 999.5 || i == len(units)-1 {
			if i == 0 {
				return strconv.FormatInt(n, 10)
			}
			return strconv.FormatFloat(value, 'f', max(0, 2-int(math.Log10(math.Abs(value)))), 64) + unit
		}
		value /= 1000
	}
	return ""
}

// Duration returns a time in its two largest units, as kubectl does: 45s, 3m10s, 2h5m, 3d4h.
func Duration(d time.Duration) string {
	seconds := max(0, int64(d.Round(time.Second)/time.Second))
	two := func(a int64, unit string, b int64, lower string) string {
		if b == 0 {
			return fmt.Sprintf("%d%s", a, unit)
		}
		return fmt.Sprintf("%d%s%d%s", a, unit, b, lower)
	}
	switch {
	case seconds < 60:
		return fmt.Sprintf("%ds", seconds)
	case seconds < 3600:
		return two(seconds/60, "m", seconds%60, "s")
	case seconds < 86400:
		return two(seconds/3600, "h", seconds%3600/60, "m")
	default:
		return two(seconds/86400, "d", seconds%86400/3600, "h")
	}
}

// Bar draws a share between 0 and 1 in width characters.
func Bar(share float64, width int) string {
	if math.IsNaN(share) {
		share = 0
	}
	full := int(math.Round(max(0, min(1, share)) * float64(width)))
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}

// Point is a value at a step.
type Point struct {
	Step  int64
	Value float64
}

// Curve draws values over their steps, in width and height characters beside the scale. It is empty if there are no
// points.
func Curve(title string, points []Point, width, height int) string {
	if len(points) == 0 {
		return ""
	}
	first, last := points[0], points[len(points)-1]
	values := interpolate(points, width)
	low, high := slices.Min(values), slices.Max(values)
	precision := uint(max(0, min(6, 3-int(math.Ceil(math.Log10(max(high-low, math.Abs(high)/100, 1e-6)))))))
	graph := asciigraph.Plot(values, asciigraph.Height(height), asciigraph.Precision(precision))
	return fmt.Sprintf("%s: %s at step %d\n%s\nsteps %d to %d\n", title, Number(&last.Value), last.Step, graph, first.Step,
		last.Step)
}

// Series are the points of one curve of several.
type Series struct {
	Name   string
	Points []Point
}

// Curves draws several curves over the same steps in one plot, each with a letter of its own. The lines below the
// plot have the letters, the names and the newest values of the curves.
func Curves(title string, all []Series, width, height int) string {
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for _, s := range all {
		for _, p := range s.Points {
			first, last = min(first, p.Step), max(last, p.Step)
		}
	}
	if first > last {
		return ""
	}
	var values [][]float64
	var chars []asciigraph.CharSet
	var names strings.Builder
	for _, s := range all {
		if len(s.Points) == 0 {
			continue
		}
		const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+*"
		letter := string(letters[len(values)%len(letters)])
		values = append(values, spread(s.Points, first, last, width))
		chars = append(chars, asciigraph.CreateCharSet(letter))
		newest := s.Points[len(s.Points)-1]
		fmt.Fprintf(&names, "%s  %s: %s at step %d\n", letter, Safe(s.Name), Number(&newest.Value), newest.Step)
	}
	const precision = 3
	graph := asciigraph.PlotMany(values, asciigraph.Height(height), asciigraph.Precision(precision),
		asciigraph.SeriesChars(chars...))
	return fmt.Sprintf("%s\n%s\nsteps %d to %d\n%s", title, graph, first, last, names.String())
}

// spread returns the given number of values at equal distances between two steps, with NaN outside of the points.
func spread(points []Point, first, last int64, count int) []float64 {
	values := make([]float64, max(2, count))
	share := func(step int64) int {
		return int(math.Round(float64(step-first) / float64(max(1, last-first)) * float64(len(values)-1)))
	}
	for i := range values {
		values[i] = math.NaN()
	}
	from, to := share(points[0].Step), share(points[len(points)-1].Step)
	copy(values[from:to+1], interpolate(points, to-from+1))
	return values
}

// interpolate returns the given number of values, at equal distances between the first and the last step.
func interpolate(points []Point, count int) []float64 {
	first, last := points[0].Step, points[len(points)-1].Step
	if first == last {
		return []float64{points[0].Value}
	}
	values := make([]float64, max(2, count))
	next := 1
	for i := range values {
		at := float64(first) + float64(last-first)*float64(i)/float64(len(values)-1)
		for next < len(points)-1 && float64(points[next].Step) < at {
			next++
		}
		a, b := points[next-1], points[next]
		share := (at - float64(a.Step)) / float64(b.Step-a.Step)
		values[i] = a.Value + (b.Value-a.Value)*max(0, min(1, share))
	}
	return values
}

// Safe returns text from a cluster without characters that control a terminal.
func Safe(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Clean returns a line of a model or a data set without characters that control a terminal, except tabs.
func Clean(line string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, line)
}

// Wrap breaks text into lines of at most width characters, and indents them.
func Wrap(text, indent string, width int) string {
	var out strings.Builder
	line := ""
	for word := range strings.FieldsSeq(Safe(text)) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width-len(indent) {
			out.WriteString(indent + line + "\n")
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	if line != "" {
		out.WriteString(indent + line + "\n")
	}
	return out.String()
}

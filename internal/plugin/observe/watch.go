// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"context"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
)

// watch draws the screen again and again until a key ends it.
func watch(ctx context.Context, env cli.IO, from source, first snapshot, every time.Duration) error {
	screen := &screen{from: from, now: first, every: every, ctx: ctx, width: defaultWidth}
	// Signals end ctx. With a signal handler of its own, the program and the handler would wait for each other after two
	// signals.
	_, err := tea.NewProgram(screen, tea.WithContext(ctx), tea.WithoutSignalHandler(), tea.WithInput(env.Stdin),
		tea.WithOutput(env.Stdout)).Run()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// screen is the state of the screen.
type screen struct {
	from  source
	now   snapshot
	every time.Duration
	ctx   context.Context
	width int
	// err is the error of the newest look at the cluster.
	err error
}

// look is the result of a look at the cluster.
type look struct {
	snapshot snapshot
	err      error
}

// Init begins to look.
func (s *screen) Init() tea.Cmd { return s.later() }

func (s *screen) later() tea.Cmd {
	return tea.Tick(s.every, func(time.Time) tea.Msg {
		found, err := s.from.read(s.ctx)
		return look{snapshot: found, err: err}
	})
}

// Update handles keys, sizes and looks.
func (s *screen) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch m := message.(type) {
	case tea.KeyPressMsg:
		switch m.String() {
		case "q", "esc", "ctrl+c":
			return s, tea.Quit
		}
	case tea.WindowSizeMsg:
		s.width = m.Width
	case look:
		s.err = m.err
		if m.err == nil {
			s.now = m.snapshot
		}
		return s, s.later()
	}
	return s, nil
}

// View returns the screen.
func (s *screen) View() tea.View {
	view := tea.NewView(s.text())
	view.AltScreen = true
	return view
}

func (s *screen) text() string {
	var b bytes.Buffer
	if s.now.history != nil {
		b.WriteString(runScreen(s.now, s.width))
	} else {
		// A table that is written to memory cannot fail.
		_ = output.Print(cli.IO{Stdout: &b}, output.Table, overview(s.now))
	}
	if s.err != nil {
		fmt.Fprintf(&b, "\nthe cluster does not answer since %s: %s", s.now.at.Format(time.TimeOnly),
			output.Safe(s.err.Error()))
	}
	fmt.Fprintf(&b, "\n%s   q quits\n", s.now.at.Format(time.TimeOnly))
	return b.String()
}

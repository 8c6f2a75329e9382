// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// parseFault parses a fault that a test requests: "point=kill", "point@step=stop". When the loop first passes that
// fault point, the process sends itself SIGKILL or SIGSTOP. Programs without the build tag faults do not contain it.
func parseFault(text string) (func(context.Context, string, int64) error, error) {
	if text == "" {
		return nil, nil
	}
	where, how, _ := strings.Cut(text, "=")
	signals := map[string]syscall.Signal{"kill": syscall.SIGKILL, "stop": syscall.SIGSTOP}
	sent, ok := signals[how]
	if !ok {
		return nil, fmt.Errorf("reading the fault %q: it ends in neither =kill nor =stop", text)
	}
	point, at, timed := strings.Cut(where, "@")
	step := int64(-1)
	if timed {
		var err error
		if step, err = strconv.ParseInt(at, 10, 64); err != nil {
			return nil, fmt.Errorf("reading the fault %q: %w", text, err)
		}
	}
	done := false
	return func(_ context.Context, passed string, now int64) error {
		if done || passed != point || (timed && now != step) {
			return nil
		}
		done = true
		return send(sent)
	}, nil
}

// send sends the signal to this process and does not return before the signal had its effect: other threads continue
// for a moment.
func send(s syscall.Signal) error {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if err := syscall.Kill(os.Getpid(), s); err != nil {
		return err
	}
	<-continued
	return nil
}

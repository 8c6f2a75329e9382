// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

// control says how a statement ended.
type control int

const (
	goOn control = iota
	breakLoop
	continueLoop
)

// node is a statement; expr is an expression.
type (
	node interface {
		exec(e *evaluator, s *scope) control
	}
	expr interface {
		eval(e *evaluator, s *scope) any
	}
)

// Statements.
type (
	textNode  struct{ text string }
	printNode struct {
		value expr
		line  int
	}
	branch struct {
		test expr
		body []node
	}
	ifNode struct {
		branches []branch
		other    []node
		line     int
	}
	forNode struct {
		target           expr
		over, test       expr
		body, other      []node
		recursive, peeks bool
		line             int
	}
	setNode struct {
		target, value expr
		line          int
	}
	// blockSetNode is set with a body. filter is the filter after its target, applied to captured.
	blockSetNode struct {
		target, value expr
		captured      *captured
		body          []node
		line          int
	}
	macroNode struct {
		name     string
		params   []string
		defaults []expr
		body     []node
		uses     map[string]bool
	}
	// callNode is call with its body. For generation, call is nil.
	callNode struct {
		call   *callExpr
		caller *macroNode
		line   int
	}
	filterNode struct {
		value    expr
		captured *captured
		body     []node
		line     int
	}
	withNode struct {
		targets, values []expr
		body            []node
		line            int
	}
	loopControl control
)

// Expressions.
type (
	constant struct{ value any }
	nameExpr struct{ name string }
	// attrRef is the target ns.name of set.
	attrRef   struct{ name, attr string }
	tupleExpr struct {
		items []expr
		tuple bool
	}
	dictExpr struct{ keys, values []expr }
	condExpr struct {
		test, yes, no expr
		line          int
	}
	logicExpr struct {
		left, right expr
		or          bool
	}
	notExpr     struct{ of expr }
	compareExpr struct {
		first expr
		ops   []comparison
	}
	comparison struct {
		op string
		of expr
	}
	binaryExpr struct {
		op          string
		left, right expr
	}
	signExpr struct {
		of       expr
		negative bool
	}
	concatExpr struct{ parts []expr }
	attrExpr   struct {
		of   expr
		name string
	}
	itemExpr  struct{ of, key expr }
	sliceExpr struct{ of, start, stop, step expr }
	arguments struct {
		positional    []expr
		names         []string
		keywords      []expr
		list, mapping expr
	}
	callExpr struct {
		of   expr
		args arguments
		line int
	}
	filterExpr struct {
		of   expr
		name string
		args arguments
		line int
	}
	testExpr filterExpr
	// captured is the text of a block, to which the filters of its tag apply.
	captured struct{}
)

// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// Code is the code of a failure. Readers decide by the code, never by the text of a message.
type Code string

// Codes of a line that cannot be read.
const (
	CodeBadLine     Code = "bad_line"      // not a JSON object in UTF-8
	CodeLineTooLong Code = "line_too_long" // longer than the bound of the hello
	CodeTooDeep     Code = "too_deep"      // nested deeper than the bound of the hello
	CodeUnknownType Code = "unknown_type"
)

// Codes of a message that is not valid when it arrives.
const (
	CodeUnsupportedVersion Code = "unsupported_version"
	CodeUnauthorized       Code = "unauthorized" // the token of a hello is not the runner's
	CodeBadRequest         Code = "bad_request"  // Error.Field names the field
	CodeDuplicateID        Code = "duplicate_id"
	CodeUnknownID          Code = "unknown_id" // an answer without a question, or a second answer
	CodeUnknownProgram     Code = "unknown_program"
	CodeUnknownSession     Code = "unknown_session"
	CodeUnknownStream      Code = "unknown_stream" // there was no such offer, or it has ended
	CodeSessionBusy        Code = "session_busy"   // a session has one request at a time
	CodeTooManyQuestions   Code = "too_many_questions"
	CodeNotReading         Code = "not_reading" // a program does not read its input
	CodeBusy               Code = "busy"        // too many requests wait
	CodeCancelled          Code = "cancelled"
)

// Codes of a process that ended, or was ended.
const (
	CodeStartFailed  Code = "start_failed"  // the command cannot be run
	CodeStartTimeout Code = "start_timeout" // not ready in time
	CodeIsolation    Code = "isolation"     // weaker than the program needs
	CodeDied         Code = "died"          // it ended by itself; Exit or Signal says how
	CodeLimit        Code = "limit"         // Evidence.Limit names the limit
	CodeProtocol     Code = "protocol"      // Evidence.Breach names the rule
	CodeSessionLost  Code = "session_lost"  // the process of the session ended earlier
	CodeGatewayLost  Code = "gateway_lost"  // a connection to the caller's gateway has broken between caller and runner
)

// Codes that a program may give: defects of the code that it runs.
const (
	CodeSyntaxError     Code = "syntax_error"
	CodeImportError     Code = "import_error" // an exception while the code was loaded
	CodeMissingFunction Code = "missing_function"
	CodeWrongSignature  Code = "wrong_signature"
	CodeException       Code = "exception"
	CodeOutOfMemory     Code = "out_of_memory"
	CodeNoValue         Code = "no_value"    // None
	CodeWrongType       Code = "wrong_type"  // a string, or a list of another length
	CodeNotFinite       Code = "not_finite"  // NaN, or an infinity
	CodeNotAwaited      Code = "not_awaited" // a coroutine was never awaited
	CodeUnknownMethod   Code = "unknown_method"
	// the caller answered a question with an error, which the code did not catch
	CodeQuestionFailed Code = "question_failed"
)

var ofProgram = map[Code]bool{
	CodeSyntaxError: true, CodeImportError: true, CodeMissingFunction: true, CodeWrongSignature: true, CodeException: true,
	CodeOutOfMemory: true, CodeNoValue: true, CodeWrongType: true, CodeNotFinite: true, CodeNotAwaited: true,
	CodeUnknownMethod: true, CodeQuestionFailed: true, CodeCancelled: true,
}

// Error describes the defect of a request.
type Error struct {
	Code Code `json:"code"`
	// Message is one sentence for people.
	Message string `json:"message"`
	// Field names the field of a bad request.
	Field string `json:"field,omitempty"`
	// Line is the line of the user's code, and Exception the last line of the traceback.
	Line      *Line  `json:"line,omitempty"`
	Exception string `json:"exception,omitempty"`
	// Question is the error of the question that failed.
	Question *Error `json:"question,omitempty"`
}

// Line is a line of one of the user's files.
type Line struct {
	File   string `json:"file"`
	Number int    `json:"number"`
	Text   string `json:"text,omitempty"`
}

// Error returns code and message.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// maxText bounds each text of an error that a program gives.
const maxText = 4 << 10

// Sanitize returns an error as a program may give it: with a code of a program, and with texts of bounded length.
func (e *Error) Sanitize() *Error {
	if e == nil {
		return &Error{Code: CodeException, Message: "The program gave no error."}
	}
	clean := &Error{Code: e.Code, Message: cut(e.Message), Exception: cut(e.Exception)}
	if !ofProgram[e.Code] {
		clean.Code = CodeException
	}
	if e.Line != nil {
		clean.Line = &Line{File: cut(e.Line.File), Number: e.Line.Number, Text: cut(e.Line.Text)}
	}
	if e.Question != nil {
		clean.Question = &Error{Code: Code(cut(string(e.Question.Code))), Message: cut(e.Question.Message)}
	}
	return clean
}

func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	end := maxText
	for end > 0 && text[end]&0xC0 == 0x80 { // not within a character
		end--
	}
	return text[:end]
}

// EndsProcess reports whether an error means that a process ended, rather than that its code answered with an error.
func (e *Error) EndsProcess() bool {
	switch e.Code {
	case CodeStartTimeout, CodeDied, CodeLimit, CodeProtocol, CodeSessionLost:
		return true
	}
	return false
}

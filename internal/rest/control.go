package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"envapi/core"
)

// The types of the text messages of an attached connection. A resize comes from
// the client, the others go to it.
const (
	messageResize  = "resize"
	messageHello   = "hello"
	messageExpired = "expired"
	messageRefused = "refused"
	messageDropped = "dropped"
	messageClosed  = "closed"
	messageProblem = "problem"
)

// message is what is sent as text, by name.
type message map[string]any

// hello says where the bytes that follow begin, and before what one sits.
func hello(a *core.Attachment) message {
	sh := a.Shell()
	return message{
		"type": messageHello, "offset": a.Offset(), "kind": sh.Kind,
		"cols": sh.Cols, "rows": sh.Rows, "input": a.MayType(),
	}
}

// farewell says why a shell is closed.
func farewell(sh core.Shell) message {
	m := message{"type": messageClosed, "reason": sh.CloseReason}
	if sh.ExitCode != nil {
		m["exit_code"] = *sh.ExitCode
	}
	if sh.Signal != "" {
		m["signal"] = sh.Signal
	}
	return m
}

// readControl reads the text message of a client. There is one kind.
func readControl(text []byte) (core.TerminalSize, error) {
	var m struct {
		Type string `json:"type"`
		Cols *int   `json:"cols"`
		Rows *int   `json:"rows"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return core.TerminalSize{}, errors.New("a text message must be a JSON object of known fields")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return core.TerminalSize{}, errors.New("a text message must be one JSON object")
	}
	if m.Type != messageResize {
		return core.TerminalSize{}, fmt.Errorf("there is no message of type %.32q: send %s", m.Type, messageResize)
	}
	if m.Cols == nil || m.Rows == nil {
		return core.TerminalSize{}, errors.New("a resize needs cols and rows")
	}
	return core.TerminalSize{Cols: *m.Cols, Rows: *m.Rows}, nil
}

package main

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
)

// brokenDoor refuses everything.
type brokenDoor struct{}

func (brokenDoor) name() string { return "broken" }
func (brokenDoor) call(context.Context, string, object) (object, error) {
	return nil, &refusal{"internal", "the service failed"}
}

func TestDriveFailsWhereTheServerRefuses(t *testing.T) {
	var out bytes.Buffer
	err := drive(t.Context(), &out, brokenDoor{}, nil)
	if err == nil || !strings.Contains(out.String(), "FAIL broken") {
		t.Errorf("drive gave %v and printed %q", err, out.String())
	}
}

func TestOperationsThatSmokeDoesNotKnowAreNamed(t *testing.T) {
	got := undriven([]string{"exec", "new_operation"}, map[string]bool{"exec": true})
	if !slices.Equal(got, []string{"new_operation"}) {
		t.Errorf("undriven gave %v", got)
	}
}

func TestEveryStepHasItsOwnOperation(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range steps {
		if seen[s.operation] {
			t.Errorf("%s has two steps", s.operation)
		}
		seen[s.operation] = true
	}
}

func TestContractIsReadFromTheDocument(t *testing.T) {
	c, err := parseContract([]byte(`{"paths": {
		"/ready": {"get": {"operationId": "ready", "responses": {"200": {}}}},
		"/v1/things/{thing_id}": {
			"parameters": [],
			"get": {"operationId": "get_thing", "responses": {"200": {}, "404": {}}},
			"post": {"operationId": "change_thing", "responses": {"200": {}, "202": {}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if names := c.names(); !slices.Equal(names, []string{"change_thing", "get_thing"}) {
		t.Fatalf("operations: %v", names)
	}
	path, body := c["get_thing"].fill(object{"thing_id": "a/b", "limit": 3})
	if path != "/v1/things/a%2Fb?limit=3" || body != nil {
		t.Errorf("GET goes to %s with the body %v", path, body)
	}
	path, body = c["change_thing"].fill(object{"thing_id": "a", "limit": 3})
	if path != "/v1/things/a" || !maps.Equal(body.(object), object{"limit": 3}) {
		t.Errorf("POST goes to %s with the body %v", path, body)
	}
	if _, err := parseContract([]byte(`{"paths": {}}`)); err == nil {
		t.Error("a document without operations is taken")
	}
}

func TestLastEventIsTheAnswer(t *testing.T) {
	got := lastEvent([]byte("event: message\ndata: {\"a\":1}\n\nevent: message\ndata: {\"b\":2}\n\n"))
	if strings.TrimSpace(string(got)) != `{"b":2}` {
		t.Errorf("lastEvent gave %q", got)
	}
}

func TestWantRefusalNeedsThatCode(t *testing.T) {
	for _, c := range []struct {
		err error
		ok  bool
	}{
		{&refusal{code: "not_found"}, true},
		{&refusal{code: "internal"}, false},
		{errors.New("not_found"), false},
		{nil, false},
	} {
		if err := wantRefusal(c.err, "not_found"); (err == nil) != c.ok {
			t.Errorf("wantRefusal(%v) gave %v", c.err, err)
		}
	}
}

package problem

import (
	"encoding/json"
	"errors"
	"maps"
	"testing"

	"envapi/core"
)

func TestStatuses(t *testing.T) {
	known := map[core.Code]bool{}
	for _, info := range core.Codes {
		known[info.Code] = true
		if _, ok := statuses[info.Code]; !ok {
			t.Errorf("%s has no status", info.Code)
		}
	}
	for code := range maps.Keys(statuses) {
		if !known[code] {
			t.Errorf("%s has a status and does not exist", code)
		}
	}
	if got := Status("nonsense"); got != 500 {
		t.Errorf("an unknown code has the status %d", got)
	}
}

func TestADocumentHasTheFactsAndNotTheCause(t *testing.T) {
	e := core.Errorf(core.CodeQuotaExceeded, "there are too many").
		With("limit", "shells").With("status", "a fact by a taken name").Because(errors.New("the inside"))
	got, err := json.Marshal(Document(e, "req_1"))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"code":"quota_exceeded","detail":"there are too many","instance":"req_1","limit":"shells","status":409,"title":"Quota exceeded","type":"urn:envapi:problem:quota_exceeded"}`
	if string(got) != want {
		t.Errorf("got %s", got)
	}
	if e.Facts["status"] != "a fact by a taken name" {
		t.Error("the error was changed")
	}
}

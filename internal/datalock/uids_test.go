package datalock

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestHostUIDsAreOneServicesAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "uids.lock")
	first, err := acquireUIDs(file, []UIDs{{200000, 200100}, {300000, 300001}})
	if err != nil {
		t.Fatal(err)
	}
	for _, taken := range [][]UIDs{
		{{200000, 200100}},
		{{200099, 200200}},
		{{199000, 200001}},
		{{200050, 200051}},
		{{400000, 400001}, {300000, 300001}},
	} {
		_, err := acquireUIDs(file, taken)
		var held *UIDsHeldError
		if !errors.As(err, &held) || held.UIDs != taken[len(taken)-1] || !strings.Contains(err.Error(), "ENVAPI_UID_RANGE") {
			t.Errorf("%v: %v", taken, err)
		}
	}
	beside, err := acquireUIDs(file, []UIDs{{199000, 200000}, {200100, 300000}, {400000, 400001}})
	if err != nil {
		t.Fatalf("others beside them, that a refused one had asked for too: %v", err)
	}
	defer func() { _ = beside.Close() }()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := acquireUIDs(file, []UIDs{{200000, 200100}})
	if err != nil {
		t.Fatalf("after the end of the first: %v", err)
	}
	_ = again.Close()
}

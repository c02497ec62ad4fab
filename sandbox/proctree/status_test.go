package proctree_test

import (
	"testing"

	"envapi/sandbox/proctree"
)

func TestAFieldIsAWholeLine(t *testing.T) {
	status := []byte("Name:\tx\\nUid:\t9\nUmask:\t0022\nUid:\t7\t8\nSeccomp_filters:\t3\nSeccomp:\t2\n")
	for name, want := range map[string]string{"Uid": "7\t8", "Seccomp": "2", "Seccomp_filters": "3", "Gid": "", "id": ""} {
		if got := proctree.Field(status, name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

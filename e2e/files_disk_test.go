package e2e

import (
	"path/filepath"
	"strconv"
	"testing"
)

func TestC60AFullDiskLeavesTheOldContent(t *testing.T) {
	for name, reserve := range map[string]int64{"to the last byte": 0, "down to the reserve": 16 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, config{
				data: filepath.Join(smallDisk(t, 64<<20), "data"),
				env:  map[string]string{"ENVAPI_MIN_FREE_DISK_BYTES": strconv.FormatInt(reserve, 10)},
			})
			f := s.place(t).folder(t, s.rest)
			f.write(t, "f", "old\n")
			for range 3 {
				_, err := f.upload(t.Context(), "f", noise(128<<20), nil)
				if p := isProblem(t, "disk_full", "an upload larger than the disk", nil, err); p.Status != 507 {
					t.Errorf("the status is %d", p.Status)
				}
				f.has(t, "f", "old\n")
				s.noStaging(t)
			}
			f.mustUpload(t, "g", []byte("it recovers\n"))
			f.has(t, "g", "it recovers\n")
			f.mustUpload(t, "f", make([]byte, 8<<20))
			for _, name := range f.fills(t, "f") {
				f.do(t, "delete_file", object{"path": name})
			}
			// What is taken away is freed a moment later.
			err := eventually(func() error {
				_, err := f.call(t.Context(), "write_file", f.in(object{"path": "f", "content": "new\n"}))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			f.place.usable(t)
			f.has(t, "f", "new\n")
		})
	}
}

// fills fills the disk with copies until one is refused, and names them.
func (f folder) fills(t *testing.T, name string) []string {
	t.Helper()
	var copies []string
	for len(copies) < 1000 {
		to := "copy-" + mark()
		_, err := f.call(t.Context(), "copy_file", f.in(object{"source": name, "destination": to}))
		if err != nil {
			isProblem(t, "disk_full", "a copy", nil, err)
			return copies
		}
		copies = append(copies, to)
	}
	t.Fatal("copies do not end with a full disk")
	return nil
}

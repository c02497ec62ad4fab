package app

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"envapi/internal/testbin"
)

func TestMain(m *testing.M) {
	code := testbin.Run(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			println(err.Error())
			code = 1
		}
	}
	os.Exit(code)
}

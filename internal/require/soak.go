package require

import (
	"os"
	"strconv"
	"testing"
)

// SoakVariable names the environment variable that makes tests which do the same
// thing many times do it so many times more often: 10 for an hour on a machine
// that has nothing else to do.
const SoakVariable = "ENVAPI_SOAK"

// Rounds gives how often to do what is done n times in a run that people wait for.
func Rounds(t testing.TB, n int) int {
	t.Helper()
	value := os.Getenv(SoakVariable)
	if value == "" {
		return n
	}
	factor, err := strconv.Atoi(value)
	if err != nil || factor < 1 {
		t.Fatalf("cannot use %s %q: it is a number of times, 1 or more", SoakVariable, value)
	}
	return n * factor
}

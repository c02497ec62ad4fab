// Command envapi-init is the init of a box. The supervisor holds it embedded
// and starts it; it is of no use by hand. See package boxinit.
package main

import (
	"os"

	"envapi/sandbox/boxinit"
)

func main() { os.Exit(boxinit.Main()) }

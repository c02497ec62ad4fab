// Command attacker tries to get out of the box that it is run in, with the
// attack that its argument names. See package attack.
package main

import (
	"os"

	"envapi/sandbox/attack"
)

func main() { os.Exit(attack.Main(os.Args[1:], os.Stdout)) }

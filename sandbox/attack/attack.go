// Package attack tries to get out of a box: a table of attacks, each of them
// real system calls, and what must come of it in every tier. The same table is
// run by the tests of the tiers and, on an operator's own host, by
// "envapi-http doctor --attack".
//
// How it is used, from the outside of a box:
//
//	bait, err := attack.Lay(folder)             // what the attacks are after
//	defer bait.Close()
//	place := attack.Place{Tier: tier, Landlock: landlock.ABI()}
//	for _, row := range attack.Rows() {
//		said, err := attack.Try(ctx, box, program, row, bait)
//		judgement := attack.Judge(place, row, said)
//	}
//	err = bait.Touched()                        // what they left on the outside
//
// The program is a static executable that the box can reach (a copy in its
// workspace) and whose main calls Main with the arguments that it got: command
// attacker does, and envapi-http with a hidden subcommand. Try starts it as
// program[0] program[1…] ROW.
//
// An attack says one line: "refused ERRNO", "killed SIGNAL", "harmless: …"
// where it was done and reached nothing that is not its own, or "ESCAPED: …".
// It does as little as proves the point, undoes what it can, and sends nothing
// to any network but the loopback of the bait.
//
// Not protected: this proves that controls are on, not that no escape exists. An
// attack that a later kernel would let pass for another reason than the control
// that it stands for is not noticed; the tests of that control are.
package attack

import (
	"fmt"
	"io"
	"os"
	"slices"
)

// Row is one attack.
type Row struct {
	ID     string // what Main calls it
	Stands string // what it stands for: cases of the suite, public escapes
	Tries  string // what it tries, in words
	Expect Expect

	terminal bool // it is to have one
	run      func(t *Targets) string
}

// Rows gives every attack that this architecture has.
func Rows() []Row {
	return slices.Concat(
		callRows(), socketRows(), namespaceRows(), mountRows(), terminalRows(), processRows(),
		fileRows(), leakRows(), kernelRows(), ipcRows(), privilegeRows(), architectureRows(),
	)
}

// Main is the attacker's program. It runs the attack that args name, prints its
// verdict, and returns the exit code: 0 whatever came of it, 2 where there is no
// such attack. With "lay FOLDER" it is a target for attacks from another box.
func Main(args []string, stdout io.Writer) int {
	rows := Rows()
	if len(args) == 1 && (os.Getuid() == 0 || os.Geteuid() == 0) {
		fmt.Fprintln(stdout, escaped("it is root, as which nothing is tried"))
		return 0
	}
	if len(args) == 2 && args[0] == "lay" {
		return layInside(args[1], stdout)
	}
	if len(args) == 1 {
		if i := slices.IndexFunc(rows, func(r Row) bool { return r.ID == args[0] }); i >= 0 {
			fmt.Fprintln(stdout, rows[i].run(readTargets(os.Getenv(variable))))
			return 0
		}
	}
	fmt.Fprintln(stdout, "usage: attacker ROW; the rows are:")
	for _, r := range rows {
		fmt.Fprintf(stdout, "%s\t%s\t%s\n", r.ID, r.Stands, r.Tries)
	}
	return 2
}

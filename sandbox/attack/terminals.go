package attack

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	tiocsti   = unix.TIOCSTI
	tioclinux = 0x541c // TIOCLINUX
)

// highBits are what a filter of 64 bits sees and the kernel, which takes an
// int, does not.
const highBits = 1 << 40

// terminalRows are attacks on whoever reads from the terminal that a program
// has: they put words into its mouth.
func terminalRows() []Row {
	var rows []Row
	for _, c := range []struct {
		id, stands, tries string
		request           uintptr
	}{
		{"tiocsti", "D4, CVE-2017-5226 of bubblewrap and flatpak", "to type into its terminal", tiocsti},
		{"tiocsti-high", "D4, CVE-2019-10063 of flatpak", "to type into its terminal, with high bits set", tiocsti | highBits},
		{"tioclinux", "D4, CVE-2023-28100 of flatpak", "to paste into its console", tioclinux},
		{"tioclinux-high", "D4, CVE-2023-28100 of flatpak", "to paste into its console, with high bits set", tioclinux | highBits},
		{"tiocsetd", "D4, CVE-2017-2636", "to load a line discipline", unix.TIOCSETD},
	} {
		rows = append(rows, Row{
			ID: c.id, Stands: c.stands, Tries: c.tries, Expect: everywhere("refused EPERM"),
			terminal: true,
			run:      func(*Targets) string { return onTerminal(c.request) },
		})
	}
	return append(rows, Row{
		ID: "foreign-terminal", Stands: "D4", Tries: "to open a terminal that is another's",
		Expect: Expect{"refused EACCES", "refused EACCES", "harmless: there is none", 1}, run: foreignTerminal,
	}, Row{
		ID: "many-terminals", Stands: "D12", Tries: "to take terminals away from the host",
		Expect: Expect{"refused EACCES", "refused EACCES", "harmless: there are few", 1}, run: manyTerminals,
	})
}

// onTerminal makes a request of the terminal that controls this program.
func onTerminal(request uintptr) string {
	character := address(0)
	return calls{
		{number: unix.SYS_IOCTL, args: [6]uintptr{0, unix.TCGETS, address(64)}},
		{number: unix.SYS_IOCTL, args: [6]uintptr{0, request, character}},
	}.verdict("the terminal obeyed")
}

// manyTerminals opens one more than a box may have.
func manyTerminals(*Targets) string {
	const few = 64
	for i := range few + 1 {
		fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		switch {
		case err != nil && i > 0:
			return harmless("there are few")
		case err != nil:
			return refused(err)
		}
		defer unix.Close(fd)
	}
	return escaped("it has %d terminals, and no end of them", few+1)
}

// terminalPatience is how long the terminal of a command that has just ended in the
// same box may still be there: its end is told before its terminal is let go.
const terminalPatience = 5 * time.Second

// foreignTerminal looks for one that stays: it is not of the box's own commands, which
// come one after another here.
func foreignTerminal(*Targets) string {
	for end := time.Now().Add(terminalPatience); ; time.Sleep(10 * time.Millisecond) {
		name, err := openTerminal()
		switch {
		case err != nil:
			return refused(err)
		case name == "":
			return harmless("there is none")
		case time.Now().After(end):
			return escaped("/dev/pts/%s is open", name)
		}
	}
}

// openTerminal gives the name of a terminal that can be opened, or "".
func openTerminal() (name string, err error) {
	entries, err := os.ReadDir("/dev/pts")
	for _, e := range entries {
		if e.Name() == "ptmx" {
			continue
		}
		if fd, err := unix.Open("/dev/pts/"+e.Name(), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0); err == nil {
			_ = unix.Close(fd)
			return e.Name(), nil
		}
	}
	return "", err
}

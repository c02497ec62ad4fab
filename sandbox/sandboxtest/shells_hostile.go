package sandboxtest

import (
	"strings"
	"testing"
	"time"

	"envapi/sandbox"
)

// frames finds the folder in which the frames of a shell are.
const frames = `d=$(dirname "$BASH_SOURCE"); `

// shellsHostile: who does what he likes in the folder of the frames deceives at
// most himself, and keeps nobody waiting.
func shellsHostile(t *testing.T, tier Tier) {
	f := tier.box(t)
	for _, c := range hostilities() {
		t.Run(c.name, func(t *testing.T) { c.run(t, f.in(t)) })
	}
	t.Run("a flood of files costs little", func(t *testing.T) { flooded(t, f.in(t)) })
	t.Run("a full folder", func(t *testing.T) { fullFolder(t, tier) })
	t.Run("links in the place of what is to come", func(t *testing.T) { linked(t, f.in(t)) })
}

// hostility is a script that does something to the folder, and what it may come
// to: that the shell is of use afterwards, or ended.
type hostility struct {
	name, script string
	lives        bool // else it may be corrupt
}

func hostilities() []hostility {
	return []hostility{
		{"what is not the record", frames + `: >"$d/x.0"; mkdir "$d/y"; mkfifo "$d/z"; ln -s / "$d/l"`, true},
		{"records with another nonce", frames + `for i in $(seq 0 300); do : >"$d/AAAAAAAAAAAAAAAAAAAAAAAAAA.$i"; done`, true},
		{"the script is removed", frames + `rm "$BASH_SOURCE"`, true},
		{"the pipes are removed", frames + `find "$d" -type p -delete`, true},
		{"the pipes are something else", frames + `for p in $(find "$d" -type p); do rm "$p"; ln -s /etc/passwd "$p"; done`, true},
		{"the pipes are folders", frames + `for p in $(find "$d" -type p); do rm "$p"; mkdir "$p"; done`, true},
		{"the folder is closed", frames + `chmod 000 "$d"`, false},
		{"the folder is removed", frames + `rm -rf "$d"`, false},
		{"the folder is moved", frames + `mv "$d" "$d-moved"`, false},
		{"the folder is a link", frames + `mv "$d" "$d-moved"; mkdir elsewhere; ln -s "$PWD/elsewhere" "$d"`, false},
		{"the folder's folder is closed", frames + `chmod 000 "$(dirname "$d")"`, false},
	}
}

func (h hostility) run(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{})
	began := time.Now()
	got := sh.run(h.script)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if h.lives && (got.ExitCode != 0 || got.Shell.Ended) {
		t.Errorf("got %+v %+v %q", got, *got.Shell, got.stderr)
	}
	if !got.Shell.Ended {
		if got := sh.run("echo usable"); got.stdout != "usable\n" {
			t.Errorf("afterwards: %+v %+v", got, *got.Shell)
		}
		kill(t, sh)
	}
	next := f.shell(sandbox.ShellSpec{}) // one can always be had
	if got := next.run("echo usable; (exit 3)"); got.stdout != "usable\n" || got.ExitCode != 3 {
		t.Errorf("another one: %+v %+v", got, *got.Shell)
	}
	kill(t, next)
}

// flooded: a process that makes files without end neither ends the command nor
// keeps its end from being seen.
func flooded(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{})
	sh.run(frames + `(i=0; while :; do i=$(((i+1)%50)); : >"$d/flood$i"; rm -f "$d/flood$i"; done) >/dev/null 2>&1 &`)
	for i := range 10 {
		began := time.Now()
		if got := sh.run("sleep 0.05; (exit " + itoa(i) + ")"); got.ExitCode != i || got.Shell.Ended {
			t.Fatalf("got %+v %+v", got, *got.Shell)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
	}
	kill(t, sh)
}

// fullFolder: no room for scripts is said, and is no end of the shell.
func fullFolder(t *testing.T, tier Tier) {
	if !tier.Namespaces {
		t.Skip("there the folder is as large as the disk")
	}
	f := tier.box(t)
	sh := f.shell(sandbox.ShellSpec{})
	got := sh.run(frames + `head -c 100M /dev/zero >"$d/full"; echo "$d"`)
	folder := strings.TrimSpace(got.stdout)
	_, err := sh.Run(t.Context(), sandbox.ShellCommand{Script: "true # " + strings.Repeat("x", 100<<10)})
	if err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("got %v", err)
	}
	if got := f.script("rm " + folder + "/full; ls -A " + folder); got.stdout != "" || got.ExitCode != 0 {
		t.Errorf("what was not run is left: %q %q", got.stdout, got.stderr)
	}
	if got := sh.run("echo usable"); got.stdout != "usable\n" {
		t.Errorf("got %+v", got)
	}
}

// linked: a process that puts links and other pipes where the service has just
// made something gains nothing by it.
func linked(t *testing.T, f fixture) {
	sh := f.shell(sandbox.ShellSpec{})
	f.script(`echo untouched >victim`)
	sh.run(frames + `(while :; do for p in "$d"/*; do case $p in */keep*) ;; *) ln -sf "$PWD/victim" "$d/keep"; mv -fT "$d/keep" "$p";; esac; done; done) >/dev/null 2>&1 &`)
	for range 50 {
		p, err := sh.Run(t.Context(), sandbox.ShellCommand{Script: "true", Stdout: &capture{}, Stderr: &capture{}})
		if err != nil {
			continue // it was seen
		}
		await(t, p.Done(), "a command is held up")
		if p.Result().Shell.Ended {
			break
		}
	}
	kill(t, sh)
	if got := f.run(sandbox.Command{Script: "cat victim"}); strings.Contains(got.stdout, "true") {
		t.Errorf("a script was written through a link: %q", got.stdout)
	}
}

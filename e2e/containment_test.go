package e2e

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

func TestD2ACommandSeesNothingOfTheService(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		got := p.exec(t, object{"command": "cat /proc/1/environ | tr '\\0' '\\n'; env"})
		for _, secret := range []string{"ENVAPI_", s.token, s.data} {
			if s.tier != "namespace" && secret == s.data {
				continue // its workspace is a folder of the host, below the data
			}
			if strings.Contains(got.Stdout.Text, secret) {
				t.Errorf("%q is in %q", secret, got.Stdout.Text)
			}
		}
		// ls itself opens the fourth.
		if fds := p.sh(t, "ls /proc/self/fd | tr '\\n' ' '"); fds != "0 1 2 3 " {
			t.Errorf("descriptors: %s", fds)
		}
		var names []string
		for line := range strings.Lines(p.exec(t, object{"argv": []string{"env"}}).Stdout.Text) {
			name, _, _ := strings.Cut(line, "=")
			names = append(names, name)
		}
		if len(names) == 0 || len(names) > 12 {
			t.Errorf("variables: %v", names)
		}
	})
}

func TestD13WhatRefusesToDieGoesWithItsEnvironment(t *testing.T) {
	for _, operation := range []string{"reset_environment", "delete_environment"} {
		t.Run(operation, func(t *testing.T) {
			onEachTier(t, func(t *testing.T, s *service) {
				p, m := s.place(t), mark()
				for _, script := range []string{
					"trap '' HUP INT QUIT TERM; sleep %s & wait; sleep 1000",
					"(setsid sh -c 'setsid sleep %s & exit' &)",
					"env -i /bin/sh -c '(setsid /bin/sleep %s &)'",
					"for i in $(seq 100); do (sleep %s &); done",
				} {
					p.background(t, fmt.Sprintf(script, m))
				}
				mustRun(t, m, 103)
				p.must(t, operation, p.in(nil))
				if n := alive(m); n != 0 {
					t.Errorf("%d are left when it had answered", n)
				}
			})
		})
	}
}

// In the directory tier the same uid is one domain of signals where Landlock
// has no scopes, so this is asked of the namespace tier only.
func TestD14KillingEverythingHitsOnlyTheCallersOwn(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	p, other, m := s.place(t), s.place(t), mark()
	bystander := other.background(t, "sleep "+m)
	mustRun(t, m, 1)
	for _, script := range []string{"kill -9 1", "kill -9 -1", "kill -TERM 1; kill -STOP 1"} {
		p.exec(t, object{"command": script})
		if got := p.sh(t, "echo on"); got != "on\n" {
			t.Errorf("after %q a command prints %q", script, got)
		}
	}
	if got := other.rest.get(t, bystander.ID, 0); got.Status != "running" || alive(m) != 1 {
		t.Errorf("the command of another environment is %s", got.Status)
	}
}

func TestD17NothingLeavesWithTheNetworkOff(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	p := s.place(t)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if c := p.exec(t, object{"command": "exec 3<>/dev/tcp/127.0.0.1/" + port}); c.exit() == 0 {
		t.Error("the service's own port can be reached")
	}
	if got := p.sh(t, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '"); got != "lo\n" {
		t.Errorf("interfaces: %q", got)
	}
	lookup := "import socket\ntry:\n  socket.getaddrinfo('example.org', 80); print('found')\nexcept OSError: print('none')"
	if got := p.exec(t, object{"argv": []string{"python3", "-c", lookup}}); got.Stdout.Text != "none\n" {
		t.Errorf("a name resolves: %q %q", got.Stdout.Text, got.Stderr.Text)
	}
}

func TestWorkspacesAreApartAndTheSystemIsReadOnly(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	a, b := s.place(t), s.place(t)
	a.sh(t, "echo secret > "+"file; cp file /tmp/file; cp file /dev/shm/file")
	if got := b.sh(t, "ls -A /workspace /tmp /dev/shm | grep -c file || true"); got != "0\n" {
		t.Errorf("another environment sees %s files", got)
	}
	for _, path := range []string{"/usr/x", "/etc/x", "/x", "/bin/x"} {
		if c := b.exec(t, object{"command": "echo > " + path}); c.exit() == 0 {
			t.Errorf("%s can be written", path)
		}
	}
	if got := b.sh(t, "id -u"); got == "0\n" {
		t.Error("commands run as root")
	}
}

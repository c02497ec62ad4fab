package host

import "testing"

func TestAReasonKeepsWhyAndNoPathOfTheHost(t *testing.T) {
	o := Options{Private: "/srv/our data/private", Rootfs: "/opt/root"}
	for reason, want := range map[string]string{
		"cannot make a folder: mkdir /srv/our data/private/probe-1: permission denied": "cannot make a folder: mkdir (path): permission denied",
		"cannot mount /opt/root/usr: no such file":                                     "cannot mount (path): no such file",
		`cannot open "/home/somebody/x": denied`:                                       `cannot open "(path)": denied`,
		"/etc/x: denied":                                                               "(path): denied",
		"/proc/sys/user/max_user_namespaces is 0, and (/sys/kernel/x) too":             "/proc/sys/user/max_user_namespaces is 0, and (/sys/kernel/x) too",
		"commands would run as uid 0 and/or worse":                                     "commands would run as uid 0 and/or worse",
	} {
		if got := o.withoutPaths(reason); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Package hostfiles names what of the host's files the tiers let commands see,
// read-only. Everything else of the host is out of their sight: /home, /root,
// /var, /run, /opt, /srv, /sys, /boot, and the data folder.
//
// Not protected: what the host puts below /usr is readable inside as far as
// its own modes allow.
package hostfiles

// Folders hold programs and libraries.
var Folders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// Etc are the files and folders of /etc that programs need to start and to
// know time, names and certificates; nothing in them is the host's own
// business.
var Etc = []string{
	"alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version",
	"fonts", "inputrc", "java", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "locale.alias",
	"magic", "magic.mime", "mime.types", "nsswitch.conf", "openssl", "os-release", "perl", "pki", "profile",
	"profile.d", "protocols", "python3", "python3.11", "python3.12", "python3.13", "services", "ssl", "terminfo",
	"timezone", "vim",
}

// Devices are the device nodes of /dev that give access to nothing of the
// host.
var Devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

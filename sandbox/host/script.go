package host

// probeScript is run in the probe's box. It says what it finds, a line each:
// "name value"; what it makes of that is in verify.go. It tries what must not
// work as gently as it can: it opens and does not write, and speaks to nobody
// but a port of the loopback that nobody listens at. It starts one program, so
// that it takes no longer than a few milliseconds.
//
// CANARY is a file of the service's beside the workspace, and OPEN_CANARY one
// that everybody may read; SERVICE is the pid of the service.
const probeScript = `
say() { printf '%s %s\n' "$1" "$2"; }
opens() { { :; } 2>/dev/null <"$1"; }
appends() { { :; } 2>/dev/null >>"$1"; }

say euid "$EUID"
echo probe >probe && read -r line <probe && say workspace "$line"
echo probe >"$TMPDIR/probe" && say temporary works
opens "$CANARY" && say canary opened
opens "$OPEN_CANARY" && say open_canary opened
opens /dev/ptmx && say terminal opened
for file in /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sysrq-trigger; do
  appends "$file" && say kernel "$file"
done
for folder in /usr /etc /bin; do
  appends "$folder/envapi-probe" && { say system "$folder"; rm -f "$folder/envapi-probe"; }
done

while IFS=$'\t' read -r name value; do say "status.${name%:}" "$value"; done </proc/self/status
while read -r inside outside count; do say uid_map "$inside $outside $count"; done </proc/self/uid_map
while IFS= read -r line; do say cgroup "$line"; done </proc/self/cgroup
while read -r name value; do [ "$name" = PPid: ] && init=$value; done </proc/$PPID/status
[ -n "$init" ] && { say init "$init"; kill -0 "$init" 2>/dev/null && say init_signal sent; }
kill -0 "$SERVICE" 2>/dev/null && say service_signal sent
for fd in /proc/$$/fd/*; do [ -e "$fd" ] && say fd "${fd##*/}"; done
say limit.core "$(ulimit -c)"
say limit.files "$(ulimit -n)"
say limit.processes "$(ulimit -u)"

for kind in tcp udp; do
  { :; } 2>why <>/dev/$kind/127.0.0.1/1 && say $kind connected
  while IFS= read -r line; do say $kind "${line##*: }"; done <why
done
while read -r name line; do [[ $name = *: ]] && say interface "${name%:}"; done </proc/net/dev
while read -r line; do say namespace "$line"; done < <(readlink /proc/self/ns/{cgroup,ipc,mnt,net,pid,user,uts})
say end reached
`

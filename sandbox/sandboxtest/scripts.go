package sandboxtest

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// statement is one statement of a random script, of one line or more.
type statement struct {
	text   string
	status bool // it begins with a look at $?
}

// scribe draws random statements.
//
// What a shell that takes statements one by one honestly does otherwise than a
// script is left out:
//   - set -u and ${x?}: an interactive bash goes on with its next command, where a
//     script ends; likewise set -o posix with failing builtins, and readonly
//   - aliases and history: an interactive shell has them
//   - lastpipe, which works only without job control; $- and $0, $LINENO, $_,
//     FUNCNAME and BASH_SOURCE, which tell of the file
//   - traps on DEBUG and RETURN, which see the file being read; set -v, which shows
//     it
//   - mistakes of syntax, which end a script before its first statement
//   - a division by zero in several lines, which ends the rest of the file
//   - exec of standard output, which ends with the command
//   - what a trap on ERR counts: it is also told of the file in which a statement
//     failed
//   - what a trap on EXIT writes when set -e ends bash, which has by then taken the
//     command's output back
type scribe struct {
	rt *rapid.T
	// strict is whether a trap on ERR or set -e may be on: the reference then cannot
	// set $?, since that would be an error.
	strict bool
	// errexit and bye are whether set -e or a trap on EXIT was drawn: not both.
	errexit, bye bool
}

// drawScript draws some statements, of which the last ends the shell.
func drawScript(rt *rapid.T) []statement {
	w := &scribe{rt: rt}
	all := []statement{{text: w.pick("", "mkdir -p d1 'd 2' \"d'3\"; ln -s d1 link", "mkdir d1; n=0; a=x; l=(1 2 3)")}}
	for range rapid.IntRange(1, 12).Draw(rt, "statements") {
		all = append(all, w.statement())
	}
	return append(all, statement{text: w.end()})
}

// end is a statement that ends the shell.
func (w *scribe) end() string {
	end := w.pick(
		fmt.Sprintf("exit %d", w.code()),
		"declare -p a b c l n 2>&1; exit",
		"exec bash -c 'echo \"in: $a\"; exit 5'",
		"trap 'echo \"bye $?\"; exit 7' EXIT; exit 3",
		"false; set -e; false",
	)
	switch {
	case strings.HasPrefix(end, "trap") && w.errexit:
		return "exit 7"
	case strings.HasPrefix(end, "false") && w.bye:
		return "false; exit"
	}
	return end
}

func (w *scribe) statement() statement {
	kinds := []func() string{
		w.assignment, w.show, w.export, w.directory, w.function, w.array, w.subshell, w.pipeline, w.document,
		w.arithmetic, w.loop, w.choice, w.exit, w.option, w.declaration, w.streams, w.background, w.removal, w.trap,
		w.file, w.evaluation, w.reading, w.substitution, w.positional,
	}
	n := rapid.IntRange(0, len(kinds)).Draw(w.rt, "kind")
	if n < len(kinds) {
		return statement{text: kinds[n]()}
	}
	if w.strict {
		return statement{text: "declare -p a b c l n"}
	}
	return statement{text: w.pick(`echo "status $?"`, `[ $? = 0 ] || echo "failed"`, `b=$?; echo $b; (exit $b)`), status: true}
}

func (w *scribe) pick(of ...string) string { return rapid.SampledFrom(of).Draw(w.rt, "pick") }

func (w *scribe) variable() string { return w.pick("a", "b", "c") }

func (w *scribe) code() int {
	return rapid.SampledFrom([]int{0, 1, 2, 3, 42, 126, 127, 128, 130, 255}).Draw(w.rt, "code")
}

// pieces are what random words are made of.
var pieces = []string{
	"a", "b", "x", "Z", "0", "7", " ", "  ", "\t", "\n", "\r", "\x01", "\x1b[1m", "\x7f", "\xff", "é", "日", "!", "!!", "`", "$", "$a", "\\", "'", "\"", "*", "?",
	"[", "]", "{", "}", ",", "{a,b}", "(", ")", "&", ";", "|", "<", ">", "#", "~", "-", "--", "-n", "%s", "%", "=", ":", "/", "..", "$(exit 3)", "EOF", "@", "^",
}

// raw is a random text.
func (w *scribe) raw() string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 6).Draw(w.rt, "text"), "")
}

// word is a random text in one of the ways of quoting.
func (w *scribe) word() string {
	text := w.raw()
	switch rapid.IntRange(0, 3).Draw(w.rt, "quoting") {
	case 0:
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", "$", `\$`).Replace(text) + `"`
	case 1:
		return "$'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\x01", `\001`).Replace(text) + "'"
	case 2:
		return `"$a` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", "$", `\$`).Replace(text) + `${b:-}"`
	default:
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
}

func (w *scribe) assignment() string { return w.variable() + w.pick("=", "+=") + w.word() }

func (w *scribe) show() string {
	v := w.variable()
	return w.pick(
		`printf '<%s>' "$`+v+`"`,
		`printf '%s\n' "${`+v+`@Q}" >&2`,
		`echo "${#`+v+`} ${`+v+`:1:3} ${`+v+`%?} ${`+v+`//[a-m]/_}"`,
		`echo $`+v,
		`printf '[%s]' ${`+v+`:-none} ${`+v+`:+some}`,
		`declare -p `+v,
	)
}

func (w *scribe) export() string {
	v := w.variable()
	return w.pick("export "+v, "export "+v+"="+w.word(), "export -n "+v,
		`bash -c 'printf "<%s>" "$`+v+`"'`, v+"="+w.word()+" env | grep -c '^"+v+"='", "printenv "+v)
}

func (w *scribe) directory() string {
	return w.pick("cd d1", "cd 'd 2'", `cd "d'3"`, "cd ..", "cd -", "cd /", "cd", "cd link", "cd -P link", "cd nowhere",
		"mkdir -p d1 && cd d1", "pushd d1", "popd", "dirs", "pwd", "pwd -P", `mkdir -p $'new\nline' && cd $'new\nline'`, "cd d1/../d1/.", "OLDPWD=/; cd -")
}

func (w *scribe) function() string {
	return w.pick(
		fmt.Sprintf("f() { echo \"f $1 $#\"; return %d; }", w.code()),
		"g() {\n  local a="+w.word()+" b\n  b=$1\n  f \"$b\" x\n  c=$a\n}",
		"f() { [ \"${1:-0}\" -gt 3 ] && return 9; echo \"$1\"; f $(($1 + 1)); }",
		"f() ( cd /; a=lost; exit 4 )",
		"f "+w.word(), "g "+w.word(), "f 1", "f", "g || echo no", "declare -f f", "type -t f", "unset -f f",
	)
}

func (w *scribe) array() string {
	return w.pick(
		"l=("+w.word()+" "+w.word()+")", "l+=("+w.word()+")", "l[5]="+w.word(), "unset 'l[0]'",
		`printf '[%s]' "${l[@]}"; echo " ${#l[@]} ${!l[*]}"`, `for i in "${!l[@]}"; do echo "$i=${l[i]}"; done`,
		"mapfile -t l <<<"+w.word(), `declare -A m; m[k]=`+w.word()+`; echo "${m[k]} ${#m[@]}"`, `echo "${l[@]:1:2}" "${l[*]/x/y}"`, "unset l",
	)
}

func (w *scribe) subshell() string {
	return w.pick(
		fmt.Sprintf("(cd /; a=sub; echo \"$a\"; exit %d)", w.code()),
		"(set -f; shopt -s nullglob; f() { :; }; echo *)", "( (false) || (exit 6) )", "(exec 5>&1; echo x >&5)", "a=1; (a=2; echo $a); echo $a",
	)
}

func (w *scribe) pipeline() string {
	return w.pick(
		`printf '%s\n' c b a | sort | head -n2`, "false | true", `(exit 3) | (exit 4); echo "${PIPESTATUS[*]}"`, "! true", "! false",
		"echo x | while read -r v; do a=$v; done; echo \"$a\"", "true | false", "{ echo o; echo e >&2; } |& cat", "yes | head -n3", "seq 20000 | tail -n1",
	)
}

func (w *scribe) document() string {
	text := strings.ReplaceAll(w.raw(), "EOF", "EO")
	return w.pick(
		"cat <<'EOF'\n"+text+"\nEOF", "cat >&2 <<'EOF'\n"+text+"\nEOF", "cat <<EOF\n$a $((1+2)) $(echo sub) \\$\nEOF",
		"cat <<-EOF\n\t\tone\n\ttwo ${a:-none}\n\tEOF", "cat <<<"+w.word(), "a=$(cat <<'EOF'\n)'\nEOF\n)", "cat <<X; cat <<Y\nx\nX\ny\nY",
	)
}

func (w *scribe) arithmetic() string {
	return w.pick("((n = n + 3))", "echo $((n * 7 % 5))", "let n-=2", "((0))", "((n++)) || echo zero", "echo $((1/0)); echo never", "((n = 010 + 0x1f, n > 2 ? n : 0)); echo $n", "echo $((n<<3 | 1)) $((-7 / 2))")
}

func (w *scribe) loop() string {
	return w.pick(
		"for i in 1 2 3; do [ $i = 2 ] && continue; echo $i; done", "for i in "+w.word()+" \"$a\"; do printf '<%s>' \"$i\"; done",
		"i=0; while ((i < 4)); do ((i++)); ((i == 3)) && break; echo $i; done", "i=3\nuntil [ $i -le 0 ]\ndo\n  echo $i >&2\n  ((i--))\ndone",
		"for i in 1 2; do for j in 1 2; do [ $j = 2 ] && continue 2; echo $i$j; done; done", "for ((i=0; i<3; i++)); do false; done", "for i in {1..3} *; do echo $i; done", "for i; do echo \"$i\"; done",
	)
}

func (w *scribe) choice() string {
	return w.pick(
		"case $a in x*) echo x;; *[0-9]*) echo number;; '') echo empty;; *) echo other; false;; esac", "case "+w.word()+" in *\\**) echo star;;& *) echo rest;; esac",
		"if [[ $a == *x* ]]; then echo has; elif [ -z \"$a\" ]; then echo none; else echo not; (exit 5); fi", `[[ "a1b2" =~ ([0-9])b ]] && echo "${BASH_REMATCH[1]}"`, "[ -e d1 ] && echo there", "[[ -n $a && $a != x ]]",
	)
}

func (w *scribe) exit() string {
	return w.pick("true", "false", ":", fmt.Sprintf("(exit %d)", w.code()), fmt.Sprintf("bash -c 'exit %d'", w.code()), "nosuchprogram", "[ -e nowhere ]", "/", "./d1", "(bash -c 'kill -9 $$'; exit) 2>/dev/null", "", "# a comment", "{ false; }", "exit_() { return 3; }; exit_")
}

func (w *scribe) option() string {
	option := w.pick("set -f", "set +f", "set -C", "set +C", "set -o pipefail", "set +o pipefail", "set -a", "set +a", "set +B", "set -B", "set -E", "set -e", "set +e", "set -P", "set +P",
		"shopt -s extglob", "shopt -s nullglob", "shopt -u nullglob", "shopt -s dotglob", "shopt -s globstar", "shopt -s nocasematch", "shopt -s inherit_errexit", "shopt -s failglob", "shopt -u failglob", "shopt -q nullglob",
		"IFS=,", "IFS=", "unset IFS", `IFS=$'\n'`, "IFS=0123456789./", "set -x; echo \"$a\"; set +x", "umask 027; umask", "umask", "shopt -s xpg_echo", "set -o errtrace; false", "set -k; set +k", "set -h; set +h")
	if option == "set -e" {
		if w.bye {
			return "set +e"
		}
		w.strict, w.errexit = true, true
	}
	return option
}

func (w *scribe) declaration() string {
	v := w.variable()
	return w.pick("declare "+v+"="+w.word(), "declare -i n=5+2; n+=3; echo $n", "declare -u "+v+"="+w.word()+"; echo \"$"+v+"\"", "declare +u "+v, "declare -l "+v+"; "+v+"=ABC; echo $"+v,
		"declare -n ref=a; ref="+w.word()+"; unset -n ref; echo \"$a\"", "declare -p a b c l n", "declare -p m", "declare -x "+v, "declare -g "+v+"=g", "local x=1", "declare -t "+v)
}

func (w *scribe) streams() string {
	return w.pick("printf out; printf err >&2", "echo "+w.word()+" >&2", "{ echo 1; echo 2 >&2; echo 3; } 2>&1", "echo no >/dev/null", "echo both >&2 2>&1", `printf '\0\1\377'`, "printf '%s' "+w.word(), "echo -e 'a\\tb'", "ls nowhere", "echo x >&7")
}

func (w *scribe) background() string {
	return w.pick("{ sleep 0.01; exit 4; } & wait $!; echo \"waited $?\"", "(echo made >made) & wait; cat made", "sleep 0.01 & p=$!", "wait $p", "wait", "sleep 0.02 & wait $!", "false & wait $!", "wait 1; echo $?", "true & true & wait -n; wait")
}

func (w *scribe) removal() string {
	return w.pick("unset a", "unset b c", "unset -f g", "unset -v l", "unset m", "unset nothing", "unset 'l[1]'", "unset HOME", "unset PATH; PATH=/usr/bin:/bin", "unset OLDPWD")
}

func (w *scribe) trap() string {
	trap := w.pick("trap 'echo \"usr1 $a\"' USR1; kill -USR1 $$; trap - USR1", "trap 'echo \"err $?\"' ERR", "trap - ERR", "trap 'echo \"bye $a $?\"' EXIT", "trap - EXIT", "trap -p EXIT ERR", "trap '' USR2; kill -USR2 $$", "(trap 'echo sub' EXIT; :)", "trap 'a=caught' TERM; kill $$; echo $a; trap - TERM")
	if strings.HasSuffix(trap, "' EXIT") {
		if w.errexit {
			return "trap - EXIT"
		}
		w.bye = true
	}
	w.strict = w.strict || strings.HasSuffix(trap, "' ERR")
	return trap
}

func (w *scribe) file() string {
	return w.pick("echo "+w.word()+" >file", "echo more >>file", "cat file", "exec 5>file5", "echo x >&5", "exec 5>&-", "cat file5", "echo *", "echo .*/ d?", "rm -f file", "wc -c <file", "exec 6<file; read -r a <&6; exec 6<&-; echo \"$a\"", ">|file", "mkdir d1/e; ls", "shopt -s extglob; eval 'echo @(d1|nope)'", "ls /dev/fd 8>&- 9>&- | wc -l")
}

func (w *scribe) evaluation() string {
	return w.pick("eval 'a=1; false'", "eval "+`'echo "$a"'`, "eval 'f() { echo evaluated; }'", "printf 'a=sourced\\nreturn 3\\n' >s; . ./s; echo \"$? $a\"", "printf 'echo \"$1 $#\"\\n' >s; . ./s one two", "command echo x", "builtin echo y", "command -v f", "eval", ". ./nowhere", "printf 'set -- p q\\n' >s; . ./s; echo $#", "source /dev/null")
}

func (w *scribe) reading() string {
	return w.pick("read -r a b <<<"+w.word(), "IFS=: read -r a b c <<<'1:2:3:4'; echo \"$c\"", "printf -v b '%q' "+w.word()+"; echo \"$b\"", "read -r -d '' a <<<x; echo $?", "while read -r x; do echo \"<$x>\"; done <<<"+w.word(), "read -rn2 a <<<xyz; echo $a", "getopts ab: o -a -b x; echo \"$o $OPTIND\"; OPTIND=1")
}

func (w *scribe) substitution() string {
	return w.pick("cat <(echo x) <(printf '%s' \"$a\")", "a=$(echo sub; exit 3); echo $?", "echo \"$(f; echo $?)\"", "a=$(<file)", "echo `echo back; false`", "diff <(echo 1) <(echo 2)", "b=$(cd /; pwd); echo $b", "echo hi > >(cat); wait $!", "echo ${a:=default} ${nothing-none}", "echo \"${a^^} ${a@A}\"", "a=$(false); b=x")
}

func (w *scribe) positional() string {
	return w.pick("set -- "+w.word()+" "+w.word(), `printf '<%s>' "$@"; echo $#`, "shift", "shift 9", `echo "$1 ${2-none} $*"`, "set --", `for i in "$@"; do echo "$i"; done`)
}

package archtest

import (
	"go/ast"
	"strings"
	"testing"
)

// reserved are imports that only some rooms may have. Tests are free, unless
// the rule says otherwise.
var reserved = []struct {
	imported string // a package and what is below it
	rooms    []string
	tests    bool // whether the rule binds tests too
	reason   string
}{
	{
		"github.com/mark3labs/mcp-go",
		[]string{"internal/mcpserver"},
		false,
		"one package knows the protocol library, so that its traps are dealt with in one place",
	},
	{
		"github.com/modelcontextprotocol/go-sdk", nil, false,
		"the other SDK is there to be a client in tests that we did not write",
	},
	{
		"github.com/lestrrat-go/jwx",
		[]string{"internal/keyring", "internal/devkeyring"},
		true,
		"its defaults accept forgeries; whoever verifies a token goes through keyring",
	},
	{
		"modernc.org/sqlite",
		[]string{"internal/store"},
		false,
		"core speaks to a store through its interface, so that another one can take its place",
	},
	{
		"github.com/pressly/goose",
		[]string{"internal/store"},
		false,
		"the schema is the store's own",
	},
	{
		"github.com/caarlos0/env",
		[]string{"internal/config"},
		true,
		"settings are read once, at the start, in one place",
	},
	{
		"github.com/joho/godotenv",
		[]string{"internal/config"},
		true,
		"settings are read once, at the start, in one place",
	},
	{
		"github.com/google/jsonschema-go",
		[]string{"tools", "internal/rest", "internal/mcpserver", "internal/openapi", "internal/docs"},
		false,
		"schemas are made once, from the table, for those who publish it",
	},
	{
		"golang.org/x/sys/unix",
		[]string{"sandbox", "internal/workspace", "internal/outputlog", "internal/datalock", "internal/backup", "internal/store"},
		false,
		"Linux is the business of the sandbox and of those who keep files; everybody else could run elsewhere",
	},
	{
		"github.com/elastic/go-seccomp-bpf",
		[]string{"sandbox/seccomp"},
		true,
		"system calls are named in one place",
	},
	{
		"github.com/creack/pty",
		[]string{"sandbox/supervisor"},
		false,
		"terminals are made in one place, which knows what its descriptors do",
	},
	{
		"github.com/charmbracelet/x/vt",
		[]string{"core"},
		false,
		"it runs on bytes of a box; core bounds what it may take",
	},
	{
		"github.com/coder/websocket",
		[]string{"internal/rest"},
		false,
		"attach is a route of the HTTP door",
	},
	{
		"github.com/prometheus/client_golang",
		[]string{"internal/metrics"},
		false,
		"what is shown of the service, and under which labels, is decided in one place",
	},
	{
		"golang.org/x/time/rate",
		[]string{"internal/pace", "internal/keyring"},
		false,
		"how often an account may ask is held in one place, for all doors; keyring spares its own source",
	},
	{
		"github.com/bmatcuk/doublestar",
		[]string{"core/pattern"},
		false,
		"one rule for globs, and bounds on them, in one place",
	},
	{
		"github.com/bluekeyes/go-gitdiff",
		[]string{"core/patch"},
		false,
		"it unpacks without bound and hides where paths lead; patch knows, and uses only its deltas",
	},
	{
		"github.com/rogpeppe/go-internal/diff",
		[]string{"core/edit"},
		false,
		"diffs that callers see are made in one place, which bounds and cuts them",
	},
	{
		"github.com/klauspost/compress",
		[]string{"internal/workspace/pack", "internal/workspace/vault"},
		false,
		"what unpacks hostile bytes bounds them, callers' in pack and the service's own archives in vault",
	},
	{
		"os/exec", nil, false,
		"the supervisor starts no programs; a box starts them in its own way",
	},
	{
		"net/http",
		[]string{"internal/rest", "internal/mcpserver", "internal/openapi", "internal/docs", "internal/problem", "internal/keyring", "internal/devkeyring", "internal/settings", "internal/devsettings", "internal/metrics", "internal/app", "tools"},
		false,
		"HTTP is one of the doors; tools names its methods and no more",
	},
	{
		"unsafe",
		[]string{"sandbox"},
		true,
		"only system calls that have no wrapper need it",
	},
	{"C", nil, true, "one static binary that needs nothing of the host"},
}

func TestReservedImports(t *testing.T) {
	for _, s := range sources(t) {
		for _, imported := range s.imports {
			for _, rule := range reserved {
				free := s.test || within(s.room, forTests...)
				if within(imported, rule.imported) && (rule.tests || !free) && !within(s.room, rule.rooms...) {
					t.Errorf("%s imports %s: %s", s.name, imported, rule.reason)
				}
			}
		}
	}
}

// layers says which of our own packages a room may import: imports run
// downward only. A room that is not named, and below none that is, fails.
var layers = []struct {
	room   string
	may    []string
	reason string
}{
	{"sandbox", []string{"./sandbox"}, "containment is understood alone"},
	{"core", []string{"./sandbox", "./core"}, "what envapi does knows no transport and no implementation of what it needs"},
	{"core/exact", nil, "where a text stands is arithmetic on bytes"},
	{"core/edit", []string{"./core/exact"}, "what an edit makes of a text is arithmetic on bytes"},
	{"core/patch", []string{"./core/exact"}, "what a patch makes of texts is arithmetic on bytes"},
	{"core/pattern", nil, "what a pattern finds is a question to bytes and names"},
	{"internal/levenshtein", nil, "arithmetic on words"},
	{"internal/plain", nil, "knows text and nothing of who shows it"},
	{"internal/loopback", nil, "knows addresses and nothing of who uses them"},
	{"tools", []string{"./core", "./internal/levenshtein"}, "the table is read by the doors, and knows none of them"},
	{"internal/problem", []string{"./core"}, "the form of an error knows nothing but the error"},
	{"internal/openapi", []string{"./core", "./tools", "./internal/problem"}, "a description of the table"},
	{"internal/docs", []string{"./core", "./tools", "./internal/problem", "./internal/openapi"}, "a description of the table"},
	{"internal/rest", []string{"./core", "./tools", "./sandbox", "./internal/problem", "./internal/openapi", "./internal/loopback"}, "a door; its sandbox is the report that /ready shows"},
	{"internal/mcpserver", []string{"./core", "./tools"}, "a door"},
	{"internal/store", []string{"./core", "./internal/faults"}, "implements an interface of core"},
	{"internal/outputlog", []string{"./core", "./internal/faults"}, "implements an interface of core"},
	{"internal/workspace", []string{"./core", "./internal/faults", "./sandbox/fsuser", "./sandbox/forks", "./internal/workspace"}, "implements interfaces of core; it touches files as the user that the sandbox gave them to, and knows who may still have them open"},
	{"internal/backup", []string{"./core", "./internal/store", "./internal/outputlog", "./internal/workspace", "./internal/plain"}, "copies what those keep"},
	{"internal/check", []string{"./core", "./internal/store", "./internal/outputlog", "./internal/workspace", "./internal/plain"}, "looks at what those keep"},
	{"internal/faults", nil, "knows names of steps, and nothing of what they are of"},
	{"internal/keyring", []string{"./core", "./internal/loopback"}, "makes callers of tokens"},
	{"internal/devkeyring", []string{"./core"}, "makes tokens that name scopes of core"},
	{"internal/settings", []string{"./core"}, "implements an interface of core"},
	{"internal/devsettings", nil, "answers texts that it was given"},
	{"internal/pace", []string{"./core"}, "refuses in words of core"},
	{"internal/metrics", []string{"./core", "./internal/loopback"}, "shows what it is given, to nobody in particular"},
	{"internal/datalock", nil, "locks on a folder and on host uids, whoever's they are"},
	{"internal/config", []string{"./core", "./sandbox", "./internal/keyring", "./internal/levenshtein", "./internal/loopback"}, "fills in what the parts are configured with"},
	{"internal/app", []string{"./core", "./tools", "./sandbox", "./internal"}, "puts the parts together"},
	{"cmd/envapi-http", []string{"./internal/app"}, "a main starts the app and no more"},
	{"cmd/envapi-mcp", []string{"./internal/app"}, "a main starts the app and no more"},
	{"cmd/envapi-init", []string{"./sandbox/boxinit"}, "the init of a box holds nothing of the supervisor"},
}

func TestImportsRunDownward(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || within(s.room, forTests...) {
			continue
		}
		rule := -1
		for i, layer := range layers {
			if within(s.room, layer.room) {
				rule = i
			}
		}
		if rule < 0 {
			t.Errorf("%s is in a room without a layer: name %s in the table", s.name, s.room)
			continue
		}
		for _, imported := range s.imports {
			if strings.HasPrefix(imported, "./") && !within(imported, layers[rule].may...) {
				t.Errorf("%s imports %s: %s", s.name, imported, layers[rule].reason)
			}
		}
	}
}

func TestNothingOfTheTestsIsBuiltIn(t *testing.T) {
	for _, s := range sources(t) {
		for _, imported := range s.imports {
			own, ok := strings.CutPrefix(imported, "./")
			if ok && !s.test && within(own, forTests...) && !within(s.room, forTests...) {
				t.Errorf("%s imports %s, which is there for tests", s.name, imported)
			}
		}
	}
}

// ofTheInit is what an init is made of.
var ofTheInit = []string{"./sandbox/boxinit", "./sandbox/landlock", "./sandbox/proctree", "./sandbox/protocol", "./sandbox/rawclone"}

// TestTheBoxInitIsSmall: every box has one, and nothing of the service may be
// in the memory that a hostile program shares a namespace with. net/netip is what
// addresses are, and has nothing of a network.
func TestTheBoxInitIsSmall(t *testing.T) {
	for _, s := range sources(t) {
		own := within("./"+s.room, ofTheInit...) || within(s.room, "cmd/envapi-init")
		if s.test || !own {
			continue
		}
		for _, imported := range s.imports {
			ours := strings.HasPrefix(imported, "./")
			if ours && !within(imported, ofTheInit...) || within(imported, "net") && imported != "net/netip" {
				t.Errorf("%s imports %s", s.name, imported)
			}
		}
	}
}

func TestOnlyRestRoutes(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || within(s.room, append(forTests, "internal/rest")...) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := selector.X.(*ast.Ident)
			if !ok || pkg.Name != "http" {
				return true
			}
			switch selector.Sel.Name {
			case "ServeMux", "NewServeMux", "DefaultServeMux", "Handle", "HandleFunc":
				t.Errorf("%s uses http.%s: routes are registered in internal/rest, from the table", s.name, selector.Sel.Name)
			}
			return true
		})
	}
}

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"
	"github.com/joho/godotenv"
)

const prefix = "ENVAPI_"

// Program is which of the programs the settings are for.
type Program string

// The programs. The last ones have the settings of envapi-http, of which the doctor
// needs neither keyring nor a data folder, and a backup and a check no keyring.
const (
	ProgramHTTP   Program = "envapi-http"
	ProgramMCP    Program = "envapi-mcp"
	ProgramDoctor Program = "envapi-http doctor"
	ProgramBackup Program = "envapi-http backup"
	ProgramCheck  Program = "envapi-http check"
)

// Source is where settings come from and for whom.
type Source struct {
	Program Program
	Dev     bool     // envapi-http --dev: no keyring, loopback only
	Environ []string // as os.Environ gives it
	Dir     string   // the folder that may hold a .env file, for envapi-http
	Root    bool     // whether the service runs as root
}

// Load reads and checks the settings. Its error names every mistake, one a
// line: the variable, what is wrong with it, and what is allowed.
func Load(s Source) (Config, error) {
	vars, err := variables(s)
	if err != nil {
		return Config{}, err
	}
	mistakes := unknown(vars)
	c, wrong := parse(vars)
	for name := range wrong {
		delete(vars, name) // the checks below are about values that could be read
	}
	mistakes = append(mistakes, inOrder(wrong)...)
	complete(&c, s, vars)
	return c, errors.Join(append(mistakes, check(c, s, vars, wrong)...)...)
}

// variables gives the settings that are set, by name. An empty value is as good
// as none.
func variables(s Source) (map[string]string, error) {
	vars, err := fileVariables(s)
	if err != nil {
		return nil, err
	}
	maps.Copy(vars, env.ToMap(s.Environ))
	maps.DeleteFunc(vars, func(name, value string) bool {
		return !strings.HasPrefix(name, prefix) || value == ""
	})
	return vars, nil
}

// fileVariables gives what the file .env says. envapi-mcp has none: assistants
// start it in the folder that they work in, and a project that somebody else
// wrote must not say how its programs are contained.
func fileVariables(s Source) (map[string]string, error) {
	if s.Program == ProgramMCP {
		return map[string]string{}, nil
	}
	vars, err := godotenv.Read(filepath.Join(s.Dir, ".env"))
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil { // the library's error repeats the file
		return nil, errors.New("cannot read the file .env in the working directory: it is not a list of NAME=value lines, or not readable")
	}
	return vars, nil
}

// unknown gives a mistake for each variable that is no setting, with the
// nearest that is. Its value is not repeated: it may be a secret.
func unknown(vars map[string]string) []error {
	var mistakes []error
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if slices.Contains(names(), name) {
			continue
		}
		mistakes = append(mistakes, fmt.Errorf("%s: there is no such setting; the nearest is %s", name, nearest(name, names())))
	}
	return mistakes
}

// parse gives the settings that could be read, and the mistakes by variable.
func parse(vars map[string]string) (Config, map[string]error) {
	var c Config
	err := env.ParseWithOptions(&c, env.Options{
		Environment:         vars,
		Prefix:              prefix,
		DefaultValueTagName: "default",
		FuncMap:             parsers,
	})
	wrong := map[string]error{}
	var all env.AggregateError
	if errors.As(err, &all) {
		for _, e := range all.Errors {
			var p env.ParseError
			if errors.As(e, &p) {
				f := field(p.Name)
				wrong[nameOf(f)] = mistake(f, vars[nameOf(f)], p.Err.Error())
			}
		}
	}
	for _, f := range fields {
		name := nameOf(f)
		if problem := outOfRange(f, reflect.ValueOf(c).FieldByIndex(f.Index)); wrong[name] == nil && problem != "" {
			wrong[name] = mistake(f, vars[name], problem)
		}
	}
	return c, wrong
}

// mistake says what is wrong with a setting and what is allowed.
func mistake(f reflect.StructField, value, problem string) error {
	return fmt.Errorf("%s=%q: %s; allowed: %s", nameOf(f), value, problem, allowed(f))
}

func inOrder(wrong map[string]error) []error {
	var mistakes []error
	for _, name := range names() {
		if wrong[name] != nil {
			mistakes = append(mistakes, wrong[name])
		}
	}
	return mistakes
}

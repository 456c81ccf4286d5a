// Mutate breaks the lock in one place at a time, and looks whether a test notices:
//
//	go -C tools run ./mutate [-most N] [-at PLACE] [-since COMMIT] PROGRESS
//
// It runs until all is tried, or N more times: first with the tests in virtual time, and then, where none of them
// fails, with the others. PROGRESS is a JSON file. Started again, it goes on where it ended. Places that are broken
// without a test that fails must stand in survivors.txt with the reason.
package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/fnv"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const folder = "../internal/redislock"

//go:embed survivors.txt
var survivors string

// mutation replaces a part of a file.
type mutation struct {
	name, file, text string
	from, to         int
}

func main() {
	log.SetFlags(0)
	most := flag.Int("most", 1<<30, "try so many `times`")
	at := flag.String("at", "", "try only where the name contains this, again")
	since := flag.String("since", "", "try only what has changed since this `commit`")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: mutate [-most N] [-at PLACE] [-since COMMIT] PROGRESS")
	}
	progress, err := filepath.Abs(flag.Arg(0))
	check(err)
	found := map[string]string{} // what noticed a mutation, by its name; "" if nothing did
	if data, err := os.ReadFile(progress); err == nil {
		check(json.Unmarshal(data, &found))
	} else if !errors.Is(err, os.ErrNotExist) {
		log.Fatal(err)
	}
	temp, err := os.MkdirTemp("", "mutate")
	check(err)
	defer os.RemoveAll(temp)
	all := mutations(folder)
	if *since != "" {
		old := filepath.Join(temp, "old")
		check(os.Mkdir(old, 0o755))
		archive := exec.Command("sh", "-c", `git archive "$1" . | tar -x -C "$2"`, "sh", *since, old)
		archive.Dir, archive.Stderr = folder, os.Stderr
		check(archive.Run())
		before := mutations(old)
		all = slices.DeleteFunc(all, func(m mutation) bool {
			return slices.ContainsFunc(before, func(b mutation) bool { return b.name == m.name })
		})
	}
	for _, servers := range []bool{false, true} {
		patience := time.Duration(0) // not yet known
		for _, m := range all {
			by, done := found[m.name]
			if *most <= 0 || !strings.Contains(m.name, *at) || servers && by != quiet || !servers && done && *at == "" {
				continue
			}
			if patience == 0 {
				begun := time.Now()
				if by := try(mutation{file: "doc.go"}, temp, servers, 10*time.Minute); by != quiet && by != "" {
					log.Fatalf("nothing is broken yet, and this fails: %s", by)
				}
				patience = max(20*time.Second, min(4*time.Minute, 10*time.Since(begun)))
			}
			*most--
			begun := time.Now()
			found[m.name] = try(m, temp, servers, patience)
			fmt.Printf("%s\t%s\t%s\n", m.name, cmp.Or(found[m.name], "SURVIVES"), time.Since(begun).Round(time.Second))
			data, err := json.MarshalIndent(found, "", "\t")
			check(err)
			check(os.MkdirAll(filepath.Dir(progress), 0o755))
			check(os.WriteFile(progress, data, 0o644))
		}
	}
	reasons, tried, left := map[string]string{}, 0, 0
	for line := range strings.Lines(survivors) {
		name, reason, _ := strings.Cut(strings.TrimSpace(line), "\t")
		reasons[name] = reason
	}
	for _, m := range all {
		by, done := found[m.name]
		if done && by != uncompiled && by != quiet {
			tried++
		}
		if done && by == "" && reasons[m.name] == "" {
			left++
			fmt.Printf("no test fails, and survivors.txt has no reason: %s\n", m.name)
		}
	}
	fmt.Printf("%d of %d places were broken, %d are left\n", tried, len(all), left)
	if left > 0 {
		os.RemoveAll(temp)
		os.Exit(1)
	}
}

// What notices a mutation, beside tests: nothing in virtual time is not the last word.
const uncompiled, quiet = "the compiler", "no test in virtual time"

// try returns what noticed the mutation, or "".
func try(m mutation, temp string, servers bool, patience time.Duration) string {
	path, err := filepath.Abs(filepath.Join(folder, m.file))
	check(err)
	source, err := os.ReadFile(path)
	check(err)
	broken := filepath.Join(temp, "broken"+filepath.Ext(m.file))
	check(os.WriteFile(broken, slices.Concat(source[:m.from], []byte(m.text), source[m.to:]), 0o644))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: broken}})
	check(err)
	check(os.WriteFile(filepath.Join(temp, "overlay.json"), overlay, 0o644))
	program := filepath.Join(temp, "lock.test")
	compile := exec.Command(cmp.Or(os.Getenv("GO"), "go"), "test", "-c", "-overlay", filepath.Join(temp, "overlay.json"), "-vet=off", "-ldflags=-s",
		"-gcflags=all=-l -dwarf=false", "-tags=lab,nomsgpack", "-o", program, ".")
	compile.Dir = folder
	if out, err := compile.CombinedOutput(); err != nil {
		if !bytes.Contains(out, []byte("broken.")) && !bytes.Contains(out, []byte(m.file)) {
			log.Fatalf("%s", out)
		}
		return uncompiled
	}
	const searches, copies = "^TestModel$", "^(TestFolderStandsAlone|TestACopy|TestTheLockIsSmall)"
	steps := [][]string{{"-test.short", "-test.skip", searches + "|" + copies}}
	if servers {
		steps = [][]string{{"-test.skip", searches + "|" + copies, "-test.parallel", "4"}, {"-test.run", searches}}
	}
	for _, args := range steps {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		run := exec.CommandContext(ctx, program, append(args, "-test.failfast")...)
		run.Dir, run.WaitDelay = folder, time.Second
		out, err := run.CombinedOutput()
		late := ctx.Err() != nil
		cancel()
		if late {
			return "a test that does not end"
		}
		if err != nil {
			return cmp.Or(failed(string(out)), "a crash")
		}
	}
	if !servers {
		return quiet
	}
	polling := exec.Command(cmp.Or(os.Getenv("GO"), "go"), "test", "-overlay", filepath.Join(temp, "overlay.json"), "-vet=off", "-tags=lab,nomsgpack", "./polling")
	polling.Dir = folder
	if out, err := polling.CombinedOutput(); err != nil {
		return cmp.Or(failed(string(out)), "a crash") + " of package polling"
	}
	return ""
}

// failed returns the first test that failed.
func failed(out string) string {
	_, rest, _ := strings.Cut(out, "--- FAIL: ")
	name, _, _ := strings.Cut(rest, " ")
	return name
}

// mutations returns all, mixed, so that the first ones are from everywhere.
func mutations(folder string) (all []mutation) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	check(err)
	seen := map[string]int{}
	for _, path := range files {
		file := filepath.Base(path)
		if strings.HasSuffix(file, "_test.go") || file == "inspect.go" {
			continue
		}
		source, err := os.ReadFile(path)
		check(err)
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, path, source, parser.SkipObjectResolution)
		check(err)
		for _, decl := range parsed.Decls {
			where := file
			if f, ok := decl.(*ast.FuncDecl); ok {
				where += " " + f.Name.Name
			}
			offset := func(p token.Pos) int { return set.Position(p).Offset }
			replace := func(n ast.Node, text string) {
				from, to := offset(n.Pos()), offset(n.End())
				line := func(s string) string { return strings.Join(strings.Fields(s), " ") }
				name := where + ": " + line(string(source[from:to])) + " -> " + line(text)
				if seen[name]++; seen[name] > 1 {
					name += " #" + strconv.Itoa(seen[name])
				}
				all = append(all, mutation{name, file, text, from, to})
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				text := func(n ast.Node) string { return string(source[offset(n.Pos()):offset(n.End())]) }
				switch n := n.(type) {
				case *ast.IfStmt:
					replace(n.Cond, "!("+text(n.Cond)+")")
				case *ast.SwitchStmt:
					for _, c := range n.Body.List {
						for _, e := range c.(*ast.CaseClause).List {
							if n.Tag == nil {
								replace(e, "!("+text(e)+")")
							}
						}
					}
				case *ast.BinaryExpr:
					switch x, y := text(n.X), text(n.Y); n.Op {
					case token.LAND, token.LOR:
						replace(n, x)
						replace(n, y)
					default:
						if other := opposite[n.Op]; other != "" {
							replace(n, x+" "+other+" "+y)
						}
					}
				case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt, *ast.GoStmt, *ast.SendStmt:
					replace(n, "if false { "+text(n)+" }")
				case *ast.AssignStmt:
					if n.Tok != token.DEFINE && len(n.Lhs) == 1 {
						replace(n, "if false { "+text(n)+" }")
					}
				case *ast.CallExpr:
					if f, ok := n.Fun.(*ast.Ident); ok && len(n.Args) == 2 && (f.Name == "min" || f.Name == "max") {
						replace(n, text(n.Args[0]))
						replace(n, text(n.Args[1]))
					}
				case *ast.BasicLit:
					if i, err := strconv.Atoi(n.Value); err == nil && i > 1 {
						replace(n, strconv.Itoa(2*i))
					}
				}
				return true
			})
		}
	}
	scripts, err := filepath.Glob(filepath.Join(folder, "*.lua"))
	check(err)
	for _, path := range scripts {
		if file := filepath.Base(path); file != "inspect.lua" {
			source, err := os.ReadFile(path)
			check(err)
			all = append(all, ofScript(file, string(source))...)
		}
	}
	slices.SortStableFunc(all, func(a, b mutation) int { return cmp.Compare(hash(a.name), hash(b.name)) })
	return all
}

// In a script, a call that stands alone is left out, a condition is turned round, and an operator replaced.
var (
	callAlone = regexp.MustCompile(`^\s*((?:redis\.)?p?call|leave|prolong|note|contend)\(.*\)$`)
	condition = regexp.MustCompile(`\bif (.*?) then\b`)
	operator  = regexp.MustCompile(` (==|~=|<=|>=|<|>|and|or|\+|-) `)
	instead   = map[string]string{"==": "~=", "~=": "==", "<=": "<", ">=": ">", "<": "<=", ">": ">=", "and": "or", "or": "and", "+": "-", "-": "+"}
)

// ofScript returns the mutations of a Lua script.
func ofScript(file, source string) (all []mutation) {
	at, seen := 0, map[string]int{}
	for line := range strings.Lines(source) {
		code, _, _ := strings.Cut(strings.TrimRight(line, "\n"), "--")
		code = strings.TrimRight(code, " ")
		replace := func(from, to int, text string) {
			name := fmt.Sprintf("%s: %s -> %s", file, strings.TrimSpace(code), strings.TrimSpace(code[:from]+text+code[to:]))
			if seen[name]++; seen[name] > 1 {
				name += " #" + strconv.Itoa(seen[name])
			}
			all = append(all, mutation{name, file, text, at + from, at + to})
		}
		if callAlone.MatchString(code) {
			replace(0, len(code), "")
		}
		for _, m := range condition.FindAllStringSubmatchIndex(code, -1) {
			replace(m[2], m[3], "not ("+code[m[2]:m[3]]+")")
		}
		for _, m := range operator.FindAllStringSubmatchIndex(code, -1) {
			replace(m[2], m[3], instead[code[m[2]:m[3]]])
		}
		at += len(line)
	}
	return all
}

var opposite = map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.ADD: "-", token.SUB: "+"}

func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

package live

import (
	"fmt"
	"regexp"
	"strings"
)

// The forms in which the scripts of the page import and export. A line of another form panics.
var (
	imported = regexp.MustCompile(`(?m)^import \{([^}]*)\} from '\./(\w+)\.js';$`)
	exported = regexp.MustCompile(`(?m)^export ((?:const|async function|function) (\w+))`)
	another  = regexp.MustCompile(`(?m)^(?:import|export)\b.*$`)
)

// joined is a script of the page with all that it imports, as one module. Each script becomes a function that returns what
// it exports, behind those that it imports.
func joined(script string) string {
	var all strings.Builder
	done := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		if done[name] {
			return
		}
		done[name] = true
		text := pageFile(name + ".js")
		for _, m := range imported.FindAllStringSubmatch(text, -1) {
			add(m[2])
			named := strings.ReplaceAll(m[1], " as ", ": ")
			text = strings.Replace(text, m[0], fmt.Sprintf("const {%s} = of_%s;", named, m[2]), 1)
		}
		var names []string
		for _, m := range exported.FindAllStringSubmatch(text, -1) {
			names = append(names, m[2])
		}
		text = exported.ReplaceAllString(text, "$1")
		if line := another.FindString(text); line != "" {
			panic(fmt.Sprintf("%s.js cannot be joined: %s", name, line))
		}
		fmt.Fprintf(&all, "const of_%s = await (async () => {\n%sreturn {%s};\n})();\n", name, text, strings.Join(names, ", "))
	}
	add(script)
	return all.String()
}

package live

import (
	"fmt"
	"regexp"
	"strings"
)

// The forms in which the scripts of the page import and export. A line of another form is an error.
var (
	imported = regexp.MustCompile(`(?m)^import \{([^}]*)\} from '\./(\w+)\.js';$`)
	exported = regexp.MustCompile(`(?m)^export ((?:const|async function|function) (\w+))`)
	another  = regexp.MustCompile(`(?m)^(?:import|export)\b.*$`)
)

// joined is a script of the page with all that it imports, as one module. Each script becomes a function that returns what
// it exports, behind those that it imports.
func joined(script string) (string, error) {
	var all strings.Builder
	done := map[string]bool{}
	var add func(name string) error
	add = func(name string) error {
		if done[name] {
			return nil
		}
		done[name] = true
		content, err := pageFiles.ReadFile("page/" + name + ".js")
		if err != nil {
			return err
		}
		text := string(content)
		for _, m := range imported.FindAllStringSubmatch(text, -1) {
			if err := add(m[2]); err != nil {
				return err
			}
			named := strings.ReplaceAll(m[1], " as ", ": ")
			text = strings.Replace(text, m[0], fmt.Sprintf("const {%s} = of_%s;", named, m[2]), 1)
		}
		var names []string
		for _, m := range exported.FindAllStringSubmatch(text, -1) {
			names = append(names, m[2])
		}
		text = exported.ReplaceAllString(text, "$1")
		if line := another.FindString(text); line != "" {
			return fmt.Errorf("%s.js cannot be joined: %s", name, line)
		}
		fmt.Fprintf(&all, "const of_%s = await (async () => {\n%sreturn {%s};\n})();\n", name, text, strings.Join(names, ", "))
		return nil
	}
	err := add(script)
	return all.String(), err
}

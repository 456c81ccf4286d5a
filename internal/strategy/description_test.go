package strategy

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestADescriptionHasWhatWasDeclared(t *testing.T) {
	for _, s := range All() {
		text, err := json.Marshal(s.Describe())
		if err != nil {
			t.Fatal(err)
		}
		var d Description
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		got, err := d.Properties()
		if err != nil || got != s.Properties || d.Name != s.Name {
			t.Errorf("%s: %+v, %v, want %+v", d.Name, got, err, s.Properties)
		}
	}
}

func TestADescriptionWithAPropertyThatThereIsNot(t *testing.T) {
	_, err := Description{Name: "mine", Has: []string{"fast"}}.Properties()
	if err == nil || !strings.Contains(err.Error(), `"fast"`) || !strings.Contains(err.Error(), "mine") || !strings.Contains(err.Error(), "exclusive") {
		t.Errorf("%v, want the strategy, the name, and the names there are", err)
	}
}

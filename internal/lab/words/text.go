package words

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Text is what is to be said: a key of the catalogue, and facts. [Language.Say] makes words of it when it is shown. Without
// a key it is shown as it stands, such as a number or a name. Words beside a key are what the code says in English, for a
// language that lacks the key.
type Text struct {
	Key   string
	Facts any // by their names: a map, or a struct with names for JSON
	Words string
}

// Of is a text with facts: names and values in turn.
func Of(key string, facts ...any) Text {
	if len(facts) == 0 {
		return Text{Key: key}
	}
	by := map[string]any{}
	for i := 0; i+1 < len(facts); i += 2 {
		by[fmt.Sprint(facts[i])] = facts[i+1]
	}
	return Text{Key: key, Facts: by}
}

// AsItStands is a text without a key.
func AsItStands(words string) Text { return Text{Words: words} }

// Error and String say the text in English.
func (t Text) Error() string  { return English.Say(t) }
func (t Text) String() string { return English.Say(t) }

// Why is what an error says. Where that is not a text, it stands as it is.
func Why(err error) Text {
	if t, is := errors.AsType[Text](err); is && t.Error() == err.Error() {
		return t
	}
	return AsItStands(err.Error())
}

// IsZero reports whether there is nothing to say.
func (t Text) IsZero() bool { return t.Key == "" && t.Words == "" }

// facts are those of the text as JSON has them.
func (t Text) facts() map[string]any {
	content, _ := json.Marshal(t.Facts)
	facts := map[string]any{}
	_ = decode(content, &facts)
	return facts
}

// MarshalJSON writes an object with the key under "say" and the facts, or else the words alone.
func (t Text) MarshalJSON() ([]byte, error) {
	if t.Key == "" {
		return json.Marshal(t.Words)
	}
	key, err := json.Marshal(t.Key)
	if err != nil {
		return nil, err
	}
	said := fmt.Appendf(nil, `{"say":%s`, key)
	if t.Words != "" {
		words, _ := json.Marshal(t.Words)
		said = fmt.Appendf(said, `,"words":%s`, words)
	}
	facts, err := json.Marshal(t.Facts)
	if err != nil || len(facts) < 3 || facts[0] != '{' {
		return append(said, '}'), err
	}
	return fmt.Appendf(said, `,%s`, facts[1:]), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Text) UnmarshalJSON(data []byte) error {
	*t = Text{}
	if bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, &t.Words)
	}
	facts := map[string]any{}
	if err := decode(data, &facts); err != nil {
		return err
	}
	t.Key, _ = facts["say"].(string)
	t.Words, _ = facts["words"].(string)
	delete(facts, "say")
	if delete(facts, "words"); len(facts) > 0 {
		t.Facts = facts
	}
	return nil
}

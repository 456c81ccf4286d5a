//go:build lab

package docs

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// terms is the home of the Chinese words: for each English one the word that pages, the live page and
// explanations use, and words that must not stand in its place. To change one, change it here, put
// the old word among the others, and change each line that the test then names.
var terms = []struct {
	english, chinese string
	not              []string
}{
	{"lease", "租约", []string{"租期", "租赁", "租用", "有效期"}},
	{"renewal", "续期", []string{"续租", "续约"}},
	{"watchdog", "看门狗", []string{"看门犬", "守护线程"}},
	{"distributed lock", "分布式锁", []string{"分布锁", "分散锁"}},
	{"fencing token", "隔离令牌", []string{"围栏令牌", "栅栏令牌"}},
	{"oversold", "超卖", []string{"超售", "卖超"}},
	{"lost update", "丢失更新", []string{"更新丢失", "遗失更新"}},
	{"idempotent", "幂等", []string{"等幂"}},
	{"overtaken", "被取代", []string{"被超过", "被超越"}},
	{"reservation", "预占", []string{"预订", "预留", "占位"}},
}

// The expiry (过期时间) is that of a key of Redis, which the same sentence names, or the command that
// sets it. A lock has a lease.
var (
	sentenceEnd = regexp.MustCompile(`[。；\n"|]`)
	keysExpiry  = regexp.MustCompile(`键|EXPIRE|SETNX|\bSET\b|PX|TTL|SETEX`)
)

// TestOneChineseWordForEachTerm reads everything that is shown in Chinese.
func TestOneChineseWordForEachTerm(t *testing.T) {
	shown := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && skipped(path, d.Name()) {
				err = filepath.SkipDir
			}
			return err
		}
		switch filepath.Ext(path) {
		case ".md", ".json", ".go":
		default:
			return nil
		}
		name, _ := filepath.Rel(root, path)
		if strings.HasSuffix(path, "_test.go") {
			return nil
		}
		content := read(t, name)
		if strings.ContainsFunc(content, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
			shown++
			checkTerms(t, name, content)
		}
		return nil
	})
	if err != nil || shown < 15 {
		t.Errorf("found Chinese in %d files: %v", shown, err)
	}
}

func checkTerms(t *testing.T, name, content string) {
	for _, sentence := range sentenceEnd.Split(content, -1) {
		for _, term := range terms {
			for _, wrong := range term.not {
				if strings.Contains(sentence, wrong) {
					t.Errorf("%s: %q: the word for %s is %s, not %s", name, sentence, term.english, term.chinese, wrong)
				}
			}
		}
		if strings.Contains(sentence, "过期时间") && !keysExpiry.MatchString(sentence) {
			t.Errorf("%s: %q: a lock has a 租约; 过期时间 is that of a key, which the sentence must name", name, sentence)
		}
	}
}

import {kept} from './kept.js';
import {answer, isSaved} from './saved.js';

// The words of the page, in the language that is chosen. English stands in where a word is missing.
const files = {};
let chosen = 'en';

export const languages = {en: 'English', zh: '中文'};

export async function chooseLanguage(name) {
  chosen = languages[name] ? name : 'en';
  for (const language of new Set(['en', chosen])) {
    const address = `words/${language}.json`;
    files[language] ??= isSaved ? await answer(address) : await (await fetch(address)).json();
  }
  document.documentElement.lang = chosen === 'zh' ? 'zh-CN' : 'en';
  kept.setItem('language', chosen);
}

export const language = () => chosen;
// pageIn is the address of an English page for the reader's language.
export const pageIn = address => (chosen === 'zh' ? address.replace('.md', '.zh-CN.md') : address);

export const preferredLanguage = () =>
  kept.getItem('language') || ((navigator.language || 'en').startsWith('zh') ? 'zh' : 'en');

// The grammar of a message is that of the catalogue in Go: internal/lab/words/words.go describes it.
const slot = /\{([^{}]+)\}/g;
const special = {}; // by language: the keys with facts of a key, those with most first
const phrase = key => (files[chosen] && files[chosen][key]) ?? (files.en && files.en[key]);

function fitting(key, facts) {
  special[chosen] ??= Object.groupBy(Object.keys(files[chosen] || files.en).filter(k => k.includes('+')).sort((a, b) => b.split('+').length - a.split('+').length), k => k.split('+')[0]);
  return (special[chosen][key] || []).find(k => k.split('+').slice(1).every(name => facts[name] !== undefined && facts[name] !== null)) || key;
}

function message(key, facts = {}) {
  const text = phrase(fitting(key, facts)) ?? phrase(key);
  let missing = text === undefined;
  const whole = missing || text.replace(slot, (_, of) => {
    const said = value(of, facts);
    missing ||= said === undefined;
    return said;
  });
  return missing ? undefined : whole;
}

function value(of, facts) {
  const [n, one, many] = of.split('|');
  if (many !== undefined) return (String(facts[n]) === '1' ? one : many).replaceAll('#', facts[n] ?? 0);
  const [, kind, path] = of.match(/^(?:(\w+):)?(.+)$/);
  const fact = path.split('.').reduce((all, name) => all && all[name], facts);
  if (fact && typeof fact === 'object') return fact.say === undefined ? message(kind, fact) : said(fact);
  if (kind === 'ms') return fact >= 10 ? `${Math.round(fact)} ms` : `${Number(fact ?? 0).toFixed(1)} ms`;
  if (kind) return fact === undefined ? undefined : named(kind, String(fact));
  return String(fact ?? 0);
}

// t says a phrase with the facts in it.
export const t = (key, facts = {}) => message(key, facts) ?? key;

// known says a phrase only where there is one: for names that come from the server.
export const known = (key, otherwise) => (files[chosen] && files[chosen][key]) ?? otherwise;

// named says a name of a kind, such as that of an outcome. One that has no words is said as it stands.
export function named(kind, name) {
  const numbers = {};
  let count = 0;
  const pattern = name.replace(/ (\d\S*)/g, (_, n) => { numbers[++count] = n; return ` {${count}}`; });
  return message(`${kind}.${pattern}`, numbers) ?? name;
}

// said says texts of the server: a key with its facts, or words that stand as they are.
export const said = (...texts) => texts.filter(Boolean).map(x => (x.say === undefined ? String(x) : message(x.say, x) ?? x.say)).join(' ').replaceAll('。 ', '。');

export const doneName = what => named('done', what);
export const serverName = name => named('server', name);
export const shopName = name => named('shop', name);
// nameOf is the name of a scenario in the language that is chosen, with the one that commands read.
export const nameOf = c => (files[chosen] && files[chosen]['name.' + c.name] ? `${files[chosen]['name.' + c.name]} ${c.name}` : c.name);
// under names a cell.
export const under = ({strategy, scenario}) => t('under', {strategy, scenario: nameOf({name: scenario})});
export const docOf = (kind, item) => known(`${kind}.${item.name}`, item.doc);

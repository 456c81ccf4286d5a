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

// t says a phrase. {name} in it stands for a value.
export function t(phrase, values = {}) {
  const text = (files[chosen] && files[chosen][phrase]) ?? (files.en && files.en[phrase]) ?? phrase;
  return text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

// known says a phrase only where there is one: for names that come from the server.
export const known = (phrase, otherwise) => (files[chosen] && files[chosen][phrase]) ?? otherwise;

// said says what a server said in its own words, where they are known in the language that is chosen.
// Numbers, customers, their steps and quotations in them are {1}, {2} and so on.
export function said(text = '') {
  const values = [''];
  const pattern = text.replace(/"[^"]*"|-?\b\d[\w.]*|\b(?:\w+:)?[ABC](?:\.[\w-]+)?\b/g, value => '{' + (values.push(value) - 1) + '}');
  return known('said.' + pattern, text).replace(/\{(\d+)\}/g, (whole, n) => values[n] ?? whole);
}

// doneName says an intervention, with the size that may follow its name.
export const doneName = what => { const [name, size = ''] = what.split(' '); return known('done.' + name, what).replace('{size}', size); };

// serverName is for servers that are several, such as "redis 1 of 5".
export const serverName = name => name.replace(/ of (?=\d)/, '/');
export const shopName = name => t('shop', {n: name.replace(/^shop /, '')});
// nameOf is the name of a scenario in the language that is chosen, with the one that commands read.
export const nameOf = c => (files[chosen] && files[chosen]['name.' + c.name] ? `${files[chosen]['name.' + c.name]} ${c.name}` : c.name);
// under names a cell.
export const under = ({strategy, scenario}) => t('under', {strategy, scenario: nameOf({name: scenario})});
export const docOf = (kind, item) => known(`${kind}.${item.name}`, item.doc);

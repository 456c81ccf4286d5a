// The words of the page, in the language that is chosen. English stands in where a word is missing.
const files = {};
let chosen = 'en';

export const languages = {en: 'English', zh: '中文'};

export async function chooseLanguage(name) {
  chosen = languages[name] ? name : 'en';
  for (const language of new Set(['en', chosen])) {
    if (!files[language]) files[language] = await (await fetch(`words/${language}.json`)).json();
  }
  document.documentElement.lang = chosen === 'zh' ? 'zh-CN' : 'en';
  localStorage.setItem('language', chosen);
}

export const language = () => chosen;

export const preferredLanguage = () =>
  localStorage.getItem('language') || ((navigator.language || 'en').startsWith('zh') ? 'zh' : 'en');

// t says a phrase. {name} in it stands for a value.
export function t(phrase, values = {}) {
  const text = (files[chosen] && files[chosen][phrase]) ?? (files.en && files.en[phrase]) ?? phrase;
  return text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

// known says a phrase only where there is one: for names that come from the server.
export const known = (phrase, otherwise) => (files[chosen] && files[chosen][phrase]) ?? otherwise;

export const shopName = name => t('shop', {n: name.replace(/^shop /, '')});
export const docOf = (kind, item) => known(`${kind}.${item.name}`, item.doc);

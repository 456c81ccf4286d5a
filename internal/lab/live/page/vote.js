import {fill, focused, h} from './dom.js';
import {session} from './kept.js';
import {listen, on, store} from './store.js';
import {chooseLanguage, known, language, languages, preferredLanguage, t, under} from './words.js';

// The page of a phone: what is asked, and what it said.
const main = document.getElementById('main');
main.className = 'phone';
let ballot = null, chosen = '', problem = '';

async function vote(word) {
  problem = '';
  const response = await fetch('api/votes', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({ballot: ballot.id, word})}).catch(() => null);
  if (response && response.ok) { chosen = word; session.setItem('vote', JSON.stringify([ballot.id, word])); }
  else if (response && response.status === 403) location.reload(); // the lab was started again, and knows no phone
  else problem = t(!response ? 'offline' : response.status === 429 ? 'vote.changed' : 'vote.closed');
  show();
}

function show() {
  const b = ballot, refocus = focused();
  fill(main,
    h('p', {class: 'bar'}, h('b', {}, 'stocklock'), h('span', {class: 'spring'}), Object.keys(languages).filter(name => name !== language()).map(name =>
      h('button', {type: 'button', id: 'language', lang: name === 'zh' ? 'zh-CN' : 'en', onclick: async () => { await chooseLanguage(name); show(); }}, languages[name]))),
    !b ? h('p', {class: 'ask', id: 'asked', role: 'status'}, t('vote.none')) : [
      h('h1', {id: 'asked'}, t('predict.ask')),
      b.scenario ? [h('p', {}, h('b', {}, under(b))), h('p', {}, known('scenario.' + b.scenario, b.doc))] : h('p', {}, h('code', {class: 'command'}, b.title)),
      h('div', {class: 'words'}, b.words.map(word => h('button', {type: 'button', id: 'word-' + word, class: 'guess v ' + word, 'data-word': word, 'aria-pressed': String(word === chosen), disabled: !b.open, onclick: () => vote(word)},
        h('b', {}, word === chosen ? '✓ ' : '', t('verdict.' + word)), h('span', {}, t('means.' + word, {[b.group]: true}))))),
      h('p', {class: 'ask', id: 'outcome', role: 'status'}, b.verdict ? [t('vote.was'), ' ', h('b', {}, t('verdict.' + b.verdict)), chosen ? (chosen === b.verdict ? ' ✓' : ' ✗') : ''] : b.open ? (chosen ? t('vote.counted') : '') : t('vote.closed')),
    ], store.connected === false && h('p', {class: 'said', id: 'cut', role: 'status'}, t('disconnected')), problem && h('p', {class: 'said', role: 'alert'}, problem));
  refocus();
}

await chooseLanguage(preferredLanguage());
show();
on(show);
listen('api/ballot', ['ballot'], (_, next) => {
  const [of, word] = JSON.parse(session.getItem('vote') || '[]');
  chosen = next && of === next.id ? word : '';
  ballot = next;
  problem = '';
  show();
});

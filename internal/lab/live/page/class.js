import {fill, h, markup} from './dom.js';
import {t} from './words.js';
import {ask, mayDrive} from './api.js';
import {on, store} from './store.js';

// The vote of a class on how a cell or a schedule ends. Without a class there is none.

const same = (votes, about) => votes && votes.strategy === about.strategy && (votes.scenario || '') === (about.scenario || '') && (votes.schedule || '') === (about.schedule || '');

// askClass is the button that asks the phones. What goes wrong is said with say.
export const askClass = (about, say, name = '') => store.catalog.classroom && mayDrive() &&
  h('button', {type: 'button', class: 'ask-class', onclick: () => ask('POST', 'api/ballots', about).then(() => say(''), e => say(e.message))}, t('vote.ask'), name && t('colon') + name);

// classVotes shows the votes on something: the code to come in by while they are open, and their bars.
export function classVotes(about) {
  const element = h('div', {class: 'votes', 'aria-live': 'polite'});
  let shown = null;
  const draw = () => {
    const v = same(store.votes, about) ? store.votes : null;
    if (v === shown) return;
    shown = v;
    if (!v) { fill(element); return; }
    const all = Object.values(v.votes).reduce((n, of) => n + of, 0), most = Math.max(1, ...Object.values(v.votes));
    fill(element, v.open && [markup('code', store.catalog.classroom.code), h('p', {}, t('vote.how'), ' ', h('b', {}, store.catalog.classroom.url))],
      h('dl', {class: 'bars'}, v.words.map(word => {
        const n = v.votes[word] || 0, bar = h('i', {class: 'v ' + word});
        bar.style.width = 100 * n / most + '%';
        return h('div', {class: v.verdict === word ? 'right' : '', 'data-votes': word}, h('dt', {}, t('verdict.' + word), v.verdict === word ? ' ✓' : ''), h('dd', {}, h('span', {class: 'rail'}, bar), h('b', {}, String(n))));
      })),
      h('p', {class: 'soft'}, t(v.verdict ? 'vote.right' : v.open ? 'vote.so.far' : 'vote.over', {n: v.votes[v.verdict] || 0, all})));
  };
  draw();
  return {element, leave: on(name => { if (name === 'votes' || name === 'state') draw(); })};
}

import {entitled, fill, focused, h, hear, hideHint} from './dom.js';
import {chooseLanguage, language, languages, preferredLanguage, t, under} from './words.js';
import {kept} from './kept.js';
import {isSaved} from './saved.js';
import {ask, confirmToken, get, mayDrive, takeToken} from './api.js';
import {connect, gridOf, on, runningRuns, store, take, waitingRuns} from './store.js';
import {basketsView, matrixView, reservationsView, topologiesView} from './matrix.js';
import {cellView} from './cell.js';
import {pairView} from './pair.js';
import {loadView} from './load.js';
import {stepView} from './step.js';
import {mineView} from './mine.js';
import {lessonsView} from './lessons.js';
import {triedView} from './tried.js';

const root = document.documentElement;
const main = document.getElementById('main');
document.body.prepend(h('a', {class: 'skip', href: '#main', id: 'skip'}), h('header', {id: 'header'}), h('div', {id: 'strip'}, h('span', {id: 'going', role: 'status', 'aria-live': 'polite'}), h('button', {type: 'button', class: 'plain', id: 'stop-all', hidden: true, onclick: stop})), h('p', {id: 'heard', role: 'status', 'aria-live': 'polite'}));
const views = {'': matrixView, baskets: basketsView, reservations: reservationsView, topologies: topologiesView, cell: cellView, run: cellView, pair: pairView, load: loadView, step: stepView, mine: mineView, lessons: lessonsView, tried: triedView};
// The tabs; a saved page has those that it can show.
const tabs = () => [['lessons', !isSaved], ['', !isSaved || store.catalog.scenarios.length + store.catalog.topologies.length], ['baskets', store.catalog.baskets.scenarios.length],
  ['reservations', store.catalog.reservations.scenarios.length],
  ['pair', store.catalog.scenarios.length && store.catalog.strategies.length > 1], ['load', !isSaved || store.loads.length], ['step', !isSaved], ['mine', !isSaved]].filter(([, has]) => has);

// route is the address behind #: the name of a view, and what it shows.
const route = () => {
  const [name = '', ...rest] = location.hash.replace(/^#\/?/, '').split('/').map(part => {
    try { return decodeURIComponent(part); } catch { return part; } // a link that was cut
  });
  if (name && Object.hasOwn(views, name)) return {name, rest};
  const [[first] = [store.catalog.tried ? 'tried' : '']] = isSaved ? tabs() : [['']];
  return {name: first, rest: []};
};

let leave = null;
function show() {
  const refocus = focused();
  if (leave) leave();
  hideHint();
  hear('');
  const {name, rest} = route();
  const body = h('div', {class: 'view view-' + (name || 'matrix')});
  fill(main, body);
  leave = views[name](body, rest) || null;
  entitled(main.querySelector('h1')?.firstChild.textContent);
  main.dataset.shows = location.hash;
  header();
  refocus();
}

// tabOf is the tab of the view that is shown.
const tabOf = ({name, rest}) => name === 'cell' || name === 'run' ? gridOf(rest[1]).tab : name === 'topologies' ? '' : name;

const isDark = () => root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;

function button(id, label, name, action, pressed) {
  return h('button', {type: 'button', id, 'aria-label': `${label} ${name}`, title: name, 'aria-pressed': pressed === undefined ? null : String(pressed), onclick: action}, label);
}

function header() {
  const at = tabOf(route()), refocus = focused();
  document.getElementById('skip').textContent = t('skip');
  document.getElementById('skip').onclick = e => { e.preventDefault(); main.focus(); };
  fill(document.getElementById('header'),
    h('a', {class: 'brand', href: '#/'}, h('span', {class: 'mark', 'aria-hidden': 'true'}), 'stocklock'),
    h('nav', {'aria-label': t('nav')}, tabs().map(([name]) =>
      h('a', {href: '#/' + name, 'aria-current': at === name ? 'page' : null}, t('tab.' + (name || 'matrix')))),
      (store.catalog.tried || []).map(s => h('a', {href: '#/' + s.page, class: 'tried', 'aria-current': location.hash === '#/' + s.page ? 'page' : null}, t('tried', {service: s.service, verdict: t('verdict.' + s.verdict)})))),
    h('div', {class: 'tools'},
      h('span', {class: 'score', id: 'score'}),
      isSaved ? h('span', {class: 'role', title: t('saved.means')}, t('saved')) : h('span', {class: 'role ' + (mayDrive() ? 'drives' : 'watches'), title: mayDrive() ? t('drive.yes') : t('drive.how')}, mayDrive() ? t('drives') : t('watches')),
      button('large', t('large.short'), t('large'), () => { root.dataset.large = root.dataset.large ? '' : 'yes'; kept.setItem('large', root.dataset.large); header(); }, Boolean(root.dataset.large)),
      button('theme', isDark() ? '☀' : '☾', isDark() ? t('light') : t('dark'), () => { root.dataset.theme = isDark() ? 'light' : 'dark'; kept.setItem('theme', root.dataset.theme); header(); }),
      Object.keys(languages).filter(name => name !== language()).map(name =>
        h('button', {type: 'button', lang: name === 'zh' ? 'zh-CN' : 'en', id: 'language', onclick: async () => { await chooseLanguage(name); show(); strip(); }}, languages[name]))));
  score();
  refocus();
}

function score() {
  const element = document.getElementById('score');
  if (element) fill(element, store.score.of ? t('score', store.score) : '');
}

function stop() {
  ask('DELETE', 'api/runs').catch(e => document.getElementById('going').append(' ', e.message));
}

// The strip says what goes on, on every view.
let shown = '';
function strip() {
  const [run, ...others] = runningRuns(), waits = waitingRuns().length;
  const words = [];
  if (store.connected === false) words.push(t('disconnected'));
  if (run) words.push(t('strip.running', {cell: under(run)}), others.length ? t('strip.together', {n: others.length}) : '', store.preparing ? t('preparing.' + store.preparing) : '');
  else if (store.preparing) words.push(t('preparing.' + store.preparing));
  if (waits) words.push(t('strip.waiting', {n: waits}));
  const text = words.filter(Boolean).join(' · '), drives = mayDrive();
  document.getElementById('strip').dataset.connected = store.connected;
  if (text + drives === shown && document.getElementById('strip').lang === language()) return;
  shown = text + drives;
  const element = document.getElementById('strip'), button = document.getElementById('stop-all'), refocus = focused();
  element.lang = language();
  element.classList.toggle('on', Boolean(text));
  element.classList.toggle('cut', store.connected === false);
  fill(document.getElementById('going'), text && h('span', {class: 'pulse', 'aria-hidden': 'true'}), text,
    run && !run.shops && h('a', {href: run.load ? '#/load' : `#/cell/${run.strategy}/${run.scenario}`}, t('watch')));
  // The button stays the same one: a press that began before a change is still one.
  fill(button, '■ ', t('stop'));
  if (document.activeElement === button && !(drives && (run || waits))) main.focus();
  button.hidden = !(drives && (run || waits));
  refocus();
}

root.dataset.theme = kept.getItem('theme') || '';
if (!root.dataset.theme) delete root.dataset.theme;
root.dataset.large = kept.getItem('large') || '';

on(name => { if (name !== 'seen') { strip(); score(); } });
// A state comes first, and after a lab that was started again.
on(async name => { if (name === 'state' && mayDrive() && !(await confirmToken())) show(); });
addEventListener('hashchange', () => { takeToken(); show(); scrollTo(0, 0); });
addEventListener('keydown', e => { if (e.key === 'Escape' && views[route().name] === cellView) location.hash = '#/' + gridOf(route().rest[1]).back; });
await chooseLanguage(preferredLanguage());
store.catalog = await get('api/catalog');
if (isSaved) take('state', await get('state'));
show();
if (!isSaved) connect();

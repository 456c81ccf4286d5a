import {fill, h, hear} from './dom.js';
import {session} from './kept.js';
import {language, named, said as inWords, t} from './words.js';
import {ask, mayDrive} from './api.js';
import {on, store} from './store.js';
import {ended as endedWords, notice} from './verdict.js';

export const linkOf = (strategy, customers, schedule) => `#/step/${strategy}/${customers}/${encodeURIComponent(schedule)}`;

// brief is as much of a long statement as tells what it does. The whole is in its title.
const brief = text => (text.length > 90 ? text.slice(0, 86).replace(/[\s,(]*$/, '') + ' …' : text);
const answerOf = e => { const stock = e.server === 'mysql' && e.answer.match(/\bstock=\S+/); return stock ? stock[0] : brief(named('answer', e.answer)); };

// recordTable is what was done, a row for each request, with how things stood after it.
export function recordTable(p, customers) {
  const letters = ['A', 'B', 'C'].slice(0, customers), entries = p.entries.filter(e => e.choice || e.own);
  return h('table', {class: 'step-table'}, h('thead', {}, h('tr', {}, h('th', {scope: 'col'}, t('at')), letters.map(l => h('th', {scope: 'col'}, l)), h('th', {scope: 'col'}, lockServerOf(entries)), h('th', {scope: 'col'}, t('mysql')))),
    h('tbody', {}, entries.filter(e => !e.own).map(e => h('tr', {}, h('td', {}, Math.round(e.at_ms)), letters.map(l => h('td', {class: 'did'}, cell(e, l))), h('td', {class: 'soft'}, lockWords(e.state)), h('td', {class: 'soft'}, rowWords(e.state))))));
}

const lockServerOf = entries => (entries.some(e => e.server === 'etcd') ? 'etcd' : t('redis'));
const ttlWords = s => s.ttl_ms === -1 ? t('ttl.none') : s.ttl_ms ? t('ttl', {ms: s.ttl_ms}) : ''; // 0 is not known
const lockWords = s => !s ? '' : s.ttl_ms === -2 ? t('no.lock') : [s.holder || s.lock, ttlWords(s)].filter(Boolean).join(' · ');
const rowWords = s => !s ? '' : t('stock.now', {n: s.stock}) + ((s.orders || []).length ? ' · ' + s.orders.map(o => `${o.customer} ${o.read}→${o.written}`).join(', ') : '');
// parsed is a choice: a step of a customer, such as A.set, or an event, such as wait or pause:A.
const parsed = choice => {
  const [event, hit] = choice.split(':'), [customer, step] = choice.split('.');
  return step ? {choice, customer, step} : {choice, event, customer: hit};
};
const eventWords = o => t('event.' + o.event, {who: o.customer || ''});
function cell(e, letter) {
  const o = parsed(e.choice);
  if (o.event) return !o.customer || o.customer === letter ? h('i', {class: 'happened'}, eventWords(o)) : '';
  if (e.customer !== letter) return '';
  return [h('code', {title: e.sent || ''}, brief(/^eval/i.test(e.sent) ? o.step : e.sent || e.choice)), e.blocked && !e.answer ? h('span', {class: 'soft'}, ' ', t('blocked', {by: inWords(e.blocked)})) : e.answer ? h('span', {class: 'answer', title: e.answer}, ' → ', answerOf(e)) : '', e.note ? h('span', {class: 'bad'}, ' ', inWords(e.note)) : ''];
}

// stepView lets one choose which request goes on next. The link has the schedule, and the server keeps nothing.
export function stepView(body, [strategy = 'set-ex-nx', count = '2', schedule = '', how = '']) {
  const customers = Number(count) === 3 ? 3 : 2, letters = ['A', 'B', 'C'].slice(0, customers);
  const several = strategy.startsWith('baskets:'), name = strategy.replace('baskets:', ''); // of items in each order
  const choosable = [['', 'tab.matrix', store.catalog], ['baskets:', 'tab.baskets', store.catalog.baskets]];
  const said = h('p', {class: 'said', role: 'alert', hidden: true});
  const go = (s, n, plan) => { location.hash = linkOf(s, n, plan); };
  const select = h('select', {id: 'step-strategy', disabled: !mayDrive(), onchange: e => go(e.target.value, customers, '')}, choosable.map(([kind, title, of]) => h('optgroup', {label: t(title)}, of.strategies.filter(s => !s.not_stepped).map(s => h('option', {value: kind + s.name, selected: kind + s.name === strategy}, s.name)))));
  const number = h('select', {id: 'step-customers', disabled: !mayDrive(), onchange: e => go(strategy, e.target.value, '')}, [2, 3].map(n => h('option', {value: n, selected: n === customers}, n)));
  const find = h('button', {type: 'button', id: 'shortest', hidden: !mayDrive(), onclick: search}, t('shortest'));
  const place = h('div', {class: 'step-place'});
  const choices = schedule.split(' ').filter(Boolean);
  let gone = false, searching = false;
  const leaving = new AbortController();
  fill(body, h('div', {class: 'title'}, h('div', {}, h('h1', {}, t('step.title')), h('p', {class: 'lead'}, t('step.lead'))),
    h('div', {class: 'bar'}, h('label', {}, t('strategy'), ' ', select), h('label', {}, t('customers'), ' ', number), find)), said, place);

  // search tries every order of the requests, first without an event and then with one of each kind. One without an event is
  // shorter than all with one.
  let best = '', runs = 0;
  async function search() {
    const searched = [], left = [], until = Date.now() + 90000;
    find.disabled = searching = true;
    [best, runs] = ['', 0];
    notice(said, t('shortest.running', {runs, event: t('no.event')}));
    try {
      for (const event of store.catalog.searches.filter(e => !several || ['', 'pause', 'kill'].includes(e))) {
        if (best && searched.length + left.length === 1) break;
        const found = Date.now() < until && await ask('POST', 'api/explorations', {strategy: name, baskets: several, customers, schedule: '', events: event ? [event] : []}, leaving.signal).catch(e => { if (!best) throw e; });
        if (gone) return;
        (found && !found.unknown ? searched : left).push(event);
        if (!found) continue;
        runs += found.runs;
        const counts = found.shortest && (several || found.outcome.verdict === 'oversold');
        if (counts && (!best || found.shortest.split(' ').length < best.split(' ').length)) best = found.shortest;
      }
      notice(said, [best || searched.length ? t(best ? 'shortest.found' : 'shortest.none', {runs, kinds: kinds(searched.length ? searched : left)}) : '', left.length ? t('shortest.left', {kinds: kinds(left)}) : ''].join(' '));
      if (best && location.hash !== linkOf(strategy, customers, best)) { session.setItem('step-said', said.textContent); go(strategy, customers, best); }
    } catch (e) { notice(said, e.message); } finally { find.disabled = searching = false; }
  }

  const kinds = events => events.map(e => e ? t('event.' + e, {who: t('somebody')}) : t('no.event')).join(t('list'));

  function show(p) {
    const entries = p.entries.filter(e => e.choice || e.own);
    const state = [...p.entries].reverse().map(e => e.state).find(Boolean) || {stock: customers - 1, ttl_ms: -2, orders: []};
    const lockServer = lockServerOf(entries);
    const orders = state.orders || [], over = orders.length > customers - 1;
    const options = (p.options || []).map(parsed), steps = options.filter(o => !o.event), events = options.filter(o => o.event);
    const choose = o => h('button', {type: 'button', class: 'choice' + (o.event ? ' event' : ''), 'data-choice': o.choice, disabled: !mayDrive(), onclick: () => go(strategy, customers, [...choices, o.choice].join(' '))},
      o.event ? eventWords(o) : o.step.toUpperCase());
    const buyers = letters.map(letter => h('div', {class: 'source'}, h('h2', {}, t('customer', {name: letter})),
      h('div', {class: 'next'}, steps.filter(o => o.customer === letter).map(choose),
        !steps.some(o => o.customer === letter) && h('span', {class: 'soft'}, said_(p, letter)))));
    const servers = [
      h('div', {class: 'source server'}, h('h2', {}, lockServer), state.ttl_ms === -2 ? h('p', {class: 'soft'}, t('no.lock')) :
        [h('p', {}, h('b', {}, state.holder ? t('lock.of', {name: state.holder}) : '')), h('p', {}, h('code', {}, state.lock)), h('p', {class: 'soft'}, ttlWords(state))]),
      h('div', {class: 'source server' + (over ? ' broken' : '')}, h('h2', {}, t('mysql')), h('p', {}, h('b', {id: 'step-stock'}, t('stock.now', {n: state.stock})), state.fence ? ' · ' + t('fence', {n: state.fence}) : ''),
        orders.length ? h('ul', {class: 'orders'}, orders.map(o => h('li', {}, t('order.now', o)))) : h('p', {class: 'soft'}, t('no.orders')))];
    const ending = h('p', {class: 'ending', id: 'ending', 'data-ended': p.ended ? 'yes' : 'no'}, p.ended ? [t('ended.step'), ' '] : [t('leads.to', {verdict: ''}), ' '],
      endedWords(p.outcome));
    fill(place,
      h('div', {class: 'bar schedule-bar'}, mayDrive() && [h('button', {type: 'button', id: 'undo', disabled: !choices.length, onclick: () => go(strategy, customers, (how === 'end' ? choices : choices.slice(0, -1)).join(' '))}, '↶ ', t('undo')),
        h('button', {type: 'button', id: 'restart', disabled: !choices.length, onclick: () => go(strategy, customers, '')}, '⇤ ', t('restart'))],
        h('span', {class: 'chips'}, choices.map((c, i) => h('a', {class: 'chip' + (c.includes('.') ? ' of-' + c[0] : ' event'), href: linkOf(strategy, customers, choices.slice(0, i + 1).join(' '))}, c)))),
      h('div', {class: 'sources n' + customers}, buyers, !several && servers),
      !p.ended && mayDrive() && h('div', {class: 'events'}, h('h2', {}, t('event.title')), events.map(choose), h('button', {type: 'button', id: 'to-end', class: 'choice event', onclick: () => { location.hash = linkOf(strategy, customers, schedule) + '/end'; }}, '⇥ ', t('to.end'))),
      ending,
      h('section', {}, h('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': t('record')}, several ? h('pre', {class: 'drawing'}, p.drawing[language()]) : recordTable(p, customers)),
        h('p', {class: 'soft'}, t('the.command'), t('colon'), h('code', {class: 'command'}, `${store.catalog.program} step ${name} ${schedule}`.trim() + (several ? ' --as baskets --draw' : '') + (customers === 3 ? ' --customers 3' : '')))));
    hear(ending.textContent);
    const first = place.querySelector('.choice');
    if (first && session.getItem('step-keys') && document.activeElement === document.body) first.focus();
  }
  const said_ = (p, letter) => p.ended || !p.options ? (p.outcome.answers && p.outcome.answers[letter] ? t('outcome.' + p.outcome.answers[letter].replace('-', '_')) : '') : last(p, letter);
  const last = (p, letter) => { const e = [...p.entries].reverse().find(e => e.customer === letter && e.blocked && !e.answer); return e ? t('blocked', {by: inWords(e.blocked)}) : '–'; };

  const note = session.getItem('step-said');
  if (note) { session.removeItem('step-said'); notice(said, note); }
  place.addEventListener('keydown', () => session.setItem('step-keys', 'yes'));
  place.addEventListener('pointerdown', () => session.removeItem('step-keys'));
  const follow = () => { // watchers see what was played last
    const p = store.played;
    if (!p) { fill(place, h('p', {class: 'soft'}, t('step.watch'))); return; }
    const of = (p.baskets ? 'baskets:' : '') + p.strategy;
    if (of !== strategy || p.customers !== customers || p.schedule !== schedule || p.to_end !== (how === 'end')) location.replace(linkOf(of, p.customers, p.schedule) + (p.to_end ? '/end' : '')); // Back leaves the view
    else show(p.position);
  };
  if (!mayDrive()) { notice(said, t('drive.how')); follow(); }
  else {
    fill(place, h('p', {class: 'soft playing'}, h('span', {class: 'spinner'}), ' ', t('playing')));
    ask('POST', 'api/positions', {strategy: name, baskets: several, customers, schedule, to_end: how === 'end'}, leaving.signal).then(p => { if (!gone) show(p); }, e => { if (!gone) { fill(place, choices.length && h('a', {class: 'button', href: linkOf(strategy, customers, choices.slice(0, -1).join(' '))}, '↶ ', t('undo')), !choices.length && h('button', {type: 'button', id: 'play-again', onclick: () => dispatchEvent(new Event('hashchange'))}, '↻ ', t('step.again'))); notice(said, e.message); } });
  }
  const off = on((name, data) => {
    if (!mayDrive() && (name === 'played' || name === 'state')) follow();
    if (name !== 'searching' || !searching) return;
    notice(said, t('shortest.running', {runs: runs + data.runs, event: kinds([data.event])}));
    if (best) said.append(' · ', t('shortest.sofar'), ' ', h('a', {href: linkOf(strategy, customers, best)}, best));
  });
  return () => { gone = true; leaving.abort(); off(); };
}

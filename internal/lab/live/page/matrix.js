import {fill, h} from './dom.js';
import {kept} from './kept.js';
import {isSaved} from './saved.js';
import {heading, where} from './result.js';
import {docOf, nameOf, t, under} from './words.js';
import {ask, mayDrive, start} from './api.js';
import {isCell, keyOf, on, runningRuns, runOf, store, waitingRuns} from './store.js';
import {skipped, trying, verdict} from './verdict.js';

// matrixView is the start page: every strategy under every scenario.
export const matrixView = body => store.catalog.scenarios.length ? grid(body, store.catalog, 'matrix', databases('')) : topologiesView(body, []);
// basketsView is the same for sales of several items.
export const basketsView = body => grid(body, store.catalog.baskets, 'baskets');
// reservationsView is the same for reservations.
export const reservationsView = body => grid(body, store.catalog.reservations, 'reservations');

// topologiesView is the same for a database of several servers, or for all of them.
export function topologiesView(body, [name = 'all']) {
  const shown = store.catalog.topologies.filter(of => name === 'all' || of.name === name);
  if (!shown.length) { fill(body, isSaved && heading(), databases(name), name !== 'all' && h('p', {}, t('no.such.cell')), isSaved && where()); return null; }
  const scenarios = shown.flatMap(of => of.scenarios.map(c => ({...c, missing: of.missing})));
  return grid(body, {strategies: store.catalog.strategies, scenarios}, 'topologies', [databases(name),
    h('dl', {class: 'pairs servers'}, shown.map(of => [h('dt', {}, of.name), h('dd', {}, docOf('topology', of), of.missing && h('span', {class: 'skipped-why'}, ' ', skipped(of)))]))]);
}

// databases leads to the matrix of one server, and to those of each topology.
const databases = at => store.catalog.topologies.length > 0 && h('nav', {class: 'databases', 'aria-label': t('databases')}, h('span', {}, t('databases')),
  [...store.catalog.scenarios.length ? [['', t('databases.one')]] : [], ...store.catalog.topologies.map(of => [of.name, of.name + (of.missing ? ' –' : '')]), ['all', t('databases.all')]].map(([name, words]) =>
    h('a', {href: name ? '#/topologies/' + name : '#/', 'data-topology': name, 'aria-current': at === name ? 'page' : null}, words)));

// opened is the cell that was opened last: it has the focus when its table is shown again.
let opened = '';

function grid(body, {strategies: all, scenarios}, name, above) {
  const strategies = all.filter(s => scenarios.some(c => isCell(s, c)));
  const said = h('p', {class: 'said', role: 'alert'});
  const cells = new Map(), drives = mayDrive();
  const first = kept.getItem('predict') !== 'no';
  const predictFirst = h('input', {type: 'checkbox', id: 'predict-first', checked: first,
    onchange: e => kept.setItem('predict', e.target.checked ? 'yes' : 'no')});
  const run = list => trying(said, () => start(list.map(([strategy, scenario]) => ({strategy, scenario, seed: 1}))));
  const runs = (s, c) => isCell(s, c) && !c.missing;
  const rowOf = s => scenarios.filter(c => runs(s, c)).map(c => [s.name, c.name]);
  const columnOf = c => strategies.filter(s => runs(s, c)).map(s => [s.name, c.name]);
  const open = (s, c) => {
    const known = runOf(s.name, c.name);
    opened = keyOf(s.name, c.name);
    if (!mayDrive() || known || c.missing || predictFirst.checked) { location.hash = `#/cell/${s.name}/${c.name}`; return; }
    run([[s.name, c.name]]);
  };
  const asExpected = name === 'topologies' && !isSaved && h('input', {type: 'checkbox', id: 'as-expected', checked: kept.getItem('expected') === 'yes',
    onchange: e => { kept.setItem('expected', e.target.checked ? 'yes' : 'no'); paintAll(); }});
  const table = h('table', {class: 'matrix grid' + (scenarios.length < 9 ? ' few' : '')},
    h('thead', {}, h('tr', {}, h('td', {class: 'corner'}, drives && scenarios.some(c => !c.missing) && h('button', {type: 'button', class: 'run', id: 'run-all', onclick: () => run(strategies.flatMap(rowOf))}, '▶ ', t('all'))),
      scenarios.map(c => h('th', {scope: 'col'}, h('span', {class: 'name', 'data-t': docOf('scenario', c)}, nameOf(c)),
        drives && !c.missing && h('button', {type: 'button', class: 'run', tabindex: '-1', 'aria-label': t('run.column', c), title: t('run.column', c), onclick: () => run(columnOf(c))}, '▶'))))),
    h('tbody', {}, strategies.map(s => h('tr', {},
      h('th', {scope: 'row'}, drives && rowOf(s).length > 0 && h('button', {type: 'button', class: 'run', tabindex: '-1', 'aria-label': t('run.row', s), title: t('run.row', s), onclick: () => run(rowOf(s))}, '▶'),
        h('span', {'data-t': docOf('strategy', s)}, s.name)),
      scenarios.map(c => {
        if (!isCell(s, c)) return h('td', {});
        const cell = h('button', {type: 'button', class: 'cell-button', 'data-cell': keyOf(s.name, c.name), tabindex: '-1', onclick: () => open(s, c)});
        cells.set(keyOf(s.name, c.name), [cell, s, c]);
        return h('td', {}, cell);
      })))));
  const paint = ([cell, s, c]) => {
    const key = keyOf(s.name, c.name), known = store.latest.get(key), predicted = store.predictions.get(key);
    const state = known ? known.state : c.missing ? 'missing' : 'empty';
    const expects = state === 'empty' && asExpected && asExpected.checked && c.expected[s.name];
    cell.className = 'cell-button ' + state + (state === 'missing' ? ' v skipped' : expects ? ' expects v ' + expects : state === 'ended' ? ' v ' + known.verdict + (known.surprise ? ' surprise' : '') : '');
    const came = state === 'ended' && known.prediction ? (known.prediction === known.verdict ? 'right' : 'wrong') : '';
    fill(cell,
      state === 'ended' ? [known.surprise ? '!! ' : '', t('short.' + known.verdict, {n: known.n}), known.promised && h('small', {}, ' ', known.promised)] :
        state === 'missing' ? t('short.skipped') : expects ? t('verdict.' + expects) :
        state === 'running' ? h('span', {class: 'spinner'}) : state === 'waiting' ? '…' : state === 'failed' ? '✕' : '',
      came && h('i', {class: came, 'aria-hidden': 'true'}, came === 'right' ? '✓' : '✗'),
      !came && predicted && h('i', {class: 'guess'}, t('guess', {word: t('verdict.' + predicted)})));
    const words = [under({strategy: s.name, scenario: c.name}),
      state === 'ended' && known.promised && t('short.' + known.verdict, {n: known.n}) + ' ' + known.promised, // as it is seen
      state === 'ended' ? verdict(known) : state === 'missing' ? skipped(c) : t('state.' + state), expects && t('expected', {word: t('verdict.' + expects)}), predicted ? t('predicted', {word: t('verdict.' + predicted)}) : ''];
    cell.setAttribute('aria-label', words.filter(Boolean).join(', '));
    cell.title = words.filter(Boolean).join(', ');
  };
  const stop = h('button', {type: 'button', id: 'stop', onclick: () => trying(said, () => ask('DELETE', 'api/runs'))}, '■ ', t('stop'));
  const telling = strategies.filter(s => scenarios.some(c => c.name === s.telling));
  const buttons = h('div', {class: 'bar'}, asExpected && h('label', {class: 'check', for: 'as-expected'}, asExpected, ' ', t('as.expected.show')), drives && [
    h('label', {class: 'check', for: 'predict-first'}, predictFirst, ' ', t('predict.first')),
    telling.length > 0 && h('button', {type: 'button', id: 'telling', title: t('telling.means'), onclick: () => run(telling.map(s => [s.name, s.telling]))}, '▶ ', t('run.telling')), stop]);
  fill(body, h('div', {class: 'title'}, isSaved ? heading() : h('div', {}, h('h1', {}, t(name + '.title')), h('p', {class: 'lead'}, t('matrix.lead'))), buttons), above, said,
    legend(name), h('div', {class: 'scroll', role: 'region', 'aria-label': t(name + '.title')}, table), isSaved && where());
  const paintStop = () => { stop.disabled = !runningRuns().length && !waitingRuns().length; };
  const paintAll = () => { for (const cell of cells.values()) paint(cell); paintStop(); };
  table.style.setProperty('--columns', scenarios.length);
  paintAll();
  table.addEventListener('keydown', e => walk(e));
  // One cell alone is reached with Tab, the others from there with the arrow keys.
  let reached = cells.values().next().value[0];
  const reach = cell => { reached.tabIndex = -1; reached = cell; reached.tabIndex = 0; };
  const [from] = cells.get(opened) || [];
  reach(from || reached);
  if (from) from.focus();
  opened = '';
  table.addEventListener('focusin', e => e.target.matches('.cell-button') && reach(e.target));
  return on((name, data) => {
    if ((name === 'running' || name === 'ended' || name === 'predicted') && data.strategy) {
      const cell = cells.get(keyOf(data.strategy, data.scenario));
      if (cell && !data.load) paint(cell);
      paintStop();
    } else if (['state', 'queued', 'dropped'].includes(name)) paintAll();
  });
}

// walk moves the focus between cells, and what runs a row or a column, with the arrow keys.
function walk(e) {
  const cell = e.target.closest('td, th');
  const row = cell.closest('tr'), at = cell.cellIndex, rows = row.closest('table').rows;
  const to = {ArrowLeft: [row, at - 1], ArrowRight: [row, at + 1], ArrowUp: [rows[row.rowIndex - 1], at], ArrowDown: [rows[row.rowIndex + 1], at]}[e.key];
  const next = to && to[0] && to[0].cells[to[1]] && to[0].cells[to[1]].querySelector('.cell-button, .run');
  if (next) { e.preventDefault(); next.focus(); }
}

function legend(group) {
  return h('p', {class: 'legend', tabindex: 0}, store.catalog.verdicts.map(kind =>
    [h('span', {class: 'term'}, h('span', {class: 'v ' + kind}, t('short.' + kind, {n: 3})), ' ', t('legend.' + kind, {n: 3, [group]: true})), ' ']),
  h('span', {class: 'term'}, h('span', {class: 'v surprise'}, '!!'), ' ', t('legend.surprise')));
}

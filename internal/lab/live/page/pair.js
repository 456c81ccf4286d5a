import {fill, h} from './dom.js';
import {docOf, nameOf, said as inWords, t} from './words.js';
import {mayDrive, start} from './api.js';
import {explained} from './columns.js';
import {details} from './details.js';
import {isSaved} from './saved.js';
import {on, runOf, store} from './store.js';
import {player} from './player.js';
import {notice, trying, verdictChip} from './verdict.js';

// pairView shows two strategies under the same scenario and seed, on one clock.
export function pairView(body, asked) {
  const [scenario, a, b] = [['pause', store.catalog.scenarios], ['owner-checked', store.catalog.strategies], ['fenced', store.catalog.strategies]].map(([usual, all], i) =>
    asked[i] || (all.find(of => of.name === usual) || all[Math.max(i - 1, 0)]).name);
  const said = h('p', {class: 'said', role: 'alert', hidden: true});
  const place = h('div', {});
  const go = (s, x, y) => { location.hash = `#/pair/${s}/${x}/${y}`; };
  const select = (id, phrase, chosen, all, change) => h('label', {}, t(phrase), ' ', h('select', {id, onchange: e => change(e.target.value)}, all.map(s => h('option', {value: s.name, selected: s.name === chosen}, nameOf(s)))));
  const seed = h('input', {type: 'number', id: 'pair-seed', min: 1, max: 1000000, value: 1});
  const run = () => trying(said, () => start([a, b].map(strategy => ({strategy, scenario, seed: Math.max(1, Math.floor(Number(seed.value)) || 1)}))));
  const c = store.catalog.scenarios.find(c => c.name === scenario);
  fill(body, h('div', {class: 'title'}, h('div', {}, h('h1', {}, t('pair.title')), h('p', {class: 'lead'}, t('pair.lead')))),
    h('div', {class: 'bar pair-bar'}, select('pair-scenario', 'scenario', scenario, store.catalog.scenarios, s => go(s, a, b)),
      select('pair-a', 'strategy.a', a, store.catalog.strategies, s => go(scenario, s, b)), select('pair-b', 'strategy.b', b, store.catalog.strategies, s => go(scenario, a, s)),
      !isSaved && [h('label', {}, t('seed'), ' ', seed), h('button', {type: 'button', class: 'main', id: 'run-both', disabled: !mayDrive(), onclick: run}, '▶ ', t('run.both'))]),
    c && h('p', {class: 'soft'}, docOf('scenario', c)), !isSaved && !mayDrive() && h('p', {class: 'soft'}, t('drive.how')), said, place);
  let shown = '', replay = null, gone = false;
  const update = async () => {
    const runs = [a, b].map(s => runOf(s, scenario));
    const now = runs.map(r => r ? r.id + r.state : '').join(' ');
    if (now === shown) return;
    shown = now;
    if (!runs.every(r => r && r.state === 'ended') || runs[0].seed !== runs[1].seed) {
      if (replay) replay.stop();
      replay = null;
      fill(place, h('div', {class: 'pair-state'}, runs.map((r, i) => h('section', {}, h('h2', {}, [a, b][i]), h('p', {}, !r ? t('state.empty') : r.state === 'ended' ? verdictChip(r) : [(r.state === 'running' || r.state === 'waiting') && h('span', {class: 'spinner'}), ' ', inWords(r.error) || t('state.' + r.state), ' ',
        r.state === 'running' && h('a', {href: `#/cell/${[a, b][i]}/${scenario}`}, t('watch'))])))), h('p', {class: 'soft'}, runs.every(r => r && r.state === 'ended') ? t('pair.seeds', {a: runs[0].seed, b: runs[1].seed}) : t('pair.waiting')));
      return;
    }
    const both = await Promise.all(runs.map(r => details(r.id))).catch(e => { notice(said, e.message); return null; });
    if (gone || shown !== now || !both) return;
    replay = both.every(d => d.replay) && player(both.map((d, i) => ({replay: d.replay, title: d.strategy, chip: verdictChip(runs[i])})));
    fill(place, h('div', {class: 'pair-why'}, both.map((d, i) => h('section', {class: 'ended is-' + d.verdict}, h('h2', {}, d.strategy, ' ', verdictChip(runs[i])), h('p', {class: 'cause'}, d.cause), h('p', {class: 'soft'}, t('seed'), ' ', d.seed)))),
      replay ? h('section', {}, replay.element) : [both.every(d => d.requests > 0) && h('p', {class: 'soft'}, t(isSaved ? 'replay.saved' : 'replay.gone')),
        both.map(d => d.drawing && h('section', {}, h('h2', {}, d.strategy), explained(d.drawing)))]);
  };
  update();
  const off = on(name => {
    if (name === 'state') shown = ''; // of another lab, perhaps, whose runs have the same numbers
    if (name !== 'seen') update();
  });
  return () => { gone = true; off(); if (replay) replay.stop(); };
}

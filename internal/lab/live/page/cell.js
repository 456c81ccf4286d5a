import {chart, fill, h} from './dom.js';
import {details} from './details.js';
import {docOf, known, nameOf, pageIn, said as inWords, shopName, t, under} from './words.js';
import {ask, mayDrive, start} from './api.js';
import {isSaved} from './saved.js';
import {gridOf, isCell, keyOf, on, runOf, store, waitingRuns} from './store.js';
import {columnsView, explained, gauge} from './columns.js';
import {player} from './player.js';
import {askClass, classVotes} from './class.js';
import {notice, skipped, trying, verdictChip} from './verdict.js';

// cellView shows one cell: before it runs, while it runs, and when it has ended.
export function cellView(body, [strategyName, scenarioName]) {
  const of = gridOf(scenarioName), {topology} = of;
  const s = of.strategies.find(s => s.name === strategyName), c = of.scenarios.find(c => c.name === scenarioName);
  if (!s || !c || !isCell(s, c)) { fill(body, h('p', {}, t('no.such.cell'))); return null; }
  const said = h('p', {class: 'said', role: 'alert', hidden: true});
  const votes = classVotes({strategy: s.name, scenario: c.name});
  const head = h('div', {class: 'cell-head', 'aria-live': 'polite'}), content = h('div', {class: 'cell-content'});
  fill(body, h('p', {class: 'crumbs'}, h('a', {href: '#/' + of.back}, '← ', topology ? topology.name : t('tab.' + (of.tab || 'matrix')))), head, said, votes.element, content);
  let phase = '', end = null, live = null;
  const play = seed => start([{strategy: s.name, scenario: c.name, seed}]);
  const run = seed => trying(said, () => play(seed));
  const predict = word => trying(said, async () => {
    await ask('POST', 'api/predictions', {strategy: s.name, scenario: c.name, word});
    await play(runOf(s.name, c.name)?.seed ?? 1);
  });
  // Before the cell has run, what it says of itself would give the answer away: what it does is shown.
  const about = before => h('div', {class: 'about'},
    h('div', {class: 'card'}, h('h2', {}, s.name), !before && h('p', {}, docOf('strategy', s)), h('dl', {class: 'pairs'}, h('dt', {}, t('guard')), h('dd', {}, h('code', {}, s.guard)), h('dt', {}, t('decrement')), h('dd', {}, h('code', {}, s.decrement)))),
    h('div', {class: 'card'}, h('h2', {}, nameOf(c)), topology && h('p', {class: 'soft'}, docOf('topology', topology)), h('p', {}, docOf('scenario', c)), !before && c.attacks && h('dl', {class: 'pairs'}, h('dt', {}, t('attacks')), h('dd', {}, known('property.' + c.attacks, c.attacks)))));
  const guesses = () => topology && topology.missing ? h('p', {class: 'notice', id: 'skipped'}, skipped(topology)) : h('div', {class: 'guesses', role: 'group', 'aria-label': t('predict.ask')}, h('p', {class: 'ask'}, t('predict.ask')),
    h('div', {class: 'words'}, c.words.map(word => h('button', {type: 'button', class: 'guess v ' + word, 'data-word': word, disabled: !mayDrive(), onclick: () => predict(word)}, h('b', {}, t('verdict.' + word)), h('span', {}, t('means.' + word, {[of.tab]: true}))))),
    mayDrive() && h('p', {class: 'bar'}, h('button', {type: 'button', class: 'plain', id: 'run', onclick: () => run(1)}, '▶ ', t('run.unpredicted')), askClass({strategy: s.name, scenario: c.name}, words => notice(said, words))),
    !mayDrive() && h('p', {class: 'soft'}, t('drive.how')));

  function heading(of) {
    const predicted = of && of.prediction || store.predictions.get(keyOf(s.name, c.name));
    fill(head, h('h1', {}, under({strategy: s.name, scenario: c.name}), ' ', of && of.state === 'ended' && verdictChip(of)),
      predicted && h('p', {class: 'predicted ' + (of && of.state === 'ended' && of.prediction ? of.prediction === of.verdict ? 'right' : 'wrong' : '')},
        t('predicted', {word: t('verdict.' + predicted)}), of && of.state === 'ended' && of.prediction ? (of.prediction === of.verdict ? ' ✓' : ' ✗') : ''));
  }

  function liveView() {
    const numbers = {};
    const number = (name, big) => { numbers[name] = h('b', {id: 'now-' + name}, '–'); return h('div', {class: 'count ' + (big || 'is-' + name)}, numbers[name], h('span', {}, t(name))); };
    const outcomes = h('div', {class: 'outcomes', role: 'img'}), key = h('p', {class: 'key'});
    const lock = gauge();
    const place = h('div', {class: 'columns-place'});
    fill(content, h('div', {class: 'now live-now'}, number('stock'), number('orders'), number('oversold', 'over'), number('rate'), number('p50'), number('p99'), lock.element), outcomes, key, place);
    let columns = null, of = null, base = 0, frame = 0;
    const begin = () => {
      of = store.attempt;
      if (!of) return;
      columns = columnsView(of.lanes, of.height, t('live.label', {strategy: s.name, scenario: c.name}));
      fill(place, !of.singles && h('p', {class: 'soft'}, t('no.singles')), columns.element);
      columns.window(0, 1000);
      columns.append(store.shapes);
      if (store.seen) seen(store.seen);
    };
    const seen = now => {
      if (!columns) return;
      base = performance.now() - now.at_ms;
      columns.lasting(now.lasting);
      columns.window(0, Math.max(now.at_ms, 1000));
      of.lanes.forEach((l, i) => l.kind === 'shop' && columns.note(i, [now.inside[i] ? t('n.inside', {n: now.inside[i]}) : '', now.waiting[i] ? t('n.waiting', {n: now.waiting[i]}) : ''].filter(Boolean).join(' · ')));
      const values = {stock: now.stock, orders: now.sold, oversold: now.oversold ? '+' + now.oversold : '0', rate: Math.round(now.rate), p50: Math.round(now.p50_ms), p99: Math.round(now.p99_ms)};
      for (const [name, v] of Object.entries(values)) numbers[name].textContent = v;
      content.classList.toggle('broken', now.oversold > 0);
      const entries = store.catalog.outcomes.filter(o => now.outcomes[o]).map(o => [o, now.outcomes[o]]), sum = entries.reduce((n, [, v]) => n + v, 0);
      fill(outcomes, entries.map(([name, v]) => { const bar = h('i', {class: 'b-' + name}); bar.style.flexGrow = v; return bar; }));
      const words = entries.map(([name, v]) => `${t('outcome.' + name)} ${v}`).join(', ');
      outcomes.setAttribute('aria-label', t('answers', {n: sum}) + t('colon') + words);
      fill(key, h('span', {}, t('answers', {n: sum})), entries.map(([name, v]) => h('span', {class: 'k-' + name}, t('outcome.' + name), ' ', String(v))));
    };
    const tick = () => {
      if (store.seen && of) lock.show(store.seen.lock, performance.now() - base, of.lease_ms);
      frame = requestAnimationFrame(tick);
    };
    begin();
    frame = requestAnimationFrame(tick);
    return {begin, seen(now) { if (!columns) begin(); else { columns.append(now.shapes); seen(now); } }, end() { cancelAnimationFrame(frame); }};
  }

  const storyView = () => {
    const show = () => fill(content, about(), h('section', {}, h('h2', {}, t('story')), story(store.told), topology && h('p', {class: 'soft'}, h('span', {class: 'spinner'}), ' ', t('topology.runs'))));
    show();
    return {begin() {}, seen() {}, told: show, end() {}};
  };

  function update(force) {
    const last = runOf(s.name, c.name);
    const place = last?.state === 'waiting' ? waitingRuns().findIndex(r => r.id === last.id) + 1 : '';
    const next = !last || last.state === 'dropped' ? 'none' : [last.state, last.id, place].join(' ');
    heading(last);
    if (next === phase && !force) return;
    phase = next;
    if (end) { end(); end = null; }
    live = null;
    content.classList.remove('broken');
    switch (last ? last.state : 'none') {
      case 'waiting': fill(content, about(true), h('p', {class: 'queued'}, h('span', {class: 'spinner'}), ' ', t('waits', {n: place}))); break;
      case 'running': live = topology || of.few ? storyView() : liveView(); end = () => live.end(); break;
      case 'ended': end = endedView(content, last, s, c, run, of); break;
      case 'failed': fill(content, h('p', {class: 'notice'}, t('failed'), ' ', inWords(last.error)), about(true), guesses()); break;
      default: fill(content, about(true), guesses());
    }
  }
  update();
  const off = on((name, data) => {
    if (name === 'seen') { if (live && data.run === runOf(s.name, c.name).id) live.seen(data); return; }
    if (name === 'told') { if (live && live.told) live.told(); return; }
    if (name === 'attempt') { if (live) live.begin(); return; }
    if (['state', 'queued', 'running', 'ended', 'dropped', 'predicted'].includes(name)) update(name === 'state'); // of another lab, perhaps, whose runs have the same numbers
  });
  return () => { off(); votes.leave(); if (end) end(); };
}

// story is what was seen, line by line.
const story = told => h('ol', {class: 'story'}, told.map(line => h('li', {}, inWords(line))));

// orderTable has the orders that an explanation speaks of, as MySQL has them.
const orderTable = orders => h('section', {}, h('h2', {}, t('orders.in.mysql')), h('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': t('orders.in.mysql')},
  h('table', {class: 'numbers'}, h('thead', {}, h('tr', {}, ['id', 'nth', 'request', 'shop', 'stock_read', 'stock_written', 'token'].map(c => h('th', {scope: 'col'}, t('order.' + c))))),
    h('tbody', {}, orders.map(o => h('tr', {}, [o.id, o.nth, o.request, shopName(o.shop), o.stock_read, o.stock_written, o.token || '–'].map(v => h('td', {}, String(v)))))))));

// endedView shows how a cell of a table ended, why, and its replay.
function endedView(content, of, s, c, run, {topology, baskets, few}) {
  const single = !topology && !few;
  let replay = null, gone = false;
  fill(content, h('p', {class: 'soft'}, h('span', {class: 'spinner'}), ' ', t('loading')));
  details(of.id).then(d => {
    if (gone) return;
    replay = d.replay && player([{replay: d.replay, title: `${s.name} · ${c.name}`}]);
    const links = d.holding || [], there = name => !isSaved || runOf(name, c.name), beside = links.find(there);
    fill(content,
      h('section', {class: 'ended is-' + d.verdict},
        h('p', {class: 'cause'}, d.cause),
        d.surprise && h('p', {class: 'bad'}, t('expected.long', {word: t('verdict.' + d.expected), because: d.because})),
        d.promised && h('p', {id: 'promised'}, t('promised', {units: d.promised.split('/')[0], stock: d.promised.split('/')[1]})),
        !d.surprise && d.verdict !== 'skipped' && h('p', {class: 'soft'}, t('as.expected', {because: d.because})),
        links.length > 0 && h('p', {class: 'holding'}, t('would.hold'), ' ', links.map(name => [there(name) ? h('a', {href: `#/cell/${name}/${c.name}`}, name) : h('span', {}, name), ' ']), beside && h('a', {class: 'more', href: `#/pair/${c.name}/${s.name}/${beside}`}, t('side.by.side', {a: s.name, b: beside}))),
        h('div', {class: 'bar'},
          mayDrive() && !(topology && topology.missing) && [h('button', {type: 'button', id: 'again', onclick: () => run(of.seed)}, '↻ ', t('run.again', {seed: of.seed})),
            h('button', {type: 'button', id: 'reseed', onclick: () => run(of.seed + 1)}, '↻ ', t('run.reseed', {seed: of.seed + 1}))],
          !isSaved && !topology && !s.not_stepped && h('a', {class: 'button', href: `#/step/${baskets ? 'baskets:' : ''}${s.name}/2`}, t('step.it')),
          topology && !isSaved && h('a', {class: 'button', href: pageIn('docs/choose.md#which-database'), target: '_blank', rel: 'noopener'}, t('page.topologies')),
          s.page && h('a', {class: 'button', href: pageIn(s.page), target: '_blank', rel: 'noopener'}, t('page.of', {name: s.name})),
          c.page && h('a', {class: 'button', href: pageIn(c.page), target: '_blank', rel: 'noopener'}, t('page.of', {name: c.name})))),
      d.drawing && h('section', {}, h('h2', {}, t(topology ? 'drawing.servers' : 'drawing.title')), explained(d.drawing)),
      d.orders && orderTable(d.orders),
      d.story && h('section', {}, h('h2', {}, t('story')), story(d.story)),
      replay ? h('section', {}, h('h2', {}, t('replay.title')), h('p', {class: 'soft'}, t('replay.lead')), replay.element) : single && d.requests > 0 && h('p', {class: 'soft'}, t(isSaved ? 'replay.saved' : 'replay.gone')),
      !few && d.requests > 0 && h('section', {}, h('h2', {}, t('numbers')), h('dl', {class: 'facts'}, [...d.facts || [], ...d.runs > 1 ? [{name: 'agreed', text: `${d.agreed}/${d.runs}`}] : [], {name: 'seed', text: d.seed}].map(f => h('div', {}, h('dt', {}, t('metric.' + f.name)), h('dd', {id: 'fact-' + f.name, class: f.bad ? 'bad' : ''}, String(f.text))))),
        single && h('div', {class: 'charts'}, chart(t('chart.outcomes'), d.outcomes), chart(t('chart.latency'), d.latency))),
      d.again && h('p', {}, h('code', {class: 'command'}, d.again), ' ', d.replay && h('a', {href: `api/runs/${of.id}/record`, download: `${s.name}-${c.name}-${of.seed}.jsonl`}, t('record.download'))));
  }).catch(e => { if (!gone) fill(content, h('p', {class: 'notice'}, e.message)); });
  return () => { gone = true; if (replay) replay.stop(); };
}

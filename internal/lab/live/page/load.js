import {chart, fill, h} from './dom.js';
import {details} from './details.js';
import {said as inWords, t} from './words.js';
import {ask, mayDrive} from './api.js';
import {isSaved} from './saved.js';
import {on, store} from './store.js';
import {trying, verdictChip} from './verdict.js';

const usual = ['none', 'set-ex-nx', 'reentrant', 'fenced', 'conditional'];

// loadView compares strategies under the same load.
export function loadView(body) {
  const said = h('p', {class: 'said', role: 'alert', hidden: true});
  const boxes = store.catalog.strategies.map(s => h('label', {class: 'pick'}, h('input', {type: 'checkbox', name: 'strategy', value: s.name, checked: usual.includes(s.name)}), ' ', s.name));
  const own = h('input', {type: 'text', id: 'own-shape', placeholder: '200/5s', 'aria-label': t('shape.own'), hidden: true});
  const shape = h('select', {id: 'shape', onchange: e => { own.hidden = e.target.value !== 'other'; if (!own.hidden) own.focus(); }}, 
    h('option', {value: ''}, t('shape.none')), store.catalog.shapes.map(s => h('option', {value: s.shape}, t('form.' + s.shape))), h('option', {value: 'other'}, t('shape.own')));
  const stock = h('input', {type: 'number', id: 'load-stock', min: 1, max: 10000, placeholder: t('stock.follows')});
  const compare = () => {
    const strategies = boxes.map(b => b.firstChild).filter(b => b.checked).map(b => b.value);
    trying(said, () => ask('POST', 'api/loads', {strategies, shape: shape.value === 'other' ? own.value.trim() : shape.value, stock: Math.floor(Number(stock.value)), seed: 1}));
  };
  const place = h('div', {});
  fill(body, h('div', {class: 'title'}, h('div', {}, h('h1', {}, t('load.title')), h('p', {class: 'lead'}, t('load.lead')))),
    !isSaved && h('section', {class: 'load-form'}, h('fieldset', {}, h('legend', {}, t('strategies')), h('div', {class: 'picks'}, boxes)),
      h('div', {class: 'bar'}, h('label', {}, t('shape'), ' ', shape), own, h('label', {}, t('stock.units'), ' ', stock), h('button', {type: 'button', class: 'main', id: 'compare', disabled: !mayDrive(), onclick: compare}, '▶ ', t('compare'))),
      !mayDrive() && h('p', {class: 'soft'}, t('drive.how'))), said, place);
  const found = new Map();
  let gone = false;
  const runsOf = c => [...store.runs.values()].filter(r => r.load === c.id).sort((a, b) => a.id - b.id);
  const stateOf = run => run.state === 'running' && store.seen && store.seen.run === run.id
    ? `${t('orders')} ${store.seen.sold} · ${t('rate')} ${Math.round(store.seen.rate)} · ${t('p99')} ${Math.round(store.seen.p99_ms)}` : inWords(run.error) || t('state.' + run.state);
  const draw = () => {
    if (gone) return;
    fill(place, [...store.loads].reverse().map(c => {
      const runs = runsOf(c), rows = runs.map(r => ({run: r, n: (found.get(r.id) || {}).columns}));
      // The columns that are worth it in one of the rows, with the largest value of each.
      const known = rows.filter(r => r.n), shown = known.length ? known[0].n.map((of, i) => ({i, name: of.name, most: Math.max(1, ...known.map(r => r.n[i].value || 0))})).filter(c => known.some(r => r.n[c.i].worth)) : [];
      const ended = runs.filter(r => r.state === 'ended').length;
      return h('section', {class: 'load', 'data-load': c.id}, h('h2', {}, t('load.nth', {id: c.id, shape: c.shape || t('shape.closed'), stock: c.stock}), ' ', runs.some(r => r.state === 'waiting' || r.state === 'running') && h('span', {class: 'spinner'})),
        c.beside > 1 && h('p', {class: 'soft'}, t('load.beside', {n: c.beside})), c.others && h('p', {class: 'soft'}, t('load.others', {names: c.others.join(', ')})),
        h('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': t('load.nth', {id: c.id, shape: c.shape, stock: c.stock})},
          h('table', {class: 'numbers load-table'}, h('thead', {}, h('tr', {}, [t('strategy'), t('verdict'), ...shown.map(c => t('metric.' + c.name))].map(title => h('th', {scope: 'col'}, title)))),
            h('tbody', {}, rows.map(({run, n}) => h('tr', {}, h('th', {scope: 'row'}, run.strategy),
              n ? [h('td', {}, verdictChip(run)), shown.map(c => numberCell(n[c.i], c.most))]
                : h('td', {colspan: 1 + shown.length, class: 'soft'}, (run.state === 'running' || run.state === 'waiting') && h('span', {class: 'spinner'}), ' ', h('span', {'data-run': run.id}, stateOf(run)))))))),
        rows.filter(r => r.n).map(({run}) => { const d = found.get(run.id); return [h('h3', {}, run.strategy), h('div', {class: 'charts'}, chart(t('chart.rate'), d.outcomes), chart(t('chart.latency'), d.latency), chart(t('chart.buckets'), d.buckets))]; }),
        known.length > 0 && h('ul', {class: 'knees'}, rows.map(({run}) => [run.strategy, inWords((found.get(run.id) || {}).knee)]).filter(([, words]) => words).map(([name, words]) => h('li', {}, h('b', {}, name), t('colon'), words))),
        !isSaved && ended > 0 && h('p', {class: 'bar'}, h('a', {class: 'button', href: `api/loads/${c.id}/report.html`, download: `comparison-${c.id}.html`}, t('download.html')), h('a', {class: 'button', href: `api/loads/${c.id}/result.json`, download: `comparison-${c.id}.json`}, t('download.json'))));
    }));
  };
  const fetchEnded = async () => {
    for (const r of store.runs.values()) {
      const beside = runsOf({id: r.load}).filter(o => o.state === 'ended').length; // their charts have common axes
      if (r.load && r.state === 'ended' && (found.get(r.id) || {}).beside !== beside) {
        found.set(r.id, {...found.get(r.id), beside});
        const d = await details(r.id).catch(() => null);
        if (d) found.set(r.id, {...d, beside}); else found.delete(r.id);
        draw();
      }
    }
  };
  draw();
  fetchEnded();
  let last = 0;
  const off = on((name, data) => {
    if (name === 'seen') { // its line alone: what has the focus, or is being clicked, stays
      const line = place.querySelector(`[data-run="${data.run}"]`);
      if (line && Date.now() - last > 300) { last = Date.now(); line.textContent = stateOf(store.runs.get(data.run)); }
      return;
    }
    if (!['state', 'connected', 'queued', 'load', 'running', 'ended', 'dropped'].includes(name)) return;
    if (name === 'state') found.clear(); // of another lab, perhaps, whose runs have the same numbers
    draw();
    fetchEnded();
  });
  return () => { gone = true; off(); };
}

// numberCell shows a number, with a bar where more or less of it is better.
function numberCell(n, most) {
  if (!n.better) return h('td', {class: n.bad ? 'bad' : ''}, n.text);
  const cell = h('td', {class: 'meter-cell ' + (n.better === 'more' ? 'good' : 'slow')}, h('span', {class: 'meter-bar'}), n.text);
  cell.firstChild.style.width = Math.round(100 * (n.value || 0) / most) + '%';
  return cell;
}

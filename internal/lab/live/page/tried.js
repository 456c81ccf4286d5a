import {entitled, fill, h} from './dom.js';
import {pageIn, said, t} from './words.js';
import {get} from './api.js';
import {isSaved} from './saved.js';
import {recordTable} from './step.js';
import {store} from './store.js';
import {ended, verdictChip} from './verdict.js';

const command = line => h('p', {}, h('code', {class: 'command'}, line));
const scrolls = (name, table) => h('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': t(name)}, table);
const table = (name, columns, rows) => scrolls(name, h('table', {}, h('thead', {}, h('tr', {}, columns.map(c => h('th', {scope: 'col'}, t(c))))), h('tbody', {}, rows)));
const requests = (name, sent) => table(name, ['server', 'request', 'answer'], sent.map(s =>
  h('tr', {}, h('td', {}, s.server), h('td', {}, h('code', {}, s.sent), s.source && [h('br'), h('code', {}, s.source)]), h('td', {}, s.answer))));

// triedView shows what a try of a service came to.
export function triedView(body, [number = '1']) {
  let gone = false;
  const show = of => fill(body, h('h1', {}, of.service, ' ', verdictChip(store.catalog.tried[number - 1])),
    h('p', {class: 'soft'}, [of.time, of.os, t('cores', {n: of.cores}), `${t('seed')} ${of.seed}`].join(' · ')),
    h('section', {}, h('h2', {}, t('tried.parts')), table('tried.parts', ['tried.part', 'verdict', 'story'], of.parts.map(part =>
      h('tr', {}, h('th', {scope: 'row'}, part.part), h('td', {}, verdictChip(part)), h('td', {}, said(part.reason)))))),
    (of.unseen || []).map(what => h('p', {class: 'notice'}, t('tried.unseen', {what: said(what)}))),
    of.parts.filter(part => part.record).map(part => h('section', {}, h('h2', {}, part.part), h('p', {class: 'ending'}, ended(part.record.outcome)),
      part.mends && h('p', {}, t('tried.mends'), ' ', isSaved ? h('code', {}, part.mends) : h('a', {href: pageIn(part.mends)}, part.mends)),
      scrolls('record', recordTable(part.record, part.record.customers)), part.replay && command(part.replay))),
    h('section', {}, h('h2', {}, t('tried.sale')), requests('tried.sale', of.sale || []),
      (of.sold_out || []).length > 0 && [h('h3', {}, t('tried.sold.out')), requests('tried.sold.out', of.sold_out)]),
    h('section', {}, h('h2', {}, t('tried.again')), command(of.command)));
  get('api/tried/' + number).then(of => { if (!gone) { show(of); entitled(of.service); } }, e => { if (!gone) fill(body, h('p', {class: 'notice'}, e.message)); });
  return () => { gone = true; };
}

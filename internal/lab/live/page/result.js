import {h} from './dom.js';
import {known, language, said, t, under} from './words.js';
import {store} from './store.js';
import {verdict, verdictChip} from './verdict.js';

// What a saved page says of its result as a whole.

const cellsOf = () => [...store.runs.values()].filter(r => !r.load);

// heading says how the cells ended, and leads to those that are surprises.
export function heading() {
  const runs = cellsOf(), surprises = runs.filter(r => r.surprise), {saved, verdicts} = store.catalog;
  const many = verdicts.map(kind => [kind, runs.filter(r => r.verdict === kind).length]).filter(([, n]) => n);
  return h('div', {}, h('h1', {}, [t(runs.length === 1 ? 'saved.cell' : 'saved.cells', {n: runs.length}), many.map(([kind, n]) => `${n} ${t('verdict.' + kind)}`).join(t('comma'))].filter(Boolean).join(t('colon'))),
    h('p', {class: 'lead'}, [new Date(saved.time).toLocaleString(language()), runs.length > 0 && !surprises.length && t('saved.expected')].filter(Boolean).join(' · ')),
    saved.interrupted && h('p', {class: 'notice interrupted'}, t('saved.interrupted')),
    surprises.length > 0 && h('section', {class: 'surprises'}, h('h2', {}, t('saved.surprises', {n: surprises.length})), h('p', {}, t('saved.surprises.mean')),
      h('ul', {}, surprises.map(r => h('li', {}, h('a', {href: `#/cell/${r.strategy}/${r.scenario}`}, under(r)), t('colon'), verdictChip(r), ' ', verdict(r))))));
}

// where says on what machine, with what servers and settings the cells ran.
export const where = () => h('section', {}, h('h2', {}, t('saved.where')), h('p', {class: 'soft'}, t('saved.where.means')),
  h('dl', {class: 'facts'}, store.catalog.saved.facts.map(f => h('div', {class: f.name === 'command' ? 'whole' : null}, h('dt', {}, known('where.' + f.name, f.name)), h('dd', {}, said(f.value))))));

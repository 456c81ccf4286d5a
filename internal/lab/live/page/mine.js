import {fill, h} from './dom.js';
import {pageIn, t, under} from './words.js';
import {runOf, store} from './store.js';
import {verdictChip} from './verdict.js';

// marked is a text in which Markdown marks code.
const marked = text => text.split('`').map((part, i) => (i % 2 ? h('code', {}, part) : part));

// named is a name with a link to its section.
const named = (list, name) => h('a', {href: pageIn(list.find(of => of.name === name).page)}, name);

// mineView asks what a visitor's code does, and leads to the cell that breaks it. The link has the question.
export function mineView(body, [open = '']) {
  const cell = (strategy, scenario) => {
    const known = runOf(strategy, scenario);
    return h('a', {class: 'button', href: `#/cell/${strategy}/${scenario}`}, under({strategy, scenario}), known && known.state === 'ended' && [' ', verdictChip(known)]);
  };
  const answer = a => h('details', {class: 'answer-of-mine', 'data-answer': a.strategy},
    h('summary', {}, marked(t(`says.${a.strategy}:${a.scenario}`))),
    h('pre', {tabindex: '0', role: 'region', 'aria-label': a.language}, h('code', {}, a.code)),
    h('p', {}, marked(t(`why.${a.strategy}:${a.scenario}`))),
    h('p', {class: 'bar'}, h('span', {class: 'soft'}, t('mine.breaks')), ' ', cell(a.strategy, a.scenario), ' ',
      h('span', {class: 'soft'}, t('mine.holds')), ' ', cell(a.twin, a.scenario), ' ',
      h('a', {class: 'button', href: `#/pair/${a.scenario}/${a.strategy}/${a.twin}`}, t('tab.pair'))),
    h('p', {class: 'soft'}, named(store.catalog.strategies, a.strategy), ' · ', named(store.catalog.strategies, a.twin), ' · ',
      named(store.catalog.scenarios, a.scenario), ' · ', h('code', {class: 'command'}, `${store.catalog.program} run ${a.strategy}:${a.scenario} --draw`)));
  fill(body, h('div', {class: 'title'}, h('div', {}, h('h1', {}, t('tab.mine')), h('p', {class: 'lead'}, t('mine.lead')))),
    h('ol', {class: 'mine'}, store.catalog.questions.map(q => h('li', {id: 'mine-' + q.key},
      h('h2', {}, t('ask.' + q.key)), h('p', {class: 'soft'}, marked(t('look.' + q.key))), q.answers.map(answer)))),
    h('p', {}, t('mine.none'), ' ', h('a', {href: '#/'}, t('tab.matrix'))));
  const asked = open && document.getElementById('mine-' + open);
  if (asked) asked.scrollIntoView();
}

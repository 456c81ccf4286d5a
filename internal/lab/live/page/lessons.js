import {entitled, fill, h, markup} from './dom.js';
import {explained} from './columns.js';
import {details} from './details.js';
import {language, pageIn, said as inWords, t, under} from './words.js';
import {ask, get, mayDrive, start} from './api.js';
import {lastRun, on, store} from './store.js';
import {askClass, classVotes} from './class.js';
import {linkOf, recordTable} from './step.js';
import {ended, notice, verdictChip} from './verdict.js';

const courses = {};

// lessonsView shows the plan of the course, or one step of a lesson.
export function lessonsView(body, [number = '', at = 'read']) {
  let gone = false;
  const leaving = [];
  fill(body, h('p', {class: 'soft'}, h('span', {class: 'spinner'}), ' ', t('loading')));
  const show = course => {
    if (gone) return;
    const lesson = course.lessons.find(l => String(l.number) === number);
    const menu = h('nav', {class: 'lessons', 'aria-label': t('tab.lessons')}, h('a', {href: '#/lessons', 'aria-current': lesson ? null : 'page'}, t('lesson.plan')),
      course.lessons.map(l => h('a', {href: '#/lessons/' + l.number, title: l.title, 'aria-label': l.title, 'aria-current': l === lesson ? 'page' : null}, String(l.number))));
    entitled(lesson ? lesson.title : t('lesson.plan'));
    if (!lesson) { fill(body, menu, markup('prose', course.plan)); return; }
    const kinds = lesson.steps.map(s => s.kind), tried = stepped(lesson);
    if (tried.length) kinds.splice(3, 0, 'step');
    const i = Math.max(kinds.indexOf(at), 0), step = lesson.steps.find(s => s.kind === kinds[i]);
    const link = kind => `#/lessons/${lesson.number}/${kind}`;
    const next = i + 1 < kinds.length ? [link(kinds[i + 1]), t('lesson.' + kinds[i + 1])] : course.lessons[lesson.number + 1] ? ['#/lessons/' + (lesson.number + 1), course.lessons[lesson.number + 1].title] : ['#/lessons', t('lesson.plan')];
    fill(body, menu, h('h1', {}, lesson.title),
      h('nav', {class: 'steps', 'aria-label': lesson.title}, kinds.map((kind, n) => h('a', {href: link(kind), 'aria-current': n === i ? 'step' : null}, t('lesson.' + kind))), h('span', {class: 'spring'}),
        h('a', {class: 'aside', href: pageIn('docs/course/sheet.md'), target: '_blank', rel: 'noopener'}, t('lesson.sheet'))),
      step ? step.parts.map(p => p.html ? markup('prose', p.html) : commandCard(p, leaving)) : h('section', {class: 'prose'}, h('p', {}, t('lesson.step.lead')),
        h('p', {class: 'bar'}, tried.map(([strategy, customers]) => h('a', {class: 'button', href: `#/step/${strategy}/${customers}`}, t('lesson.step.it', {strategy}))))),
      h('p', {class: 'bar next-step'}, step && step.seconds > 29 && h('span', {class: 'soft', 'data-seconds': step.seconds}, t('lesson.reading', {n: Math.ceil(step.seconds / 60)})), h('span', {class: 'spring'}), h('a', {class: 'button main', id: 'next-step', href: next[0]}, next[1], ' →')));
  };
  const of = language();
  (courses[of] = courses[of] || get('api/course?lang=' + of)).then(show, e => { delete courses[of]; if (!gone) fill(body, h('p', {class: 'notice'}, e.message)); });
  return () => { gone = true; for (const leave of leaving) leave(); };
}

// stepName is a strategy as the step view names it.
const stepName = of => (of.baskets ? 'baskets:' : '') + of.strategy;
const several = name => !store.catalog.strategies.some(s => s.name === name);

// stepped are the strategies of a lesson that one can step through, with how many customers.
function stepped(lesson) {
  const found = new Map();
  for (const {action} of lesson.steps.flatMap(s => s.parts)) {
    for (const name of action ? action.strategies || action.cells.map(c => c.strategy) : []) {
      const s = store.catalog.strategies.find(s => s.name === name);
      if (s && !s.not_stepped) found.set(name, Math.max(found.get(name) || 2, action.customers || 2));
    }
  }
  return [...found].slice(0, 4);
}

// commandCard is a command of a lesson, with the button that starts it and what came out.
function commandCard({line, output, action}, leaving) {
  const said = h('p', {class: 'said', role: 'alert', hidden: true}), say = words => notice(said, words), out = h('div', {class: 'result', 'aria-live': 'polite'});
  const begin = h('button', {type: 'button', class: 'main begin', onclick: () => run()}, '▶ ', t('lesson.begin'));
  const shops = action && action.shops !== store.catalog.shops && action.shops || 0;
  // What a class can vote on: each cell, or how the schedule ends.
  const about = !action || action.explore || shops ? [] : action.cells || [{strategy: action.strategies[0], schedule: action.schedule, title: line.replace(/^loadtest | --draw$/g, '')}];
  const votes = about.map(classVotes);
  leaving.push(...votes.map(v => v.leave));
  const baskets = action && action.strategies && several(action.strategies[0]);
  const asked = strategy => ({strategy, customers: action.customers, schedule: action.schedule || '', baskets});
  let results = [], searched = null;
  const away = new AbortController();
  leaving.push(() => away.abort());
  async function run() {
    begin.disabled = true;
    say('');
    try {
      if (action.cells) await start(action.cells.map(c => ({...c, seed: 1, shops})));
      else if (action.explore) {
        results = [];
        for (const strategy of action.strategies) {
          searched = {strategy, words: h('span', {'aria-live': 'off'}, t('shortest.running', {runs: 0, event: kindsOf(action.events)}))};
          fill(out, results.map(exploredWords), h('p', {class: 'soft'}, h('span', {class: 'spinner'}), ' ', searched.words));
          results.push(await ask('POST', 'api/explorations', {...asked(strategy), events: action.events || []}, away.signal));
        }
        fill(out, results.map(exploredWords));
      } else {
        fill(out, h('p', {class: 'soft'}, h('span', {class: 'spinner'}), ' ', t('playing')));
        played({...asked(action.strategies[0]), position: await ask('POST', 'api/positions', {...asked(action.strategies[0]), to_end: true}, away.signal)});
      }
    } catch (e) { say(e.message); if (!action.cells) fill(out, results.map(exploredWords)); } finally { begin.disabled = false; searched = null; }
  }
  const kindsOf = events => (events || []).length ? events.map(e => t('event.' + e, {who: t('somebody')})).join(t('list')) : t('no.event');
  const exploredWords = e => h('div', {class: 'explored'}, h('p', {'data-bad': e.bad}, h('b', {}, t('lesson.explored', {strategy: e.strategy, runs: e.runs, bad: e.bad})), ' ', inWords(e.unknown)),
    e.shortest && h('p', {}, ended(e.outcome), ' ', h('a', {class: 'button', href: linkOf(stepName(e), e.customers, e.shortest) + '/end'}, e.shortest)));
  function played(p) {
    const at = p.position;
    fill(out, at.drawing ? h('pre', {class: 'output', tabindex: '0'}, at.drawing[language()]) : h('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': t('record')}, recordTable(at, p.customers)),
      h('p', {class: 'ending'}, ended(at.outcome),
        ' ', h('a', {class: 'button', href: linkOf(stepName(p), p.customers, p.schedule)}, t('step.it'))));
  }
  // The cells of a run, and of a single one why it ended so.
  const why = new Map();
  const cells = () => fill(out, action.cells.map(c => {
    const of = lastRun(c.strategy, c.scenario, shops);
    if (of && of.state === 'ended' && !why.has(of.id)) {
      why.set(of.id, {});
      details(of.id).then(d => { why.set(of.id, d); cells(); }, () => {});
    }
    const d = of && why.get(of.id) || {};
    return h('div', {class: 'ran', 'data-ran': `${c.strategy}/${c.scenario}`},
      h('p', {}, h('a', {href: `#/cell/${c.strategy}/${c.scenario}`}, under(c)), action.shops ? ` · ${t('lesson.shops', {n: action.shops})}` : '', ' ',
        !of ? h('span', {class: 'soft'}, t('state.empty')) : of.state === 'ended' ? verdictChip(of) : [of.state !== 'failed' && h('span', {class: 'spinner'}), ' ', inWords(of.error) || t('state.' + of.state)]),
      of && of.state === 'ended' && action.cells.length < 3 && h('p', {class: 'cause'}, d.cause),
      action.explain && d.drawing && explained(d.drawing));
  }));
  if (action && action.cells) { if (action.cells.some(c => lastRun(c.strategy, c.scenario, shops))) cells(); } else if (action && matches(store.played)) played(store.played);
  function matches(p) { return p && !action.explore && p.to_end && p.strategy === action.strategies[0] && p.schedule === action.schedule; }
  if (action) {
    leaving.push(on((name, data) => {
      if (name === 'state') why.clear(); // of another lab, perhaps, whose runs have the same numbers
      if (action.cells && ['state', 'queued', 'running', 'ended', 'dropped'].includes(name) && (out.firstChild || action.cells.some(c => lastRun(c.strategy, c.scenario, shops)))) cells();
      else if (name === 'played' && action.schedule !== undefined && matches(data)) played(data);
      else if (name === 'searching' && searched && searched.strategy === data.strategy) searched.words.textContent = t('shortest.running', {runs: data.runs, event: kindsOf(action.events)});
      else if (name === 'explored' && action.explore && !mayDrive() && action.strategies.includes(data.strategy)) fill(out, exploredWords(data));
    }));
  }
  return h('section', {class: 'command-card', 'data-command': line}, h('p', {}, h('code', {class: 'command'}, line)),
    action ? mayDrive() && h('p', {class: 'bar'}, begin, about.map(one => askClass(one, say, about.length > 1 ? under(one) : ''))) : !output && h('p', {class: 'soft'}, t('lesson.terminal')),
    said, votes.map(v => v.element), out,
    output && h('details', {open: !action}, h('summary', {}, t('lesson.printed')), h('pre', {class: 'output', tabindex: '0', role: 'region', 'aria-label': t('lesson.printed')}, output)));
}

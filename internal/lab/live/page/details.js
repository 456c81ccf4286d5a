import {said} from './words.js';
import {get} from './api.js';

const escaped = text => text.replace(/[&<>"]/g, c => ({'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;'})[c]);

// details is all that is known of a run. Its drawings have the numbers of their texts, such as {3}.
export async function details(id) {
  const d = await get('api/runs/' + id), texts = d.texts || [];
  const say = (text, as = word => word) => text && text.replace(/\{(\d+)\}/g, (_, n) => as(said(...texts[n])));
  const draw = markup => say(markup, escaped), x = d.drawing;
  return {...d, cause: said(...d.why || []), outcomes: draw(d.outcomes), latency: draw(d.latency), buckets: draw(d.buckets),
    drawing: x && {...x, shapes: draw(x.shapes), lanes: x.lanes.map(l => ({...l, name: say(l.name)})), moment: x.moment && {...x.moment, what: say(x.moment.what)}}};
}

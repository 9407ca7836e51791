// The panels that show. Each has update(figures), called once a second, or load(), called when it is
// in sight; both leave alone what has not changed.
import { h, s, set, table, choice, panel, number, setTime } from './dom.js';
import { spark, chart, formats } from './chart.js';
import { get, post, may, session } from './api.js';

const pill = (state, text) => h('span', { cls: `pill ${state}`, text });
const setPill = (element, state, text) => { element.className = `pill ${state}`; set(element, text); };
const share = (part, whole) => (whole > 0 ? (100 * part) / whole : null);

const COLORS = { hit: 2, 'hit-grace': 7, 'hit-stale': 5, miss: 1, pass: 4, pipe: 6, purge: 8, synth: 6, error: 3, answer: 6 };

export function now(app) {
  let by = 'requests', range = 900, history = null, showing = 'rate';
  const figure = (name, cls) => {
    const value = h('div', { cls: 'value', text: '–' }), more = h('div', { cls: 'more' }), line = spark(cls);
    return { element: h('div', { cls: 'figure' }, h('h3', { text: name }), value, more, line.element), value, more, line };
  };
  const put = (one, text, unit) => { one.value.replaceChildren(text, unit ? h('small', { text: unit }) : ''); };
  const requests = figure('Requests/s'), hits = figure('Hit ratio', 'good-line'), latency = figure('Latency, median');
  const origin = figure('Origin requests/s'), errors = figure('Errors (5xx)/s', 'bad-line');
  const all = [requests, hits, latency, origin, errors];
  const series = {
    rate: chart('Requests a second', [{ key: 'requests', name: 'requests', cls: 1 }, { key: 'hits', name: 'hits', cls: 2 }, { key: 'origin', name: 'to origins', cls: 5 }, { key: 'errors', name: 'errors', cls: 3 }], formats.rate),
    latency: chart('Latency', [{ key: 'p50', name: 'median', cls: 1 }, { key: 'p95', name: '95th percentile', cls: 5 }, { key: 'p99', name: '99th percentile', cls: 3 }], formats.seconds),
  };
  series.latency.element.hidden = true;
  const events = h('ul', { cls: 'events', 'aria-label': 'Events', tabindex: '0' });
  let marks = [], eventsMade = -1;
  const self = panel('now', 'Now', {
    wide: true,
    tools: [
      choice('Hit ratio by', [['requests', 'by requests'], ['bytes', 'by bytes']], by, (key) => { by = key; if (app.figures) self.update(app.figures); }),
      choice('Chart', [['rate', 'Traffic'], ['latency', 'Latency']], showing, (key) => { showing = key; for (const [name, one] of Object.entries(series)) one.element.hidden = name !== key; draw(); }),
      choice('Range', [[900, '15 min'], [86400, '24 h']], range, (key) => { range = key; self.open(); }),
    ],
  });
  self.body.append(h('div', { cls: 'figures' }, ...all.map((one) => one.element)), series.rate.element, series.latency.element, h('h3', { text: 'Events' }), events);
  events.previousSibling.className = 'gap';
  const draw = () => {
    if (!history) return;
    const to = app.figures ? app.figures.time : history.time.at(-1) || 0;
    // A young history fills the chart, beginning with a minute.
    const from = Math.max(to - range, Math.min(history.time[0] || to, to - 60));
    series[showing].update({ ...history, from, to, marks });
  };
  self.open = async () => {
    history = await get(`history?from=0&step=${range > 900 ? 60 : 1}`);
    draw();
  };
  self.update = (figures) => {
    const rates = figures.now, [time, point] = figures.point;
    if (history && range === 900 && time > (history.time.at(-1) || 0)) {
      history.time.push(time);
      history.names.forEach((key, place) => history.values[key].push(point[place]));
      while (history.time.length > 900) { history.time.shift(); Object.values(history.values).forEach((one) => one.shift()); }
    }
    put(requests, number.rate(rates.requests));
    set(requests.more, `${number.bytes(rates.bytes)} a second`);
    const [part, whole] = by === 'bytes' ? [rates.hit_bytes, rates.bytes] : [rates.hits, rates.requests];
    put(hits, number.percent(part, whole), whole > 0 ? '%' : '');
    set(hits.more, `${number.rate(rates.hits)} hits a second`);
    const [value, unit] = number.seconds(rates.p50).split(' ');
    put(latency, value, unit);
    set(latency.more, `95 %: ${number.seconds(rates.p95)}, 99 %: ${number.seconds(rates.p99)}`);
    put(origin, number.rate(rates.origin));
    set(origin.more, rates.requests > 0 ? `${number.percent(rates.origin, rates.requests)} % of requests` : 'no requests');
    put(errors, number.rate(rates.errors));
    set(errors.more, rates.requests > 0 ? `${number.percent(rates.errors, rates.requests)} % of requests` : 'no requests');
    errors.value.classList.toggle('bad-text', rates.errors > 0);
    if (history && range === 900) {
      const last = (key) => history.values[key].slice(-120);
      requests.line.update(last('requests'));
      const [top, bottom] = by === 'bytes' ? ['hit_bytes', 'bytes'] : ['hits', 'requests'];
      const below = last(bottom);
      hits.line.update(last(top).map((one, place) => share(one, below[place]) || 0), 100);
      latency.line.update(last('p50'));
      origin.line.update(last('origin'));
      errors.line.update(last('errors'), 1);
    }
    draw();
    if (figures.events_made !== eventsMade) {
      eventsMade = figures.events_made;
      get('events').then((list) => {
        marks = list;
        events.replaceChildren(...list.slice(0, 50).map((one) => { const at = h('time'); setTime(at, one.time); return h('li', {}, at, h('span', { text: one.text })); }));
        if (!list.length) events.append(h('li', { cls: 'soft', text: 'None since the dashboard runs.' }));
      }).catch(() => {});
    }
  };
  return self;
}

export function why(app) {
  const stack = h('div', { cls: 'stack', 'aria-hidden': 'true' }), keys = h('div', { cls: 'keys' }), sub = h('span', { cls: 'sub' });
  const parts = new Map();
  const rows = table([
    { name: 'Reason', make: (cell, row) => cell.append(h('button', { cls: 'link mono', type: 'button', on: { click: () => app.filter(row().reason) } }), h('div', { cls: 'soft' })), update: (cell, row) => { set(cell.firstChild, row.reason); set(cell.lastChild, row.recent && row.advice ? `${row.sentence} Advice: ${row.advice}.` : row.sentence); } },
    { name: 'Recent', cls: 'num', text: (row) => number.count(row.recent) },
    { name: 'Total', cls: 'num soft', text: (row) => number.count(row.total) },
  ], { label: 'Reasons', empty: 'No decision yet: send requests through Copal.' });
  const self = panel('why', 'Why', { sub });
  self.body.append(stack, keys, h('div', { cls: 'scroll tall', tabindex: '0', role: 'group', 'aria-label': 'Reasons' }, rows.element));
  self.period = 3;
  self.load = async () => {
    const answer = await get('reasons');
    set(sub, `last ${answer.minutes} min; click to filter`);
    const sum = answer.results.reduce((total, one) => total + one.recent, 0);
    for (const one of answer.results) {
      let part = parts.get(one.result);
      if (!part) {
        const color = `k${COLORS[one.result] || 6}`;
        part = { bar: h('i', { cls: color }), value: h('b') };
        part.key = h('button', { type: 'button', title: one.text, on: { click: () => app.filter(one.result) } }, h('i', { cls: color }), one.result, part.value);
        stack.append(part.bar);
        keys.append(part.key);
        parts.set(one.result, part);
      }
      part.bar.style.flexGrow = String(one.recent);
      part.bar.style.flexBasis = '0';
      part.bar.hidden = one.recent === 0;
      part.key.hidden = one.total === 0;
      set(part.value, sum ? `${number.percent(one.recent, sum)} %` : '–');
    }
    rows.update(answer.reasons.sort((one, other) => other.recent - one.recent || other.total - one.total));
  };
  return self;
}

export function origins(app) {
  const error = h('p', { cls: 'error', role: 'alert' });
  let details = {};
  const probed = (detail) => Boolean(detail && Array.isArray(detail.probe_message) && detail.probe_message[1] > 0);
  const dots = (cell, row) => {
    const has = probed(row.detail);
    const key = has ? row.probes.slice(-4) : '';
    if (cell.dataset.shown === key) return;
    cell.dataset.shown = key;
    const bits = has ? [...BigInt(`0x${row.probes}`).toString(2).padStart(64, '0')].slice(-12) : [];
    cell.replaceChildren(has ? h('span', { cls: 'dots', role: 'img', 'aria-label': `${bits.filter((bit) => bit === '1').length} of the last 12 probes succeeded` }, ...bits.map((bit) => h('i', { cls: bit === '1' ? 'ok' : '' }))) : '–');
  };
  const failed = (row) => Object.entries(row.failed).map(([kind, count]) => `${kind} ${number.count(count)}`).join(', ');
  const rows = table([
    { name: 'Backend', make: (cell) => cell.append(h('span'), h('div', { cls: 'soft' })), update: (cell, row) => { set(cell.firstChild, row.name); set(cell.lastChild, row.vcl); } },
    { name: 'State', make: (cell) => cell.append(pill('plain', '')), update: (cell, row) => { setPill(cell.firstChild, row.healthy ? 'good' : 'bad', row.healthy ? 'healthy' : 'sick'); } },
    { name: 'Probes', update: dots },
    { name: 'Req/s', cls: 'num', text: (row) => number.rate(row.rate) },
    { name: 'p95', cls: 'num', text: (row) => number.seconds(row.p95) },
    { name: 'In use', cls: 'num', text: (row) => number.count(row.connections) + (row.waiting ? ` (${row.waiting} wait)` : '') },
    { name: 'Failures', cls: 'num', make: (cell) => cell.append(h('div', {}, h('span'), h('div', { cls: 'soft' }))), update: (cell, row) => { const [count, kinds] = cell.firstChild.children; set(count, number.count(row.failures)); count.className = row.failure_rate > 0 ? 'bad-text' : ''; set(kinds, failed(row)); } },
    { name: 'Set', make: (cell, row) => {
      const select = h('select', { 'aria-label': 'Health', on: { change: async () => {
        const { vcl, name } = row(), health = select.value;
        error.textContent = '';
        try { await post(`backend/${encodeURIComponent(`${vcl}.${name}`)}`, { health }); app.say(`${name} is set to ${health}`); details = {}; self.load(); } catch (failure) { set(error, failure.message); select.value = row().admin; }
      } } }, ...['auto', 'healthy', 'sick'].map((text) => h('option', { value: text, text })));
      cell.append(select);
    }, update: (cell, row) => { const select = cell.firstChild; select.disabled = !may(); select.setAttribute('aria-label', `Health of ${row.name}`); if (document.activeElement !== select && select.value !== row.admin) select.value = row.admin; } },
  ], { label: 'Origins', empty: 'No backend.' });
  const self = panel('origins', 'Origins', {});
  self.body.append(error, h('div', { cls: 'scroll tall', tabindex: '0', role: 'group', 'aria-label': 'Origins' }, rows.element));
  self.update = (figures) => {
    rows.update(figures.backends.map((row) => {
      const detail = details[`${row.vcl}.${row.name}`];
      const admin = detail && detail.admin_health;
      // Without a probe, auto is healthy.
      return { ...row, detail, admin: admin === 'sick' || (admin === 'healthy' && probed(detail)) ? admin : 'auto' };
    }));
  };
  self.period = 5;
  self.load = async () => {
    const [list] = await get('backends');
    details = list || {};
    if (app.figures) self.update(app.figures);
  };
  return self;
}

const BY = [['requests', 'Requests'], ['misses', 'Misses'], ['bytes', 'Bytes'], ['origin-time', 'Origin time'], ['errors', 'Errors'], ['hosts', 'Hosts'], ['status', 'Status'], ['clients', 'Clients']];

export function tops(app) {
  let by = 'requests';
  const sub = h('p', { cls: 'note' });
  const value = (count) => (by === 'bytes' ? number.bytes(count) : by === 'origin-time' ? number.seconds(count / 1e6) : number.count(count));
  const rows = table([
    { name: 'What', make: (cell, row) => cell.append(h('button', { cls: 'link', type: 'button', on: { click: () => app.filter(row().text) } }), h('div', { cls: 'bar' }, h('i'))), update: (cell, row) => { set(cell.firstChild, row.text || '(empty)'); cell.lastChild.firstChild.style.width = `${Math.min(100, row.share)}%`; } },
    { name: 'Count', cls: 'num', text: (row) => value(row.count) },
    { name: 'Share', cls: 'num soft', text: (row) => `${row.share.toFixed(1)} %` },
    { name: '± at most', cls: 'num soft', text: (row) => (row.error ? value(row.error) : '0') },
  ], { label: 'Ranking', empty: 'Nothing to rank yet.' });
  const self = panel('tops', 'Tops', { wide: true, tools: [choice('Rank by', BY, by, (key) => { by = key; self.load(); })] });
  self.body.append(h('div', { cls: 'scroll tall', tabindex: '0', role: 'group', 'aria-label': 'Ranking' }, rows.element), sub);
  self.period = 3;
  self.load = async () => {
    const asked = by;
    const answer = await get(`tops?by=${by}&filter=${encodeURIComponent(app.filtered)}`);
    if (asked !== by) return;
    rows.update(answer.rows.map((row) => ({ ...row, share: share(row.count, answer.total) || 0 })));
    set(sub, by === 'clients' && !answer.rows.length ? 'Clients are not ranked, unless -o dash_clients=hash or show is given.'
      : `From the log, halved every five minutes.${answer.one_of > 1 ? ` At this rate one of ${answer.one_of} requests is ranked.` : ''} The count is too high by at most ±.`);
  };
  return self;
}

export function cache() {
  const stores = h('div'), facts = h('dl', { cls: 'facts' });
  const known = new Map(), values = {};
  const fact = (key, name) => { values[key] = h('dd', { text: '–' }); facts.append(h('div', {}, h('dt', { text: name }), values[key])); };
  [['n_object', 'Objects'], ['n_lru_nuked', 'Evicted'], ['n_expired', 'Expired'], ['n_purges', 'Purged'], ['bans', 'Bans in force'], ['cache_hit', 'Hits'], ['cache_miss', 'Misses'], ['refused', 'No room']].forEach(([key, name]) => fact(key, name));
  const bans = table([
    { name: 'Ban', cls: 'mono', text: (row) => row.spec },
    { name: 'Age', cls: 'num', text: (row) => number.span(Math.max(0, Date.now() / 1000 - row.time)) },
    { name: 'Objects', cls: 'num', text: (row) => number.count(row.refs) },
    { name: 'Done', text: (row) => (row.completed ? 'yes' : '') },
  ], { label: 'Bans', empty: 'No bans.' });
  const self = panel('cache', 'Cache', {});
  const title = h('h3', { text: 'Bans' });
  self.body.append(stores, facts, h('br'), title, h('div', { cls: 'scroll tall', tabindex: '0', role: 'group', 'aria-label': 'Bans' }, bans.element));
  self.update = (figures) => {
    for (const store of figures.storages) {
      let one = known.get(store.name);
      if (!one) {
        one = { text: h('span'), bar: h('i') };
        one.element = h('div', { cls: 'store' }, h('div', { cls: 'line' }, h('b', { text: store.name }), one.text), h('div', { cls: 'bar' }, one.bar));
        known.set(store.name, one);
        stores.append(one.element);
      }
      const limit = store.bytes + store.free;
      set(one.text, store.free ? `${number.bytes(store.bytes)} of ${number.bytes(limit)} (${number.percent(store.bytes, limit)} %)` : number.bytes(store.bytes));
      one.bar.style.width = `${store.free ? Math.min(100, (100 * store.bytes) / limit) : 0}%`;
      one.element.hidden = store.name === 'Transient' && store.bytes === 0;
    }
    const refused = figures.storages.reduce((sum, store) => sum + store.refused, 0);
    for (const [key, element] of Object.entries(values)) set(element, number.count(key === 'refused' ? refused : figures.main[key]));
  };
  self.period = 5;
  self.load = async () => {
    const list = await get('bans');
    bans.update((Array.isArray(list) ? list : []).flat().filter((one) => one && one.spec).slice(0, 100));
  };
  return self;
}

export function requests(app) {
  let paused = false, samples = true;
  const sub = h('span', { cls: 'sub' }), text = h('pre'), title = h('h2', { text: 'Why' });
  const dialog = h('dialog', { 'aria-label': 'Explanation of a request' }, h('div', { cls: 'in' }, h('div', { cls: 'head' }, title, h('button', { type: 'button', text: 'Close', on: { click: () => dialog.close() } })), h('div', { cls: 'source', tabindex: '0' }, text)));
  const show = async (vxid) => {
    try { const answer = await get(`why/${vxid}`); set(text, answer.why); } catch (failure) { set(text, failure.message); }
    set(title, `Request ${vxid}`);
    dialog.showModal();
  };
  const kinds = { failed: 'bad', slow: 'wait', sample: 'plain' };
  const rows = table([
    { name: 'Request', make: (cell, row) => cell.append(h('button', { cls: 'link', type: 'button', on: { click: () => show(row().vxid) } }), h('div', { cls: 'soft' })), update: (cell, row) => { set(cell.firstChild, `${row.method} ${row.address}`); set(cell.lastChild, row.failure || [row.reason, row.backend].filter(Boolean).join(', ')); } },
    { name: 'Time', cls: 'nowrap soft', make: (cell) => cell.append(h('time')), update: (cell, row) => setTime(cell.firstChild, row.time) },
    { name: 'Kind', make: (cell) => cell.append(pill('plain', '')), update: (cell, row) => setPill(cell.firstChild, kinds[row.kind], row.kind) },
    { name: 'Status', cls: 'num', text: (row) => row.status || '–' },
    { name: 'Result', cls: 'nowrap', text: (row) => row.result },
    { name: 'Duration', cls: 'num', text: (row) => number.seconds(row.seconds) },
    { name: 'Origin', cls: 'num soft', text: (row) => (row.origin_seconds ? number.seconds(row.origin_seconds) : '–') },
    { name: 'Bytes', cls: 'num soft', text: (row) => number.bytes(row.bytes) },
  ], { label: 'Requests', empty: 'No such request.' });
  const pause = h('button', { type: 'button', cls: 'small', text: 'Pause', 'aria-pressed': 'false', on: { click: () => { paused = !paused; pause.setAttribute('aria-pressed', String(paused)); set(pause, paused ? 'Resume' : 'Pause'); if (!paused) self.load(); } } });
  const self = panel('requests', 'Requests', { wide: true, sub, tools: [choice('Requests', [['all', 'All kept'], ['notable', 'Failed and slow']], 'all', (key) => { samples = key === 'all'; self.load(); }), pause] });
  self.body.append(h('div', { cls: 'scroll tall', tabindex: '0', role: 'group', 'aria-label': 'Requests' }, rows.element), dialog);
  self.period = 2;
  self.load = async () => {
    if (paused) return;
    const answer = await get(`requests?filter=${encodeURIComponent(app.filtered)}${samples ? '&all=1' : ''}`);
    set(sub, `${samples ? 'a sample of all, ' : ''}failed, or ${number.seconds(answer.slow_milliseconds / 1000)} and slower${answer.skipped ? `; ${number.count(answer.skipped)} more were not kept` : ''}`);
    rows.update(answer.rows.slice(0, 200));
  };
  return self;
}

export function health(app) {
  const facts = h('dl', { cls: 'facts' }), values = {};
  [['version', 'Version'], ['uptime', 'Worker runs for'], ['worker', 'Worker'], ['manager', 'Manager'], ['threads', 'Event loops'], ['sess_conn', 'Connections'], ['sess_dropped', 'Dropped'], ['vcl_fail', 'VCL failures'], ['overruns', 'Log overruns'], ['lost', 'Requests not read']].forEach(([key, name]) => { values[key] = h('dd', { text: '–' }); facts.append(h('div', {}, h('dt', { text: name }), values[key])); });
  const params = table([{ name: 'Parameter', cls: 'mono', text: (row) => row.name }, { name: 'Value', text: (row) => row.value }, { name: 'Default', cls: 'soft', text: (row) => row.default }], { label: 'Parameters that differ from their default', empty: 'All parameters have their defaults.' });
  const certificates = table([{ name: 'Certificate', text: (row) => row.subject }, { name: 'Frontend', text: (row) => row.frontend }, { name: 'State', text: (row) => row.state }, { name: 'Until', text: (row) => row.until }], { label: 'Certificates', empty: 'No certificates.' });
  const self = panel('health', 'Health', { wide: true });
  self.body.append(facts, h('br'), h('h3', { text: 'Parameters that differ from their default' }), params.element, h('br'), h('h3', { text: 'Certificates' }), certificates.element);
  self.update = (figures) => {
    set(values.version, session.version);
    set(values.uptime, number.span(figures.uptime));
    set(values.worker, figures.up.worker ? 'serves' : 'down');
    values.worker.className = figures.up.worker ? '' : 'bad-text';
    set(values.manager, figures.up.manager ? 'runs' : 'down');
    values.manager.className = figures.up.manager ? '' : 'bad-text';
    for (const key of ['threads', 'sess_conn', 'sess_dropped', 'vcl_fail']) set(values[key], number.count(figures.main[key]));
    set(values.overruns, number.count(figures.log.overruns));
    set(values.lost, number.count(figures.log.lost));
  };
  self.period = 10;
  self.load = async () => {
    const text = (value) => (value == null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value));
    const list = await get('params').catch(() => []);
    params.update((Array.isArray(list) ? list : []).filter((row) => row && row.name).map((row) => ({ name: row.name, value: `${text(row.value)} ${row.units && row.units !== 'bool' ? row.units : ''}`.trim(), default: text(row.default) })));
    const certs = await get('certificates').catch(() => []);
    certificates.update((Array.isArray(certs) ? certs : []).flat().filter((row) => row && typeof row === 'object').map((row) => ({ subject: text(row.subject || row.id), frontend: text(row.frontend), state: text(row.state), until: text(row.not_after || row.expires) })));
  };
  return self;
}

// The panels that change the server: invalidation and VCL. Each change is shown before it is made.
import { h, set, table, panel, number, clock } from './dom.js';
import { get, post, may } from './api.js';

const HINTS = {
  url: ['/news/today', 'One URL with its query, exactly. All its variants are removed.'],
  prefix: ['/news/', 'All URLs that begin so.'],
  tag: ['article-17 front', 'All objects with one of these tags (xkey, Surrogate-Key, Cache-Tag).'],
  ban: ['obj.http.content-type ~ "^image/"', 'Conditions as in the CLI: field operator argument, joined by &&.'],
};

export function invalidate(app) {
  const kind = h('select', { id: 'kind' }, ...[['url', 'URL'], ['prefix', 'URL prefix'], ['tag', 'Tags'], ['ban', 'Ban expression']].map(([value, text]) => h('option', { value, text })));
  const value = h('input', { id: 'value', autocomplete: 'off', spellcheck: 'false', maxlength: '8000', required: true });
  const host = h('input', { id: 'host', autocomplete: 'off', spellcheck: 'false', maxlength: '255', placeholder: 'any' });
  const hard = h('input', { id: 'hard', type: 'checkbox' });
  const hostField = h('label', { for: 'host' }, 'Host', host), hardField = h('label', { cls: 'check', for: 'hard' }, hard, 'Remove at once');
  const hint = h('p', { cls: 'note' }), error = h('p', { cls: 'error', role: 'alert' }), preview = h('div', { cls: 'preview', hidden: true }), receipts = h('div', { 'aria-live': 'polite' });
  const button = h('button', { type: 'submit', cls: 'main', text: 'Preview' });
  const wanted = () => ({ kind: kind.value, value: value.value, host: kind.value === 'tag' ? '' : host.value, hard: kind.value === 'tag' && hard.checked });
  const change = () => {
    value.placeholder = HINTS[kind.value][0];
    set(hint, HINTS[kind.value][1] + (kind.value === 'tag' ? ' Without "Remove at once" they become stale, and keep their grace.' : ' A hit after this moment is no longer served; space is freed by and by.'));
    hostField.hidden = kind.value === 'tag';
    hardField.hidden = kind.value !== 'tag';
    preview.hidden = true;
  };
  kind.addEventListener('change', change);
  value.addEventListener('input', () => { preview.hidden = true; });
  const confirm = async (body) => {
    preview.hidden = true;
    set(error, '');
    try {
      const receipt = await post('invalidate', body);
      const count = receipt.result == null || receipt.result.objects == null ? '' : ` Objects: ${receipt.result.objects}.`;
      receipts.prepend(h('div', { cls: 'receipt' }, h('b', { text: `Done at ${clock(Date.now() / 1000)}, in ${receipt.milliseconds} ms.` }), `${count} `, h('code', { text: receipt.command })));
      while (receipts.children.length > 10) receipts.lastChild.remove();
      app.say('Invalidated');
      value.value = '';
    } catch (failure) { set(error, failure.message); }
  };
  const form = h('form', { cls: 'row', on: { submit: async (event) => {
    event.preventDefault();
    set(error, '');
    const body = wanted();
    try {
      const answer = await post('invalidate/preview', body);
      const rows = [h('div', {}, h('b', { text: 'Will run: ' }), h('code', { text: answer.command })), h('div', { text: answer.note })];
      if (answer.objects != null) rows.unshift(h('div', {}, h('b', { cls: 'count', text: `${number.count(answer.objects)} ${answer.objects === 1 ? 'object' : 'objects'}` }), ` in the cache`));
      if (answer.rows.length) rows.push(h('div', {}, h('b', { text: `Affected addresses among the busiest (${answer.rows.length}${answer.more ? '+' : ''}):` }), h('pre', { text: answer.rows.map((row) => row.text).join('\n') })));
      preview.replaceChildren(...rows, h('div', { cls: 'acts' }, h('button', { type: 'button', cls: 'danger', text: 'Invalidate', on: { click: () => confirm(body) } }), h('button', { type: 'button', text: 'Cancel', on: { click: () => { preview.hidden = true; } } })));
      preview.hidden = false;
      preview.querySelector('button').focus();
    } catch (failure) { set(error, failure.message); }
  } } }, h('label', { for: 'kind' }, 'What', kind), h('label', { cls: 'grow', for: 'value' }, 'Value', value), hostField, hardField, button);
  const self = panel('invalidate', 'Invalidate', {});
  self.body.append(form, hint, error, preview, receipts);
  self.update = () => {
    const off = !may();
    if (button.disabled !== off) { button.disabled = off; if (off) set(error, 'You may only look.'); else set(error, ''); }
  };
  change();
  return self;
}

// Lines of two texts: the longest common subsequence, for texts of up to 2,000 lines.
export function difference(before, after) {
  const a = before.split('\n'), b = after.split('\n');
  if (a.length > 2000 || b.length > 2000) return null;
  const width = b.length + 1, best = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) for (let j = b.length - 1; j >= 0; j -= 1) best[i * width + j] = a[i] === b[j] ? best[(i + 1) * width + j + 1] + 1 : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
  const lines = [];
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { lines.push([' ', a[i]]); i += 1; j += 1; }
    else if (i < a.length && (j === b.length || best[(i + 1) * width + j] >= best[i * width + j + 1])) { lines.push(['-', a[i]]); i += 1; }
    else { lines.push(['+', b[j]]); j += 1; }
  }
  return lines;
}

export function vcl(app) {
  const error = h('p', { cls: 'error', role: 'alert' }), title = h('h2'), text = h('pre');
  const dialog = h('dialog', { 'aria-label': 'VCL' }, h('div', { cls: 'in' }, h('div', { cls: 'head' }, title, h('button', { type: 'button', text: 'Close', on: { click: () => dialog.close() } })), h('div', { cls: 'source', tabindex: '0' }, text)));
  const source = async (name) => (await get(`vcl/${encodeURIComponent(name)}/source`)).text;
  const guarded = (act) => async () => { set(error, ''); try { await act(); } catch (failure) { set(error, failure.message); } };
  let active = '';
  const show = async (row) => { set(text, await source(row.name)); set(title, row.name); dialog.showModal(); };
  const compare = async (row) => {
    const lines = difference(await source(active), await source(row.name));
    if (!lines) throw new Error('The texts are too long to compare here.');
    text.replaceChildren(...lines.map(([kind, line]) => h('span', { cls: kind === '+' ? 'add' : kind === '-' ? 'del' : '', text: `${kind} ${line}${kind === ' ' ? '\n' : ''}` })));
    set(title, `${active} → ${row.name}`);
    dialog.showModal();
  };
  let armed = null;
  const use = async (row, button) => {
    if (armed !== button) {
      armed = button;
      set(button, 'Confirm');
      button.classList.add('danger');
      setTimeout(() => { if (armed === button) armed = null; set(button, 'Use'); button.classList.remove('danger'); }, 4000);
      return;
    }
    armed = null;
    await post('vcl/use', { name: row.name });
    app.say(`${row.name} is active`);
    await self.load();
  };
  const rows = table([
    { name: 'Name', cls: 'mono', text: (row) => row.name },
    { name: 'State', make: (cell) => cell.append(h('span', { cls: 'pill plain' })), update: (cell, row) => { cell.firstChild.className = `pill ${row.status === 'active' ? 'good' : 'plain'}`; set(cell.firstChild, row.status); } },
    { name: 'Temperature', cls: 'nowrap', text: (row) => `${row.state}/${row.temperature}` },
    { name: 'In use', cls: 'num', text: (row) => (row.busy == null ? '–' : number.count(row.busy)) },
    { name: 'Action', cls: 'nowrap bare', make: (cell, row) => {
      const button = (name, act) => h('button', { type: 'button', cls: 'small', text: name, on: { click: (event) => guarded(() => act(row(), event.currentTarget))() } });
      cell.append(button('Source', show), ' ', button('Compare', compare), ' ', button('Use', use));
    }, update: (cell, row) => {
      const [first, second, third] = cell.querySelectorAll('button');
      first.hidden = row.state === 'label';
      second.hidden = row.status === 'active' || row.state === 'label';
      third.hidden = row.status === 'active';
      third.disabled = !may();
    } },
  ], { label: 'VCLs', empty: 'No VCL.' });
  const self = panel('vcl', 'VCL', {});
  self.body.append(error, h('div', { cls: 'scroll tall', tabindex: '0', role: 'group', 'aria-label': 'VCLs' }, rows.element), dialog);
  self.period = 5;
  self.load = async () => {
    const list = (await get('vcl')).filter((row) => row && row.name);
    active = (list.find((row) => row.status === 'active') || {}).name || '';
    rows.update(list);
  };
  return self;
}

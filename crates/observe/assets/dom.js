// Elements, tables and numbers. Text from the server is only ever set as text.

export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === 'on') for (const [kind, act] of Object.entries(value)) element.addEventListener(kind, act);
    else if (name === 'text') element.textContent = value;
    else if (name === 'cls') element.className = value;
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

export function s(tag, attributes = {}) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

export function set(element, text) {
  text = String(text);
  if (element.textContent !== text) element.textContent = text;
}

// A table whose rows are reused, so that focus and layout stay.
// columns: {name, cls, text(row)} or {name, cls, make(cell, current), update(cell, row)}.
export function table(columns, { cards = true, empty = 'Nothing yet.', label }) {
  const body = h('tbody');
  const head = h('tr', {}, ...columns.map((column) => h('th', { cls: column.cls || '', scope: 'col', text: column.name })));
  const note = h('p', { cls: 'note', text: empty });
  const grid = h('table', { cls: cards ? 'cards' : '', 'aria-label': label }, h('thead', {}, head), body);
  const element = h('div', {}, grid, note);
  grid.hidden = true;
  return {
    element,
    update(rows) {
      while (body.rows.length > rows.length) body.deleteRow(-1);
      rows.forEach((row, place) => {
        let line = body.rows[place];
        if (!line) {
          line = body.insertRow();
          columns.forEach((column, at) => {
            const cell = line.insertCell();
            cell.className = (column.cls || '') + (at === 0 ? ' first' : '');
            cell.dataset.label = column.name;
            if (column.make) column.make(cell, () => line.row);
          });
        }
        line.row = row;
        columns.forEach((column, at) => (column.update ? column.update(line.cells[at], row) : column.text && set(line.cells[at], column.text(row))));
      });
      note.hidden = rows.length > 0;
      grid.hidden = rows.length === 0;
    },
  };
}

export function choice(label, options, value, act) {
  const buttons = options.map(([key, text]) => h('button', { type: 'button', text, 'aria-pressed': String(key === value), on: { click: () => choose(key) } }));
  const choose = (key) => {
    buttons.forEach((button, place) => button.setAttribute('aria-pressed', String(options[place][0] === key)));
    act(key);
  };
  return h('div', { cls: 'choice', role: 'group', 'aria-label': label }, ...buttons);
}

export function panel(id, title, { wide = false, tools = [], sub } = {}) {
  const body = h('div');
  const head = h('div', { cls: 'head' }, h('h2', { id: `${id}-title`, text: title }), ...(sub ? [sub] : []), ...tools);
  return { id, title, body, element: h('section', { id, cls: wide ? 'wide' : '', 'aria-labelledby': `${id}-title`, tabindex: '-1' }, head, body) };
}

export const number = {
  count(value) {
    if (value == null) return '–';
    if (value >= 1e9) return `${(value / 1e9).toFixed(2)} G`;
    if (value >= 1e7) return `${(value / 1e6).toFixed(1)} M`;
    return Math.round(value).toLocaleString('en').replaceAll(',', '\u2009');
  },
  rate: (value) => (value == null ? '–' : value >= 100 ? number.count(value) : value === 0 ? '0' : value >= 10 ? value.toFixed(1) : value.toFixed(2)),
  percent: (part, whole) => (whole > 0 ? `${((100 * part) / whole).toFixed(1)}` : '–'),
  seconds(value) {
    if (value == null) return '–';
    if (value < 0.001) return `${Math.round(value * 1e6)} µs`;
    if (value < 1) return `${(value * 1000).toFixed(value < 0.1 ? 1 : 0)} ms`;
    return `${value.toFixed(2)} s`;
  },
  bytes(value) {
    if (value == null) return '–';
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let unit = 0;
    while (value >= 1024 && unit < 4) { value /= 1024; unit += 1; }
    return `${unit === 0 ? Math.round(value) : value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
  },
  span(value) {
    const days = Math.floor(value / 86400), hours = Math.floor(value / 3600) % 24, minutes = Math.floor(value / 60) % 60;
    if (days) return `${days} d ${hours} h`;
    if (hours) return `${hours} h ${minutes} min`;
    return minutes ? `${minutes} min` : `${Math.round(value)} s`;
  },
};

const two = (value) => String(value).padStart(2, '0');
export const clock = (time, seconds = true) => {
  const at = new Date(time * 1000);
  return `${two(at.getHours())}:${two(at.getMinutes())}${seconds ? `:${two(at.getSeconds())}` : ''}`;
};
export const utc = (time) => `${new Date(time * 1000).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
export const setTime = (element, time) => { set(element, clock(time)); if (element.title !== utc(time)) element.title = utc(time); };

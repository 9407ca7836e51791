// Small charts in SVG.
import { s, set, h, clock, number } from './dom.js';

function path(values, x, y) {
  let text = '', pen = 'M';
  values.forEach((value, place) => {
    if (value == null) { pen = 'M'; return; }
    text += `${pen}${x(place).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = 'L';
  });
  return text;
}

export function spark(cls) {
  const area = s('path', { class: 'spark-area' }), line = s('path', { class: 'spark' });
  const element = s('svg', { viewBox: '0 0 120 34', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
  element.append(area, line);
  if (cls) element.classList.add(cls);
  return {
    element,
    update(values, top) {
      const most = Math.max(top || 0, ...values, 1e-9);
      const x = (place) => (values.length < 2 ? 120 : (120 * place) / (values.length - 1));
      const text = path(values, x, (value) => 32 - (30 * value) / most);
      line.setAttribute('d', text);
      area.setAttribute('d', text ? `${text}L120 34L0 34Z` : '');
    },
  };
}

function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value || 1));
  const step = [1, 2, 2.5, 5, 10].find((one) => one * power >= value) || 10;
  return step * power;
}

// series: [{key, name, cls (a number), format}]
export function chart(label, series, format) {
  const root = s('svg', { role: 'img', 'aria-label': label });
  const marks = s('g'), grid = s('g'), cursor = s('line', { class: 'cursor', y1: 0, visibility: 'hidden' });
  const lines = series.map((one) => s('path', { class: `s${one.cls}` }));
  root.append(grid, marks, ...lines, cursor);
  const values = series.map(() => h('b'));
  const legend = h('div', { cls: 'legend' }, ...series.map((one, place) => h('span', {}, h('i', { cls: `k${one.cls}` }), one.name, values[place])));
  const when = h('span');
  legend.append(when);
  const box = h('div', { cls: 'chart' }, root);
  let data = null, hovered = null;
  const left = 48, bottom = 18;
  function draw() {
    if (!data) return;
    const width = box.clientWidth || 600, height = box.clientHeight || 200, count = data.time.length;
    root.setAttribute('viewBox', `0 0 ${width} ${height}`);
    const from = data.from, to = data.to;
    let most = 0;
    series.forEach((one) => data.values[one.key].forEach((value) => { if (value > most) most = value; }));
    const top = nice(most || 1);
    const x = (time) => left + ((width - left - 4) * (time - from)) / Math.max(to - from, 1);
    const y = (value) => 6 + (height - bottom - 6) * (1 - value / top);
    grid.replaceChildren();
    for (let part = 0; part <= 4; part += 1) {
      const at = Math.round(y((top * part) / 4)) + 0.5;
      grid.append(s('line', { class: 'grid', x1: left, x2: width, y1: at, y2: at }));
      if (part % 2 === 0) {
        const text = s('text', { x: left - 8, y: at + 4, 'text-anchor': 'end' });
        text.textContent = format((top * part) / 4);
        grid.append(text);
      }
    }
    const steps = width < 500 ? 3 : 6;
    for (let part = 0; part <= steps; part += 1) {
      const time = from + ((to - from) * part) / steps;
      const text = s('text', { x: x(time), y: height - 3, 'text-anchor': part === 0 ? 'start' : part === steps ? 'end' : 'middle' });
      text.textContent = clock(time, to - from < 600);
      grid.append(text);
    }
    marks.replaceChildren();
    for (const event of data.marks) {
      if (event.time < from || event.time > to) continue;
      const line = s('line', { class: 'mark', x1: x(event.time), x2: x(event.time), y1: 6, y2: height - bottom });
      const title = s('title');
      title.textContent = `${clock(event.time)} ${event.text}`;
      line.append(title);
      marks.append(line);
    }
    series.forEach((one, place) => lines[place].setAttribute('d', path(data.values[one.key], (at) => x(data.time[at]), y)));
    const at = hovered == null ? count - 1 : hovered;
    series.forEach((one, place) => set(values[place], count ? format(data.values[one.key][at]) : '–'));
    set(when, hovered == null || !count ? '' : clock(data.time[at]));
    cursor.setAttribute('visibility', hovered == null ? 'hidden' : 'visible');
    if (hovered != null && count) {
      cursor.setAttribute('x1', x(data.time[at]));
      cursor.setAttribute('x2', x(data.time[at]));
      cursor.setAttribute('y2', height - bottom);
    }
  }
  box.addEventListener('pointermove', (event) => {
    if (!data || !data.time.length) return;
    const bounds = box.getBoundingClientRect();
    const time = data.from + ((event.clientX - bounds.left - left) / Math.max(bounds.width - left - 4, 1)) * (data.to - data.from);
    let best = 0;
    data.time.forEach((one, place) => { if (Math.abs(one - time) < Math.abs(data.time[best] - time)) best = place; });
    hovered = best;
    draw();
  });
  box.addEventListener('pointerleave', () => { hovered = null; draw(); });
  new ResizeObserver(draw).observe(box);
  return { element: h('div', {}, box, legend), update(next) { data = next; draw(); } };
}

export const formats = { rate: number.rate, seconds: number.seconds };

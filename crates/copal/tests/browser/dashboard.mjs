// The dashboard in Chromium: login, each panel against figures that this script causes, operations,
// keyboard, accessibility, and screenshots. Started by integration/dashboard.rs, which sets:
//
// MODULES  folder of playwright-core and axe-core      CHROMIUM  the browser
// COPAL    the program    DIRECTORY  work directory    SERVER    port of the server
// DAEMON   its process number
// SHAKY    port of the backend that this script is     SHOTS     folder for screenshots, or empty
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';

const env = process.env;
const require = createRequire(`${env.MODULES}/`);
const { chromium } = require('playwright-core');
const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const cli = (...words) => execFileSync(env.COPAL, ['adm', '-n', env.DIRECTORY, ...words], { encoding: 'utf8' });
const address = () => cli('dash.login').trim().split('\n')[0];
const figures = [];
const measured = (name, value) => figures.push(`${name}: ${value}`);

const ask = (path, headers = {}) => new Promise((resolve, reject) => {
  const request = http.request({ host: '127.0.0.1', port: env.SERVER, path, headers: { Host: 'shop.test', ...headers }, agent: false }, (response) => {
    response.resume();
    response.on('end', () => resolve(response));
  });
  request.on('error', reject);
  request.end();
});

const shaky = http.createServer((request, response) => response.end('up'));
await new Promise((resolve) => { shaky.listen(Number(env.SHAKY), '127.0.0.1', resolve); });

const browser = await chromium.launch({ executablePath: env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
const problems = [], foreign = [];
const origin = new URL(address()).origin;
async function visit(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
  page.on('console', (message) => { if (message.type() === 'error' && !/status of (401|403)|net::ERR_/.test(message.text())) problems.push(`console: ${message.text()}`); });
  page.on('request', (request) => { if (!request.url().startsWith(origin)) foreign.push(request.url()); });
  return page;
}
const text = (page, selector) => page.locator(selector).innerText();
const until = async (what, condition, limit = 15000) => {
  const end = Date.now() + limit;
  for (;;) {
    const value = await condition().catch(() => null);
    if (value) return value;
    assert.ok(Date.now() < end, `did not come about: ${what}`);
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
};

try {
  // A wrong token, and none.
  // So tall that all panels are in sight: others ask for nothing.
  const page = await visit({ viewport: { width: 1440, height: 3600 } });
  await page.goto(`${origin}/#t=${'0'.repeat(32)}`);
  await page.locator('.login .error', { hasText: 'wrong' }).waitFor();
  assert.equal(new URL(page.url()).hash, '', 'a token stays nowhere');

  // Login by the address that the CLI gave out; it works once.
  const once = address();
  await page.goto('about:blank');
  await page.goto(once);
  await page.locator('#now').waitFor();
  assert.equal(new URL(page.url()).hash, '');
  await page.locator('#state', { hasText: 'live' }).waitFor();
  const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
  measured('first paint (ms)', Math.round(paint));
  const other = await visit();
  await other.goto(once);
  await other.locator('.login .error').waitFor();

  // Known figures: 40 requests for one URL (1 miss), 9 tagged objects, failures, one slow request,
  // markup and marks of direction.
  for (let number = 0; number < 40; number += 1) await ask('/page?token=verysecret&x=1', { Cookie: 'id=hidden', 'User-Agent': '<img src=x onerror=window.pwned=1>' });
  for (let number = 0; number < 9; number += 1) await ask(`/tagged/${number}`);
  for (let number = 0; number < 3; number += 1) await ask('/fail');
  await ask('/slow');
  await ask('/%3C/script%3E<img/src=x/onerror=window.pwned=1>');
  await until('ranking', async () => (await text(page, '#tops')).includes('shop.test/page'));
  const row = page.locator('#tops tbody tr', { hasText: 'shop.test/page' });
  assert.equal(await row.locator('td').nth(1).innerText(), '40');
  assert.equal(await row.locator('td').nth(3).innerText(), '0');
  assert.ok((await row.innerText()).includes('token=***'), 'secrets are masked');
  await until('results', async () => /hit\s*7\d\.\d %/.test(await text(page, '#why .keys')));
  const requests = page.locator('#requests tbody tr');
  await until('failures', async () => (await requests.filter({ hasText: 'failed' }).count()) >= 3);
  await until('slow', async () => (await requests.filter({ hasText: 'slow' }).count()) >= 1);
  assert.ok((await text(page, '#requests')).includes('<img/src=x/onerror=window.pwned=1>'), 'markup is text');
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert.ok(!(await page.content()).includes('verysecret') && !(await page.content()).includes('hidden;'));

  // The chart: each figure in its own line.
  const legend = page.locator('#now .legend').first();
  const drawn = await page.evaluate(async () => (await (await fetch('/api/1/history?from=0&step=1')).json()));
  const sum = (key) => drawn.values[key].reduce((total, value) => total + value, 0);
  assert.ok(sum('requests') > 50 && sum('requests') < 80 && sum('hits') < sum('requests') && Math.round(sum('errors')) === 3);
  assert.match(await legend.innerText(), /requests.*hits.*to origins.*errors/s);
  await until('at rest', async () => /requests\s*0\s*hits\s*0\s*to origins\s*0\s*errors\s*0/.test(await legend.innerText()));

  // Why: the explanation of a failed request.
  await requests.filter({ hasText: 'failed' }).first().locator('button').click();
  await until('explanation', async () => /503/.test(await text(page, 'dialog[open] pre')));
  await page.keyboard.press('Escape');

  // The filter: of rankings and requests.
  await page.keyboard.press('/');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'filter');
  await page.keyboard.type('tagged/3');
  await until('filtered', async () => (await page.locator('#tops tbody tr').count()) === 1);
  await page.keyboard.press('Escape');
  await until('unfiltered', async () => (await page.locator('#tops tbody tr').count()) > 3);

  // Purge by tag: the count of the preview is the real one.
  await page.locator('#kind').selectOption('tag');
  await page.locator('#value').fill('news');
  await page.locator('#hard').check();
  await page.locator('#invalidate button', { hasText: 'Preview' }).click();
  assert.equal(await text(page, '#invalidate .preview .count'), '9 objects');
  assert.equal((await ask('/tagged/1')).headers['x-cache'], 'hit', 'a preview changes nothing');
  await page.locator('#invalidate .preview .danger').click();
  await page.locator('.receipt', { hasText: 'Objects: 9' }).waitFor();
  assert.equal((await ask('/tagged/1')).headers['x-cache'], 'miss');
  await until('event', async () => (await text(page, '.events')).includes('tag.purge'));

  // A ban by URL, with its example.
  await page.locator('#kind').selectOption('prefix');
  await page.locator('#value').fill('/page');
  await page.locator('#invalidate button', { hasText: 'Preview' }).click();
  await until('example', async () => (await text(page, '#invalidate .preview')).includes('shop.test/page'));
  await page.locator('#invalidate .preview .danger').click();
  await until('banned', async () => (await ask('/page?token=verysecret&x=1')).headers['x-cache'] === 'miss');
  await page.locator('#cache', { hasText: 'req.url' }).waitFor();

  // VCL: two clicks make another one active.
  const second = page.locator('#vcl tbody tr', { hasText: 'second' });
  await second.locator('button', { hasText: 'Compare' }).click();
  await page.locator('dialog[open] .add').first().waitFor();
  await page.keyboard.press('Escape');
  await second.locator('button', { hasText: 'Use' }).click();
  await second.locator('button', { hasText: 'Confirm' }).click();
  await second.locator('.pill.good').waitFor();
  assert.match(cli('vcl.list'), /active.*second/);
  cli('vcl.use', 'boot');

  // A backend that an operator sets sick, and one that dies.
  const origins = page.locator('#origins tbody tr', { hasText: 'shaky' }).filter({ hasText: 'boot' });
  await origins.locator('.pill.good').waitFor();
  shaky.close();
  shaky.closeAllConnections();
  const died = Date.now();
  await origins.locator('.pill.bad').waitFor({ timeout: 15000 });
  measured('backend killed to red (ms)', Date.now() - died);
  await until('event', async () => (await text(page, '.events')).includes('shaky is sick'));
  const steady = page.locator('#origins tbody tr', { hasText: 'origin' }).filter({ hasText: 'boot' });
  await steady.locator('select').selectOption('sick');
  await steady.locator('.pill.bad').waitFor();
  assert.match(cli('backend.list'), /boot\.origin\s+sick/);
  await steady.locator('select').selectOption('auto');
  await steady.locator('.pill.good').waitFor();

  // Somebody who may only look.
  const viewer = await visit({ viewport: { width: 375, height: 812 }, colorScheme: 'dark' });
  await viewer.goto(origin);
  await viewer.locator('#name').fill('eve');
  await viewer.locator('#password').fill('wrong');
  await viewer.keyboard.press('Enter');
  await viewer.locator('.login .error', { hasText: 'wrong' }).waitFor();
  await viewer.locator('#password').fill('look');
  await viewer.keyboard.press('Enter');
  await viewer.locator('#state', { hasText: 'live' }).waitFor();
  await viewer.locator('#invalidate button:disabled', { hasText: 'Preview' }).waitFor();
  assert.ok(await viewer.locator('#origins select').first().isDisabled());

  // Keyboard: digits lead to panels, Tab stays visible.
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press('4');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'tops');
  await page.keyboard.press('Tab');
  assert.ok(await page.evaluate(() => document.querySelector('#tops').contains(document.activeElement)));
  assert.notEqual(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), 'none');

  // Looks: no sideways scrolling, no serious finding, and pictures.
  for (let number = 0; number < 30; number += 1) await ask(`/tagged/${number % 9}`);
  for (const [width, height] of [[375, 812], [1440, 900], [320, 640]]) {
    for (const theme of ['light', 'dark']) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme: theme });
      await page.evaluate(() => window.scrollTo(0, 0));
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.equal(wide, 0, `${width} ${theme} scrolls sideways`);
      if (width === 320) continue;
      await page.evaluate(axe);
      const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
      const serious = found.violations.filter((one) => ['serious', 'critical'].includes(one.impact));
      assert.deepEqual(serious.map((one) => `${theme} ${width} ${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`).join('; ')}`), []);
      if (env.SHOTS) {
        await page.screenshot({ path: `${env.SHOTS}/${width}-${theme}.png` });
        await page.screenshot({ path: `${env.SHOTS}/${width}-${theme}-full.png`, fullPage: true });
      }
    }
  }
  // What moves when figures change.
  const shift = await page.evaluate(() => new Promise((resolve) => {
    let sum = 0;
    new PerformanceObserver((list) => { for (const entry of list.getEntries()) if (!entry.hadRecentInput) sum += entry.value; }).observe({ type: 'layout-shift' });
    setTimeout(() => resolve(sum), 3000);
  }));
  measured('layout shift in 3 s', shift.toFixed(4));
  assert.ok(shift < 0.02, `layout shift ${shift}`);

  // The end of the process that serves the page: it connects again by itself, with its session.
  const children = fs.readFileSync(`/proc/${env.DAEMON}/task/${env.DAEMON}/children`, 'utf8').trim().split(' ');
  const observer = children.find((pid) => fs.readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'copal-observe');
  const lost = page.locator('#state', { hasText: 'reconnecting' }).waitFor();
  process.kill(Number(observer), 'SIGKILL');
  await lost;
  await page.locator('#state', { hasText: 'live' }).waitFor();

  // Logging out ends the session.
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.locator('#logout').click();
  await page.locator('.login').waitFor();
  await page.reload();
  await page.locator('.login').waitFor();

  assert.deepEqual(foreign.filter((url) => url !== 'about:blank'), [], 'nothing else is asked');
  assert.deepEqual(problems, []);
  console.log(figures.join('\n'));
} finally {
  await browser.close();
  shaky.closeAllConnections();
  shaky.close();
}

// Every text of every answer is hostile, in its turn: found by the shape of the answers, not by a list.
// The page shows texts as texts, hides what a terminal hides, and asks nobody else for anything.
//
// usage: node corpus.mjs FOLDER ADDRESS CODE

import assert from 'node:assert/strict';
import http from 'node:http';
import { createRequire } from 'node:module';

import { plain } from '../../../console/src/ui/dom.js';

const [, , folder, address, code] = process.argv;
const require = createRequire(`${folder}/package.json`);
const { chromium } = require('playwright-core');

/** What a terminal hides, each code point of it. */
const hidden = [];
for (let at = 0; at < 0x110000; at++) {
  const one = at >= 0xd800 && at < 0xe000 ? null : String.fromCodePoint(at);
  if (one !== null && one !== '\n' && plain(one) !== one) hidden.push(one);
}
assert.ok(hidden.length > 100, `${hidden.length}`);
const corpus = [
  '<img src=x onerror=alert(1)><script>alert(2)</script>',
  '<svg onload=alert(3)><a xlink:href="javascript:alert(4)">x</a><animate onbegin=alert(5)></svg>',
  '"><iframe srcdoc="<script>alert(6)</script>"></iframe><a href=javascript:alert(7)>y</a>',
  '\' autofocus onfocus=alert(8) style="background:url(http://127.0.0.1:9/z)" x=\'',
  'javascript:alert(9)//data:text/html,<script>alert(10)</script>',
  '{{constructor.constructor("alert(11)")()}}${alert(12)}<!--<template><math><mi//xlink:href="data:x,y">',
  hidden.slice(0, 4096).join(''),
  '<b>'.repeat((64 << 10) / 3),
];

const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
});
const page = await (await browser.newContext()).newPage();
const faults = [];
page.on('dialog', (dialog) => {
  faults.push(`dialog ${dialog.message()}`);
  void dialog.dismiss();
});
page.on('pageerror', (error) => faults.push(`error ${error.message}`));
page.on('request', (request) => {
  if (!request.url().startsWith(address)) faults.push(`request ${request.url()}`);
});

/** Which of the corpus each text has had, by its shape. */
const had = new Map();
/** What a hostile text was, so that what the page asks by it is answered. */
const was = new Map();
let turn = 0;
/** How many requests are out. */
let busy = 0;

/** An answer with all of its texts hostile. */
function hostile(value, shape) {
  if (typeof value === 'string') {
    if (!had.has(shape)) had.set(shape, new Set());
    had.get(shape).add(turn);
    const told = `${value}${corpus[turn]}`;
    was.set(told, value);
    return told;
  }
  if (Array.isArray(value)) return value.map((one) => hostile(one, `${shape}[]`));
  if (value === null || typeof value !== 'object') return value;
  // Names of arguments and the like are texts of somebody's too: they are told as they are, and the
  // values below them are of one shape.
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, hostile(one, `${shape}.${key}`)]));
}
const honest = (value) => JSON.parse(JSON.stringify(value), (_, one) =>
  typeof one === 'string' ? was.get(one) ?? one : one);

/** Asks the console what the page asked: only a browser finds names below `localhost`. */
async function through(request, body) {
  const { host, port, pathname } = new URL(request.url());
  // What the browser adds when it sends it.
  const added = { host, 'sec-fetch-site': 'same-origin', origin: new URL(address).origin };
  const headers = { ...(await request.allHeaders()), ...added };
  if (body !== null) headers['content-length'] = String(Buffer.byteLength(body));
  delete headers['accept-encoding'];
  return new Promise((answered, failed) => {
    const options = { host: '127.0.0.1', port, path: pathname, method: request.method(), headers };
    const asked = http.request(options, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (more) => (text += more));
      answer.on('end', () => answered({ status: answer.statusCode ?? 0, headers: answer.headers, text }));
    });
    asked.on('error', failed).end(body ?? undefined);
  });
}

await page.route('**/api/v1/**', async (route) => {
  const request = route.request();
  const path = new URL(request.url()).pathname.replace('/api/v1/', '');
  if (path === 'login' || path === 'live') return route.continue();
  const body = request.postData();
  busy += 1;
  const answer = await through(request, body === null ? null : JSON.stringify(honest(JSON.parse(body))));
  if (answer.text === '') throw new Error(`${request.method()} ${path}: ${answer.status}`);
  const told = hostile(JSON.parse(answer.text), `${path.replace(/\d+/, 'N')} ${answer.status}`);
  await route.fulfill({ status: answer.status, contentType: 'application/json', body: JSON.stringify(told) });
  busy -= 1;
});

await page.goto(address);
await page.getByLabel('Code').fill(code);
await page.getByRole('button', { name: 'Enter' }).click();
const tabs = page.locator('nav button');
await tabs.first().waitFor();
const rows = page.locator('tbody tr');
/** Waits until nothing that the page has asked is out. */
async function quiet() {
  for (let still = 0; still < 6; still = busy === 0 ? still + 1 : 0) await page.waitForTimeout(25);
}

async function looked(where) {
  const foreign = await page.locator(
    'img, iframe, object, embed, svg, math, template, b, script:not([type=module]), a[href^="javascript"], [onerror], [onload], [onfocus]',
  ).count();
  assert.equal(foreign, 0, `${where}: foreign nodes`);
  const text = await page.evaluate(() => {
    const boxes = [...document.querySelectorAll('input, textarea')];
    return document.body.innerText + document.title + boxes.map((one) => /** @type {any} */ (one).value).join('');
  });
  const shown = new Set(text);
  const found = hidden.filter((one) => shown.has(one) && one !== '\r' && one !== '\t');
  if (found.length > 0) {
    const where = await page.evaluate((one) => [...document.querySelectorAll('*')].filter((node) => (
      [...node.childNodes].some((child) => child.nodeType === 3 && child.nodeValue?.includes(one))
      || /** @type {any} */ (node).value?.includes?.(one)
    )).map((node) => `${node.parentElement?.outerHTML.slice(0, 120)}`), found[0]);
    process.stderr.write(`${JSON.stringify(where)}\n`);
  }
  assert.deepEqual(found.map((one) => one.codePointAt(0)?.toString(16)), [], `${where}: hidden characters`);
  assert.deepEqual(faults, [], where);
}

for (turn = 0; turn < corpus.length; turn++) {
  const count = await tabs.count();
  assert.equal(count, 6);
  for (let at = 0; at < count; at++) {
    await tabs.nth(at).click();
    await quiet();
    await looked(`text ${turn}, panel ${at}`);
    const opens = rows.first().getByRole('button').first();
    if ((await opens.count()) > 0) {
      await opens.click();
      await quiet();
      await looked(`text ${turn}, panel ${at}, its first row`);
    }
  }
}
const missed = [...had].filter(([, turns]) => turns.size < corpus.length).map(([shape]) => shape);
assert.deepEqual(missed, [], 'texts that were not hostile in each turn');
const panels = new Set([...had.keys()].map((shape) => shape.split(/[ .[]/)[0]));
process.stdout.write(`${had.size} texts of ${[...panels].sort().join(' ')}\n`);
await browser.close();
process.stdout.write('ended\n');
process.exit(0);

// Another local server had this port before: it left a service worker in the browser, directly and by
// a frame of a page of another port. The console's address, which is new, is answered by neither.
//
// usage: node worker.mjs FOLDER PORT

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline/promises';

const [, , folder, port] = process.argv;
const { chromium } = createRequire(`${folder}/package.json`)('playwright-core');
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const files = {
  '/worker.js': `self.addEventListener('install', () => self.skipWaiting());
    self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
    self.addEventListener('fetch', (event) => event.respondWith(
      new Response('<title>FAKE</title>', { headers: { 'content-type': 'text/html' } })));`,
  '/': `<title>dev</title><script>navigator.serviceWorker.register('/worker.js')
    .then(() => navigator.serviceWorker.ready).then(() => { document.title = 'registered'; });</script>`,
};
const answer = (request, response) => {
  const body = files[request.url];
  const type = request.url.endsWith('.js') ? 'text/javascript' : 'text/html';
  response.writeHead(body ? 200 : 404, { 'content-type': type });
  response.end(body ?? '');
};
const server = createServer(answer);
await new Promise((done) => server.listen(Number(port), 'localhost', done));
const frames = createServer((_, response) => {
  response.writeHead(200, { 'content-type': 'text/html' });
  response.end(`<iframe src="http://localhost:${port}/"></iframe>`);
});
await new Promise((done) => frames.listen(0, 'localhost', done));

const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
});
const page = await (await browser.newContext()).newPage();
await page.goto(`http://localhost:${port}/`);
await page.waitForFunction(() => document.title === 'registered');
await page.goto(`http://localhost:${frames.address().port}/`);
server.closeAllConnections();
frames.closeAllConnections();
server.close();
frames.close();
// The worker is there: it answers where nobody listens.
await page.goto(`http://localhost:${port}/`);
assert.equal(await page.title(), 'FAKE');
process.stdout.write('free\n');
const address = (await lines.next()).value;
await page.goto(address);
assert.equal(await page.title(), 'syscap');
await page.getByLabel('Code').waitFor();
// And under the name that it owns it gets nothing of the console.
const response = await page.request.get(`http://localhost:${port}/`);
assert.deepEqual([response.status(), await response.text()], [403, '']);
await browser.close();
process.stdout.write('ended\n');
process.exit(0);

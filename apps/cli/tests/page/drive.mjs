// Drives the page in Chromium, as a person would. What the test has to do meanwhile is said by a line
// on standard output, and goes on by a line on standard input.
//
// usage: node drive.mjs FOLDER ADDRESS CODE

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline/promises';

const [, , folder, address, code] = process.argv;
const require = createRequire(`${folder}/package.json`);
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
/** Has the test do something. */
async function ask(step) {
  process.stdout.write(`${step}\n`);
  assert.equal((await lines.next()).value, 'done', step);
}

const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
});
const context = await browser.newContext({ viewport: { width: 1200, height: 900 } });
const page = await context.newPage();
const faults = [];
page.on('dialog', (dialog) => faults.push(`dialog ${dialog.message()}`));
page.on('pageerror', (error) => faults.push(`error ${error.message}`));
page.on('console', (said) => said.type() === 'error' && faults.push(`console ${said.text()}`));
page.on('request', (request) => {
  if (!request.url().startsWith(address)) faults.push(`request ${request.url()}`);
});

await page.goto(address);
await page.getByLabel('Code').fill('zzzzzzzz');
await page.getByRole('button', { name: 'Enter' }).click();
await page.getByText('That is not the code').waitFor();
faults.length = 0; // The browser says of a 401 that it is one.
await page.getByLabel('Code').fill(code);
await page.getByRole('button', { name: 'Enter' }).click();

const rows = page.locator('tbody tr');
await rows.first().waitFor();
assert.ok((await rows.count()) >= 20, 'at least 20 rows');
const choose = async (at) => {
  await rows.nth(at).getByRole('button').click();
  const number = await rows.nth(at).getByRole('button').textContent();
  await page.locator('.card code', { hasText: ` ${number}` }).waitFor();
  return number;
};
const act = (name) => page.getByRole('button', { name, exact: true });
const recorded = () => page.getByText(/^On record \d+\.$/).waitFor();
/** Nobody clicks before a card can have been read. */
const read = () => page.waitForTimeout(1_100);

// Every control, and no fault of accessibility: light and dark, wide and as a phone, a form open.
await choose(0);
for (const name of ['Approve once', 'Deny...', 'Freeze a']) await act(name).waitFor();
await act('Deny...').click();
await page.getByLabel('Why (the agent is told)').waitFor();
/** Nothing that keeps a person out, and nothing beside the window. */
async function sound(panel) {
  for (const colorScheme of ['light', 'dark']) {
    for (const width of [1200, 390]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      await page.waitForFunction((wide) => window.innerWidth === wide, width);
      // By the driver: the page's own rules let no script in.
      const found = await page.evaluate(`${axe}; axe.run(document)`);
      assert.deepEqual(found.violations.map((one) => one.id), [], `${panel} ${colorScheme} ${width}`);
      const beside = await page.evaluate(() => {
        const { scrollWidth, clientWidth } = document.documentElement;
        const all = [...document.querySelectorAll('*')];
        const out = all.filter((one) => one.getBoundingClientRect().right > clientWidth);
        return scrollWidth <= clientWidth ? [] : out.map((one) => one.outerHTML.slice(0, 80));
      });
      assert.deepEqual(beside, [], `${panel}: nothing beside the window at ${width}`);
      if (process.env.SYSCAP_PICTURES) {
        const path = `${process.env.SYSCAP_PICTURES}/${panel}-${colorScheme}-${width}.png`;
        await page.screenshot({ path });
      }
    }
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1200, height: 900 });
}
await sound('approvals');

// What happened: each call, a filter, and one record whole.
await page.getByRole('button', { name: 'Timeline' }).click();
await page.getByText('asks for approval').first().waitFor();
assert.ok((await rows.count()) >= 20, 'at least 20 lines');
await page.getByLabel('Agent').fill('nobody-of-that-name');
await page.getByRole('button', { name: 'Filter' }).click();
await page.getByText(/^0 lines of \d+ records/).waitFor();
await page.getByLabel('Agent').fill('');
await page.getByLabel('refused only').check();
await page.getByRole('button', { name: 'Filter' }).click();
await page.locator('tr.refused').first().waitFor();
await page.getByLabel('refused only').uncheck();
await page.getByRole('button', { name: 'Filter' }).click();
await page.getByText('asks for approval').first().waitFor();
await rows.first().getByRole('button').click();
await page.locator('.card h2', { hasText: 'Record' }).waitFor();
await sound('timeline');
assert.equal(await page.locator('img, iframe, object').count(), 0);
// The agents: a list of paths that gets shorter at a click.
await page.getByRole('button', { name: 'Agents' }).click();
await page.getByRole('button', { name: 'p19', exact: true }).waitFor();
assert.ok((await rows.count()) >= 20, 'at least 20 agents');
await page.getByRole('button', { name: 'c', exact: true }).click();
await page.getByRole('button', { name: 'Freeze c' }).waitFor();
await page.getByRole('button', { name: 'Remove shared/docs' }).waitFor();
await sound('agents');
await page.getByRole('button', { name: 'Remove shared/docs' }).click();
await page.getByText('narrowed to').waitFor();
await page.getByRole('button', { name: 'Remove shared/docs' }).waitFor({ state: 'detached' });

// The tools: what each needs, and a switch that takes one away at once.
await page.getByRole('button', { name: 'Tools' }).click();
await page.getByRole('button', { name: 'fs.write' }).waitFor();
assert.ok((await rows.count()) >= 20, 'at least 20 tools');
await page.getByLabel('Search').fill('fs.');
await page.getByRole('button', { name: 'fs.write' }).click();
await page.getByText('Agents that may call it').waitFor();
await page.getByText('--write ROOT').first().waitFor();
await page.getByLabel('Search').fill('');
await sound('tools');
assert.equal(await page.getByLabel('c', { exact: true }).isChecked(), true);
await page.getByLabel('c', { exact: true }).click();
await page.locator('.card').getByText('narrowed to').waitFor();
assert.equal(await page.getByLabel('c', { exact: true }).isChecked(), false);
await page.getByLabel('c', { exact: true }).click();
await page.getByText('Give c fs.write').waitFor();
assert.equal(await page.getByLabel('c', { exact: true }).isChecked(), false);
await sound('gift');
await read();
await page.getByRole('button', { name: 'Give it as shown' }).click();
await ask('press y to give');
await page.locator(':checked').and(page.getByLabel('c', { exact: true })).waitFor();
await recorded();
// A connector: its URL is set here and signed at the terminal, its secret is typed there.
await page.getByRole('button', { name: 'Connectors' }).click();
await page.getByRole('button', { name: 'ticket' }).click();
await page.getByText('there is no secret desk yet').waitFor();
await sound('connectors');
await page.getByLabel('Base URL').fill('https://desk.example.com/v2');
await page.getByLabel('Headers').fill('X-Team: a');
await page.getByLabel('POST').check();
await read();
await page.getByRole('button', { name: 'Set it' }).click();
await ask('press y to set');
await recorded();
assert.equal(await page.getByLabel('Base URL').inputValue(), 'https://desk.example.com/v2');
await read();
await page.getByRole('button', { name: 'Set desk' }).click();
await ask('type the secret');
await page.getByText('sent to https://desk.example.com/v2').waitFor();
await page.getByRole('button', { name: 'Home', exact: true }).click();
await page.getByText('writes: allow, else ask. Somebody looks at what is written.').waitFor();
await page.getByText(/^ends at \d+:[0-9a-f]{64}$/).waitFor();
await sound('home');
await page.getByRole('button', { name: 'Approvals' }).click();

// Hostile texts are texts.
assert.equal(await page.locator('img, iframe, object, script:not([type=module])').count(), 0);

// Approved here and at the terminal.
await choose(0);
await read();
await act('Approve once').click();
await page.getByText('Asked at the terminal').waitFor();
await ask('press y');
await recorded();
// Denied with a reason.
await choose(1);
await act('Deny...').click();
await page.getByLabel('Why (the agent is told)').fill('not on a Friday');
await read();
await act('Deny').click();
await recorded();
// Answered elsewhere: the buttons go, in place.
const other = await choose(3);
await ask(`deny ${other}`);
await page.getByText('This call waits no longer.').waitFor();
assert.equal(await act('Approve once').count(), 0);
// Stopped.
await choose(4);
await act('Freeze a').click();
await recorded();
await page.getByText('frozen: agent a').waitFor();
// The console goes: nothing of it stays on the screen.
await ask('quit');
await page.getByText('The console has ended').waitFor();
assert.equal(await rows.count(), 0);
faults.splice(0, faults.length, ...faults.filter((one) => !/ERR_|Failed to load/.test(one)));
assert.deepEqual(faults, []);
await browser.close();
process.stdout.write('ended\n');
process.exit(0);

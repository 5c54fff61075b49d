import { chromium } from 'playwright-core';

// Machines that run tests are shared and slow; whatever takes longer than this hangs.
export const patience = 120_000;

/** A Chromium with a profile of its own, which goes with it. */
export async function launchChromium() {
  return await chromium.launch({
    executablePath: process.env.KVASM_CHROMIUM || '/usr/bin/chromium',
    headless: true,
    timeout: patience,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

/**
 * A page in a context of its own, and what has gone wrong in it: errors that nobody caught, and everything that its
 * Content-Security-Policy has refused.
 */
export async function openPage(browser, options = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  const failures = [];
  page.on('pageerror', error => failures.push(String(error)));
  page.on('console', message => {
    if (/content security policy/i.test(message.text())) failures.push(message.text());
  });
  return { page, failures, close: () => context.close() };
}

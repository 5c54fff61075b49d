import assert from 'node:assert/strict';
import { openPage, patience } from './chromium.mjs';

/** The page as a person uses it. */
export class DemoPage {
  constructor(page) {
    this.page = page;
  }

  async open(url) {
    await this.page.goto(url);
    await this.state('empty');
  }

  /** Waits for one of the page's states. */
  async state(...states) {
    const selector = states.map(state => `body[data-state="${state}"]`).join(',');
    await this.page.waitForSelector(selector, { timeout: patience });
  }

  /** Chooses where the model comes from. */
  async chooseSource(source) {
    if (await this.page.isHidden('#model-choices')) await this.page.click('#change-model');
    await this.page.check(`#source-${source}`);
  }

  async load() {
    await this.page.click('#load');
    await this.state('ready');
  }

  /** @param {Record<string, string | number>} settings by the id of the control */
  async set(settings) {
    for (const [id, value] of Object.entries(settings)) {
      const control = this.page.locator(`#${id}`);
      await this.#unfold(control);
      if (await control.evaluate(element => element.matches('select'))) {
        await control.selectOption(value);
      } else {
        await control.fill(String(value));
      }
    }
  }

  /** Opens what hides a control. */
  async #unfold(control) {
    if (await control.isVisible()) return;
    if (await control.evaluate(element => element.closest('#model-choices') !== null)) {
      await this.page.click('#change-model');
    } else {
      await this.page.click('#more-options summary');
    }
  }

  /** Runs to the end, and returns the text. */
  async generate(settings = {}) {
    await this.set(settings);
    await this.page.click('#generate');
    await this.ended();
    return await this.text('output-completion');
  }

  /** Waits for the end of the run that was started last. */
  async ended() {
    await this.page.waitForFunction(
      () =>
        document.body.dataset.state === 'ready' &&
        document.getElementById('finish-reason').textContent !== '',
      undefined,
      // By the clock, because one test has a page without frames.
      { timeout: patience, polling: 20 },
    );
  }

  async text(id) {
    return (await this.page.textContent(`#${id}`)).trim();
  }

  /** The exact number behind what is shown. */
  async number(id) {
    const value = await this.page.getAttribute(`#${id}`, 'value');
    // Not Number alone, for which nothing is 0.
    return /^\d/.test(value) ? Number(value) : undefined;
  }

  /** The cache, as the page shows it. */
  async cache() {
    const [used, tokens, perToken, reserved] = await Promise.all(
      ['kv-used', 'kv-tokens', 'kv-per-token', 'kv-reserved'].map(id => this.number(id)),
    );
    return { used, tokens, perToken, reserved };
  }

  /** Waits until the page has so many workers. */
  async workers(count) {
    const deadline = Date.now() + patience;
    while (this.page.workers().length !== count) {
      if (Date.now() > deadline) {
        throw new Error(`${this.page.workers().length} workers in place of ${count}`);
      }
      await new Promise(resolve => setTimeout(resolve, 20));
    }
  }
}

/** Runs a test on a fresh page, in which nothing may go wrong unseen. */
export async function onDemoPage(browser, url, run, options) {
  const { page, failures, close } = await openPage(browser, options);
  try {
    const demo = new DemoPage(page);
    await demo.open(url);
    await run(demo, page);
    assert.deepEqual(failures, []);
  } finally {
    await close();
  }
}

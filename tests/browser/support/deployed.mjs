import { after, before } from 'node:test';
import { launchChromium } from './chromium.mjs';
import { onDemoPage } from './demo-page.mjs';
import { buildSite, serveSite } from './site.mjs';

/**
 * For the tests of a file: the site built, served with these options of serveSite, and a browser. There before the first
 * test, and gone after the last. `onPage` runs a test on a page of its own.
 */
export function deploySite(options) {
  const deployed = {
    site: undefined,
    server: undefined,
    browser: undefined,
    onPage: (run, { url = deployed.server.url, ...more } = {}) =>
      onDemoPage(deployed.browser, url, run, more),
  };
  before(async () => {
    deployed.site = await buildSite();
    deployed.server = await serveSite(deployed.site.folder, options);
    deployed.browser = await launchChromium();
  });
  after(async () => {
    await deployed.browser?.close();
    await deployed.server?.close();
    await deployed.site?.remove();
  });
  return deployed;
}

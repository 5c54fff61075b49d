/**
 * The Worker's script in browsers. Its name is one that no script of an app has: a bundler that does not know Workers leaves
 * the name as it is, to be looked for beside the bundle.
 */

import { startThread } from './thread-script.js';
import { fetchBuild } from './worker/fetch-build.js';
import { fetchWasm } from './worker/fetch-wasm.js';
import { serveInBrowser } from './worker/serve-in-browser.js';

serveInBrowser({ fetchBuild: fetchBuild(fetchWasm), startThread });

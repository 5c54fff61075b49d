/** The script of a thread in browsers. */

import { serveThread } from './worker/thread-main.js';
import type { ThreadMessage, ThreadReply } from './worker/thread-protocol.js';

interface ThreadScope {
  postMessage(reply: ThreadReply): void;
  onmessage: ((event: MessageEvent<ThreadMessage>) => void) | null;
}
const scope = globalThis as unknown as ThreadScope;

serveThread({
  post: reply => scope.postMessage(reply),
  onMessage(listener) {
    scope.onmessage = event => listener(event.data);
  },
});

import { describeThrown } from '../protocol.js';
import { loadFailed } from './files.js';
import { compileFailed } from './instantiate.js';

/** @throws ModelError `load-failed` */
export async function fetchWasm(url: string): Promise<WebAssembly.Module> {
  let response: Response;
  try {
    response = await fetch(url, { credentials: 'same-origin' });
  } catch (cause) {
    throw loadFailed(url, `cannot be fetched (${describeThrown(cause)})`, cause);
  }
  if (!response.ok) throw loadFailed(url, `cannot be fetched (HTTP status ${response.status})`);
  try {
    // Servers that do not know the type are many; browsers compile while they fetch under the right one only.
    if (response.headers.get('content-type')?.toLowerCase() === 'application/wasm') {
      return await WebAssembly.compileStreaming(response);
    }
    return await WebAssembly.compile(await response.arrayBuffer());
  } catch (cause) {
    throw compileFailed(url, cause);
  }
}

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { basename } from 'node:path';

import { createApiServer } from '../server/api-server.js';
import { bundledModel } from './bundled-model.js';
import { loadEngine } from './load-engine.js';
import type { ServeCommand } from './serve-usage.js';
import { UsageError } from './usage-error.js';

/**
 * Loads a model, and serves it until the signal aborts.
 * @throws UsageError, KvasmError; the signal's reason when it aborts the load
 */
export async function serve(command: ServeCommand, signal: AbortSignal): Promise<void> {
  const model = command.model ?? bundledModel();
  const name = command.name ?? (basename(model) || 'kvasm');
  const engine = await loadEngine(model, command.load, signal);
  const server = createApiServer(engine, { ...command, model: name });
  try {
    server.listen(command.port, command.host);
    await once(server, 'listening').catch((cause: Error) => {
      throw new UsageError(`cannot listen: ${cause.message}`, { cause });
    });
    process.stdout.write(`kvasm serves ${name} at ${baseUrl(server.address() as AddressInfo)}\n`);
    if (!signal.aborted) await once(signal, 'abort');
  } finally {
    server.close();
    // Streams that go on would keep the process.
    server.closeAllConnections();
    await engine.dispose();
  }
}

function baseUrl({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}/v1`;
}

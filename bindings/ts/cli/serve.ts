import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { basename } from 'node:path';

import { createApiServer } from '../server/api-server.js';
import { EngineKeeper } from '../server/engine-keeper.js';
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
  const load = () => loadEngine(model, command.load, signal);
  const keeper = new EngineKeeper(await load(), () => {
    process.stderr.write('kvasm: the engine crashed, and is loaded anew\n');
    return load();
  });
  const server = createApiServer(keeper, { ...command, model: name });
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
    await keeper.dispose();
  }
}

function baseUrl({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}/v1`;
}

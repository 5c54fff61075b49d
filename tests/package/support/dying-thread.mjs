import { parentPort } from 'node:worker_threads';

const how = new URL(import.meta.url).searchParams.get('how');
let exports;

parentPort.on('message', async message => {
  if (message.type === 'run') {
    // Long enough for the engine to be at work.
    setTimeout(() => {
      if (how === 'in-a-piece') exports.kvasm_thread_failed();
      process.exit(3);
    }, 500);
    return;
  }
  const { module, memory } = message;
  const imports = {};
  for (const { module: from, name, kind } of WebAssembly.Module.imports(module)) {
    imports[from] ??= {};
    imports[from][name] = kind === 'memory' ? memory : () => {};
  }
  exports = (await WebAssembly.instantiate(module, imports)).exports;
  parentPort.postMessage({ type: 'ready' });
});

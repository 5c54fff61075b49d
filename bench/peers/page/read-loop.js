// Reads a buffer of the size of the weights, as often as asked, with one worker for each thread.

const REPLY = 'message';

const reply = worker =>
  new Promise((resolve, reject) => {
    worker.addEventListener(REPLY, ({ data }) => resolve(data), { once: true });
    worker.addEventListener('error', reject, { once: true });
  });

/** @param {{ module: number[], pages: number, bytes: number, threads: number }} options `bytes` for each thread */
export async function load({ module, pages, bytes, threads }) {
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  const compiled = await WebAssembly.compile(Uint8Array.from(module));
  const workers = Array.from({ length: threads }, () => new Worker('/bench/read-worker.js'));
  const tell = async messages => {
    const replies = workers.map(reply);
    for (const [i, worker] of workers.entries()) worker.postMessage(messages(i));
    return await Promise.all(replies);
  };
  await tell(i => ({ memory, module: compiled, from: i * bytes, to: (i + 1) * bytes }));
  return {
    facts: { threads },
    /** Bytes per second. */
    async read({ times }) {
      const started = performance.now();
      await tell(() => ({ times }));
      return { rate: (1000 * times * bytes * threads) / (performance.now() - started) };
    },
  };
}

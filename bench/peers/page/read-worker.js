// One thread of the read loop: the first message gives it its part of the memory, each other one makes it read.

let read;

self.onmessage = async ({ data }) => {
  if (read === undefined) {
    const { memory, module, from, to } = data;
    // Memory that was never written is one page of zeros, over and over, which stays in the cache.
    new Uint32Array(memory.buffer, from, (to - from) / 4).fill(1);
    const instance = await WebAssembly.instantiate(module, { env: { memory } });
    read = () => instance.exports.read(from, to);
  } else {
    for (let i = 0; i < data.times; i++) read();
  }
  self.postMessage('done');
};

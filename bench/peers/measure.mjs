// What is measured of an engine in one visit.

import { PAGE, readLoopModule, STRIDE } from './read-loop.mjs';

const WARM_UP = { prompt: 64, tokens: 8 };
const DECODE_PROMPT = 4;
const SEEDS = { warmUp: 11, decode: 222, prefill: 3333 };
const READ_SECONDS = 0.5;

/** Tokens per second after the first. */
const decodeRate = times => (1000 * (times.length - 1)) / (times.at(-1) - times[0]);

/** Over the time of all parts: the processors' clock is too coarse for short ones. */
function meanForeignCores(parts) {
  const sum = value => parts.reduce((total, part) => total + value(part), 0);
  return sum(part => part.foreignCores * part.wall) / sum(part => part.wall);
}

function checkCounts(run, promptTokens, tokens) {
  const { own } = run;
  if (own !== undefined && own.promptTokens !== promptTokens) {
    throw new Error(`read ${own.promptTokens} tokens in a prompt of ${promptTokens}`);
  }
  const drawn = own?.tokens ?? run.times.length;
  if (drawn !== tokens) throw new Error(`drew ${drawn} tokens in place of ${tokens}`);
}

/**
 * The functions that measure, each for one visit of the browser.
 * @param {object} bench `visit` of the browser, `prompts` by promptMaker, the model's `config`, and how many `tokens` to decode and
 *   `prefill` tokens to read
 */
export function measurements({ visit, prompts, config, tokens, prefill }) {
  const generateWith = call => async (promptTokens, seed, count, options) => {
    const run = await call('generate', {
      ...prompts.prompt(promptTokens, seed),
      count,
      ...options,
    });
    checkCounts(run, promptTokens, count);
    return { text: prompts.decode(run.ids ?? []), ...run };
  };
  const warmUp = generate => generate(WARM_UP.prompt, SEEDS.warmUp, WARM_UP.tokens);
  const loadOptions = ({ model, dtype }, threads) => ({
    model: `/models/${model}`,
    dtype,
    threads,
    config,
  });

  return {
    /** Rates in tokens per second. An engine that times itself is believed: its JavaScript does not count against it. */
    async engine(entrant, threads) {
      const { load, peakBytes, files, decoded, read } = await visit(
        entrant.engine,
        loadOptions(entrant, threads),
        async (call, { facts }) => {
          if (facts.threads !== threads) throw new Error(`ran with ${facts.threads} threads`);
          const generate = generateWith(call);
          await warmUp(generate);
          return {
            decoded: await generate(DECODE_PROMPT, SEEDS.decode, tokens),
            read: await generate(prefill, SEEDS.prefill, 1),
          };
        },
      );
      const decode = decoded.own?.decode ?? decodeRate(decoded.times);
      return {
        decode,
        bytesPerSecond: decode * load.facts.weightBytesPerToken,
        firstToken: decoded.times[0],
        prefill: read.own?.prefill ?? (1000 * prefill) / read.times[0],
        loadSeconds: load.seconds,
        peakBytes,
        text: decoded.text,
        facts: load.facts,
        files,
        foreignCores: meanForeignCores([load, decoded, read]),
      };
    },

    /** Seconds for each way to keep keys and values. Without a cache they are minutes: that is for the first round. */
    async strategies(entrant, threads, round) {
      const pair = round % 2 === 0 ? ['block', 'concat'] : ['concat', 'block'];
      const { runs } = await visit(entrant.engine, loadOptions(entrant, threads), async call => {
        const generate = generateWith(call);
        await warmUp(generate);
        const all = {};
        for (const cache of round === 0 ? [...pair, 'none'] : pair) {
          all[cache] = await generate(DECODE_PROMPT, SEEDS.decode, tokens, { cache });
        }
        return { runs: all };
      });
      const list = Object.entries(runs);
      const wrong = list.find(([, { text }]) => text !== runs.block.text);
      if (wrong !== undefined)
        throw new Error(`cache '${wrong[0]}' drew other tokens than 'block'`);
      return {
        seconds: Object.fromEntries(list.map(([cache, { times }]) => [cache, times.at(-1) / 1000])),
        foreignCores: meanForeignCores(Object.values(runs)),
      };
    },

    /** Bytes per second that plain loads read from a buffer of `bytes`. */
    async readLoop(bytes, threads) {
      const each = STRIDE * Math.ceil(bytes / threads / STRIDE);
      const pages = Math.ceil((each * threads) / PAGE);
      const options = { module: [...readLoopModule(pages)], pages, bytes: each, threads };
      return await visit('read loop', options, async call => {
        const { rate: guess } = await call('read', { times: 1 });
        const times = Math.ceil((READ_SECONDS * guess) / bytes);
        const { rate, foreignCores } = await call('read', { times });
        return { bytesPerSecond: rate, foreignCores };
      });
    },
  };
}

// WebAssembly that reads memory and does next to nothing with it: as fast as weights can be read at all.
//
// The module is assembled here, byte by byte, so that it is neither more nor less than this loop.

const VECTOR = 16;
const UNROLL = 16;
const SUMS = 4;
/** What the loop reads at a time; a range must be a multiple of it. */
export const STRIDE = VECTOR * UNROLL;
export const PAGE = 65536;

const I32 = 0x7f;
const V128 = 0x7b;
const [FROM, TO, FIRST_SUM] = [0, 1, 2];

function leb(value) {
  const bytes = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest];
    bytes.push((rest % 128) | 0x80);
  }
}

/** For the positive constants here: one more bit, the sign, has to be clear. */
function signedLeb(value) {
  const bytes = leb(value);
  const last = bytes.at(-1);
  return last < 64 ? bytes : [...bytes.slice(0, -1), last | 0x80, 0];
}

const get = local => [0x20, ...leb(local)];
const set = local => [0x21, ...leb(local)];
const vector = opcode => [0xfd, ...leb(opcode)];
const loadVector = offset => [...vector(0x00), 4, ...leb(offset)];
const ADD_VECTORS = vector(0xae);
const lane = index => [...vector(0x1b), index];
const ADD = [0x6a];
const constant = value => [0x41, ...signedLeb(value)];
const BELOW = [0x49];
const LOOP = [0x03, 0x40];
const BRANCH_IF = [0x0d, 0];
const END = [0x0b];

function body() {
  const sums = Array.from({ length: SUMS }, (_, i) => FIRST_SUM + i);
  const loads = Array.from({ length: UNROLL }, (_, i) => {
    const sum = sums[i % SUMS];
    return [...get(sum), ...get(FROM), ...loadVector(i * VECTOR), ...ADD_VECTORS, ...set(sum)];
  });
  const total = sums.slice(1).flatMap(sum => [...get(sum), ...ADD_VECTORS]);
  const lanes = [0, 1, 2, 3].flatMap(index => [...get(FIRST_SUM), ...lane(index)]);
  return [
    ...[...LOOP, ...loads.flat()],
    ...[...get(FROM), ...constant(STRIDE), ...ADD, ...set(FROM)],
    ...[...get(FROM), ...get(TO), ...BELOW, ...BRANCH_IF, ...END],
    ...[...get(FIRST_SUM), ...total, ...set(FIRST_SUM)],
    ...[...lanes, ...ADD, ...ADD, ...ADD, ...END],
  ];
}

const list = items => [...leb(items.length), ...items.flat()];
const name = text => list([...Buffer.from(text)].map(byte => [byte]));
const section = (id, bytes) => [id, ...leb(bytes.length), ...bytes];

/**
 * The module. It imports `env.memory`, shared, of so many pages, and exports `read(from, to)`: the sum of the 32-bit
 * words in [from, to), which are byte addresses, at least STRIDE apart.
 * @param {number} pages of PAGE bytes
 */
export function readLoopModule(pages) {
  const type = [0x60, ...list([[I32], [I32]]), ...list([[I32]])];
  const isShared = 3;
  const memory = [...name('env'), ...name('memory'), 0x02, isShared, ...leb(pages), ...leb(pages)];
  const locals = list([[...leb(SUMS), V128]]);
  const code = [...locals, ...body()];
  return Uint8Array.from([
    ...[0x00, ...Buffer.from('asm'), 1, 0, 0, 0],
    ...section(1, list([type])),
    ...section(2, list([memory])),
    ...section(3, list([[0]])),
    ...section(7, list([[...name('read'), 0x00, 0]])),
    ...section(10, list([[...leb(code.length), ...code]])),
  ]);
}

import fc from 'fast-check';
import type { CacheView } from 'kvasm';

export const blockTokens = 16;

interface ToySequence {
  readonly id: number;
  tokens: number;
  table: number[];
}

/** What a step of a toy cache did, for a test to compare with what it was told. */
export interface Done {
  kind: 'start' | 'append' | 'fork' | 'slide' | 'end' | 'evict' | 'nothing';
  sequence?: number;
  blocks?: number[];
  copied?: { from: number; to: number };
}

/** A pool of blocks that follows the rules of the real one, for tests of what looks at it. */
export class ToyCache {
  readonly #refs: number[];
  readonly #tree = new Set<number>();
  #sequences: ToySequence[] = [];
  #lastId = 0;
  #copies = 0;

  constructor(blocks: number) {
    this.#refs = Array.from({ length: blocks }, () => 0);
  }

  view(): CacheView {
    return {
      blockTokens,
      copies: this.#copies,
      blocks: this.#refs.map((refs, id) => {
        const owners = this.#sequences
          .map(({ id: sequence, tokens, table }) => {
            const first = table.indexOf(id) * blockTokens;
            return { sequence, first, filled: Math.min(tokens - first, blockTokens) };
          })
          .filter(({ first }) => first >= 0);
        const inPrefixTree = this.#tree.has(id);
        const known = inPrefixTree ? blockTokens : 0;
        const filled = Math.max(known, ...owners.map(owner => owner.filled));
        return { id, refs, filled, inPrefixTree, lastUse: 0, owners };
      }),
      sequences: this.#sequences.map(({ id, tokens, table }) => ({
        id,
        tokens,
        table: [...table],
      })),
    };
  }

  /** The view as the engine lays it out. */
  numbers(): Int32Array {
    const { copies, blocks, sequences } = this.view();
    return Int32Array.from([
      blocks.length,
      blockTokens,
      copies,
      ...blocks.flatMap(({ refs, inPrefixTree }) => [refs, inPrefixTree ? blockTokens : 0, 0]),
      sequences.length,
      ...sequences.flatMap(({ id, tokens, table }) => [id, tokens, table.length, ...table]),
    ]);
  }

  /** @param pick Chooses among sequences and blocks. */
  step(kind: Done['kind'], pick: number): Done {
    const sequence = this.#sequences[pick % Math.max(this.#sequences.length, 1)];
    if (kind === 'start') return this.#start();
    if (kind === 'evict') return this.#evict();
    if (!sequence) return { kind: 'nothing' };
    if (kind === 'append') return this.#append(sequence);
    if (kind === 'fork') return this.#fork(sequence);
    if (kind === 'slide') return this.#slide(sequence);
    return this.#end(sequence);
  }

  #start(): Done {
    const block = this.#take();
    if (block === undefined) return { kind: 'nothing' };
    this.#sequences.push({ id: ++this.#lastId, tokens: 1, table: [block] });
    return { kind: 'start', sequence: this.#lastId, blocks: [block] };
  }

  #append(sequence: ToySequence): Done {
    const { id, tokens, table } = sequence;
    const place = tokens % blockTokens;
    const last = table.at(-1) ?? -1;
    if (place === 0 || (this.#refs[last] ?? 0) > 1) {
      const block = this.#take();
      if (block === undefined) return { kind: 'nothing' };
      sequence.tokens++;
      if (place === 0) {
        table.push(block);
        return { kind: 'append', sequence: id, blocks: [block] };
      }
      table[table.length - 1] = block;
      this.#release(last);
      this.#copies++;
      return { kind: 'append', sequence: id, copied: { from: last, to: block } };
    }
    sequence.tokens++;
    return { kind: 'append', sequence: id };
  }

  #fork({ tokens, table }: ToySequence): Done {
    const held = table.filter(block => block >= 0);
    for (const block of held) this.#refs[block]!++;
    this.#sequences.push({ id: ++this.#lastId, tokens, table: [...table] });
    return { kind: 'fork', sequence: this.#lastId, blocks: held };
  }

  #slide({ id, tokens, table }: ToySequence): Done {
    const index = table.findIndex(block => block >= 0);
    const block = table[index];
    if (block === undefined || tokens < (index + 1) * blockTokens) return { kind: 'nothing' };
    table[index] = -1;
    this.#release(block);
    return { kind: 'slide', sequence: id, blocks: [block] };
  }

  /** Its full blocks go to the tree, as far as they are a whole beginning. */
  #end(sequence: ToySequence): Done {
    this.#sequences = this.#sequences.filter(other => other !== sequence);
    const full = sequence.table.slice(0, Math.floor(sequence.tokens / blockTokens));
    const kept = full.includes(-1) ? [] : full.filter(block => !this.#tree.has(block));
    for (const block of kept) {
      this.#tree.add(block);
      this.#refs[block]!++;
    }
    for (const block of sequence.table) if (block >= 0) this.#release(block);
    return { kind: 'end', sequence: sequence.id, blocks: kept };
  }

  #evict(): Done {
    const [block] = this.#tree;
    if (block === undefined) return { kind: 'nothing' };
    this.#tree.delete(block);
    this.#release(block);
    return { kind: 'evict', blocks: [block] };
  }

  #take(): number | undefined {
    const block = this.#refs.indexOf(0);
    if (block < 0) return undefined;
    this.#refs[block] = 1;
    return block;
  }

  #release(block: number): void {
    this.#refs[block]!--;
  }
}

/** Steps of a toy cache. */
export const toySteps = fc.array(
  fc.record({
    kind: fc.constantFrom<Done['kind']>(
      ...(['start', 'append', 'append', 'append', 'fork', 'slide', 'end', 'evict'] as const),
    ),
    pick: fc.nat(100),
    times: fc.integer({ min: 1, max: 20 }),
  }),
  { maxLength: 40 },
);

/** One head's weights over n tokens, by query and key. */
export interface AttentionMap {
  readonly texts: readonly string[];
  /** [n, n], by query and then key. */
  readonly weights: Float32Array;
  /** Keys that a token sees; undefined for all. */
  readonly window: number | undefined;
}

/** Why a query sees a key, or does not. */
export type Visibility = 'seen' | 'later' | 'out-of-window';

export function visibility(query: number, key: number, window: number | undefined): Visibility {
  if (key > query) return 'later';
  return window !== undefined && query - key >= window ? 'out-of-window' : 'seen';
}

export function weightAt({ texts, weights }: AttentionMap, query: number, key: number): number {
  return weights[query * texts.length + key] ?? 0;
}

/** The keys that a query gives most to, the first first. */
export function strongestKeys(
  map: AttentionMap,
  query: number,
  count: number,
): { key: number; weight: number }[] {
  return Array.from({ length: query + 1 }, (_, key) => ({ key, weight: weightAt(map, query, key) }))
    .filter(({ key }) => visibility(query, key, map.window) === 'seen')
    .sort((a, b) => b.weight - a.weight || a.key - b.key)
    .slice(0, count);
}

/** How strong a weight is drawn, 0 to 1: small ones would be lost on a straight scale. */
export function strength(weight: number): number {
  return Math.sqrt(Math.min(Math.max(weight, 0), 1));
}

import type { KvDtype, ModelConfig } from 'kvasm';

/** A factor of what a token takes in the cache: a number, and what it is. */
export interface Factor {
  readonly value: string;
  readonly meaning: string;
}

/** The factors whose product is the bytes that one token takes. */
export function kvFactors(
  { nLayer, nHead, nKvHead, nEmbd }: Pick<ModelConfig, 'nLayer' | 'nHead' | 'nKvHead' | 'nEmbd'>,
  dtype: KvDtype,
): Factor[] {
  const headDim = nEmbd / nHead;
  const factors = [
    { value: '2', meaning: 'keys, values' },
    { value: String(nLayer), meaning: 'layers' },
    { value: String(nKvHead), meaning: nKvHead === 1 ? 'KV head' : 'KV heads' },
  ];
  switch (dtype) {
    case 'f32':
      return [
        ...factors,
        { value: String(headDim), meaning: 'head size' },
        { value: '4', meaning: 'bytes' },
      ];
    case 'f16':
      return [
        ...factors,
        { value: String(headDim), meaning: 'head size' },
        { value: '2', meaning: 'bytes' },
      ];
    case 'q8':
      return [...factors, { value: `(${headDim} + 4)`, meaning: 'head size, scale' }];
  }
}

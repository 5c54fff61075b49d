import type { TokenLogprob } from 'kvasm';

/** A token that was drawn, and what else might have been. */
export interface TokenInfo {
  readonly token: number;
  readonly text: string;
  /** Natural logarithm of its probability. */
  readonly logprob: number | undefined;
  /** The likeliest tokens at its place, the first first. */
  readonly alternatives: readonly TokenLogprob[];
}

/** 0 for tokens that were hardly to be expected, to 4 for those that were as good as certain. */
export function likelihoodStep(logprob: number): number {
  const probability = Math.exp(logprob);
  return [0.02, 0.1, 0.4, 0.8].filter(bound => probability >= bound).length;
}

/** A token's text with what one would not see in it. */
export function visibleText(text: string): string {
  if (text === '') return '(part of a character)';
  return text.replaceAll(' ', '␣').replaceAll('\n', '↵').replaceAll('\t', '⇥');
}

/** In per cent, with the digits that tell small ones apart. */
export function formatProbability(logprob: number): string {
  const percent = Math.exp(logprob) * 100;
  if (percent >= 99.95) return '100 %';
  if (percent >= 10) return `${percent.toFixed(0)} %`;
  if (percent >= 1) return `${percent.toFixed(1)} %`;
  return percent >= 0.01 ? `${percent.toFixed(2)} %` : '< 0.01 %';
}

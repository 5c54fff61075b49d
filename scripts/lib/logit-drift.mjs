// How far one model's predictions are from another's, position by position.

/** The natural logarithm of the sum of exponentials, without overflow. */
function logSumExp(logits) {
  let max = -Infinity;
  for (const logit of logits) if (logit > max) max = logit;
  let sum = 0;
  for (const logit of logits) sum += Math.exp(logit - max);
  return max + Math.log(sum);
}

/** The lowest id wins a tie, as in greedy decoding. */
function argmax(logits) {
  let best = 0;
  for (let id = 1; id < logits.length; id++) if (logits[id] > logits[best]) best = id;
  return best;
}

/** The bits that `id` costs under these logits. */
export const bitsOf = (logits, id) => (logSumExp(logits) - logits[id]) / Math.LN2;

/** Collects what `actual` logits differ from `reference` ones by; divergences are KL(reference || actual). */
export class LogitDrift {
  #positions = 0;
  #sameArgmax = 0;
  #maxDifference = 0;
  #divergence = 0;
  #extraBits = 0;
  #extraBitsSquared = 0;

  /** @param {Float32Array} reference @param {Float32Array} actual @param {number} next the id that follows */
  add(reference, actual, next) {
    const [fromLog, toLog] = [logSumExp(reference), logSumExp(actual)];
    let divergence = 0;
    for (let id = 0; id < reference.length; id++) {
      const difference = Math.abs(actual[id] - reference[id]);
      // Written so that a NaN counts as a difference.
      if (!(difference <= this.#maxDifference)) this.#maxDifference = difference;
      const log = reference[id] - fromLog;
      divergence += Math.exp(log) * (log - (actual[id] - toLog));
    }
    this.#divergence += divergence / Math.LN2;
    if (argmax(reference) === argmax(actual)) this.#sameArgmax++;
    const extra = bitsOf(actual, next) - bitsOf(reference, next);
    this.#extraBits += extra;
    this.#extraBitsSquared += extra * extra;
    this.#positions++;
  }

  /** `extraBitsError` is the standard error of the mean. */
  summary() {
    const n = this.#positions;
    const extraBits = this.#extraBits / n;
    const variance = Math.max(0, this.#extraBitsSquared / n - extraBits ** 2);
    return {
      positions: n,
      maxDifference: this.#maxDifference,
      divergenceBits: this.#divergence / n,
      argmaxAgreement: this.#sameArgmax / n,
      extraBits,
      extraBitsError: Math.sqrt(variance / Math.max(1, n - 1)),
    };
  }
}

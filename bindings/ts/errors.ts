/** What went wrong, in a form a program can branch on. Stable across releases. */
export type KvasmErrorCode =
  /** An argument or option has the wrong type or is out of range. */
  | 'invalid-argument'
  /** `config.json`, or a GGUF file's metadata, are missing, malformed, or describe something that is not a GPT-2. */
  | 'invalid-config'
  /** The weights file breaks its format, or does not fit the config. */
  | 'invalid-model'
  /** The weights file ends before its header says it should. */
  | 'truncated'
  /** The tokenizer files are missing or malformed. */
  | 'invalid-tokenizer'
  /** A valid file that asks for something kvasm does not do. */
  | 'unsupported'
  /** A file could not be fetched or read. */
  | 'load-failed'
  /** A file has not the length or the SHA-256 digest that the hub or the caller states. */
  | 'integrity'
  /** The WebAssembly memory cannot hold the model or the cache. */
  | 'out-of-memory'
  /** The prompt does not fit into the context, or `overflow: 'error'` and the context is full. */
  | 'context-full'
  /** The model produced NaN or infinite logits. */
  | 'non-finite'
  /** The session is generating, and does one thing at a time. */
  | 'busy'
  /** kvasm broke a promise of its own to this request; others are not concerned. */
  | 'internal'
  /** The engine, or the session, was disposed. */
  | 'disposed'
  /** The engine's worker or its WebAssembly instance died; load a new engine. */
  | 'crashed';

/** Base of every error that kvasm throws, except aborts, which throw the signal's reason. */
export class KvasmError extends Error {
  /** The name of the class. */
  override readonly name: string = 'KvasmError';
  /** What went wrong. */
  readonly code: KvasmErrorCode;

  /** @internal */
  constructor(code: KvasmErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** An argument or an option cannot be used as it is. */
export class InvalidArgumentError extends KvasmError {
  /** The name of the class. */
  override readonly name = 'InvalidArgumentError';
  /** @internal */
  constructor(message: string, options?: ErrorOptions) {
    super('invalid-argument', message, options);
  }
}

/** The model's files cannot be used: malformed, truncated, unsupported, or not to be had. */
export class ModelError extends KvasmError {
  /** The name of the class. */
  override readonly name = 'ModelError';
}

/** The engine cannot go on with this request: memory, positions or numbers ran out, or its session is busy. */
export class GenerationError extends KvasmError {
  /** The name of the class. */
  override readonly name = 'GenerationError';
}

/** The engine, or the session, is gone: disposed by its owner, or crashed. */
export class EngineClosedError extends KvasmError {
  /** The name of the class. */
  override readonly name = 'EngineClosedError';
}

/** The class that stands for a code, so that an error is the same class on both sides of a Worker. */
export function errorFor(
  code: KvasmErrorCode,
  message: string,
  options?: ErrorOptions,
): KvasmError {
  switch (code) {
    case 'invalid-argument':
      return new InvalidArgumentError(message, options);
    case 'invalid-config':
    case 'invalid-model':
    case 'truncated':
    case 'invalid-tokenizer':
    case 'unsupported':
    case 'load-failed':
    case 'integrity':
      return new ModelError(code, message, options);
    case 'out-of-memory':
    case 'context-full':
    case 'non-finite':
    case 'busy':
    case 'internal':
      return new GenerationError(code, message, options);
    case 'disposed':
    case 'crashed':
      return new EngineClosedError(code, message, options);
  }
}

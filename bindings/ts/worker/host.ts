import { KvasmError } from '../errors.js';
import {
  type CallMessage,
  type ClientMessage,
  describeThrown,
  type LoadRequest,
  type PromptRequest,
  packError,
  type WorkerMessage,
} from '../protocol.js';
import { attentionWeights } from './attention.js';
import { CacheRecordings } from './cache-recordings.js';
import { type LoadedModel, loadModel, type WorkerEnvironment } from './load.js';
import { reportMemory } from './memory.js';
import { type Gatherer, gatherEmbedding, gatherLogits, gatherScore, Probe } from './probe.js';
import { Run } from './run.js';
import { Scheduler } from './scheduler.js';
import { freshContext, Sessions } from './sessions.js';

/** The Worker's end of the line to its client. */
export interface WorkerPort {
  post(message: WorkerMessage, transfer: ArrayBuffer[]): void;
  /** Sets the only listener. */
  onMessage(listener: (message: ClientMessage) => void): void;
}

/**
 * The Worker: one engine, and what the client asks of it.
 * @returns A function that ends all work.
 */
export function serve(port: WorkerPort, environment: WorkerEnvironment): () => void {
  const host = new Host(port, environment);
  port.onMessage(message => host.receive(message));
  return () => host.close();
}

/** A loaded model, and who works with it. */
interface Loaded {
  readonly model: LoadedModel;
  readonly scheduler: Scheduler;
  readonly sessions: Sessions;
  readonly recordings: CacheRecordings;
}

class Host {
  readonly #port: WorkerPort;
  readonly #environment: WorkerEnvironment;
  #loaded: Loaded | undefined;
  #closed = false;

  constructor(port: WorkerPort, environment: WorkerEnvironment) {
    this.#port = port;
    this.#environment = environment;
  }

  close(): void {
    this.#closed = true;
    this.#loaded?.scheduler.close();
  }

  receive(message: ClientMessage): void {
    if (this.#closed) return;
    if (message.type === 'load') {
      void this.#load(message.id, message.request);
      return;
    }
    const loaded = this.#loaded;
    if (!loaded) return;
    const { model, scheduler, sessions, recordings } = loaded;
    switch (message.type) {
      case 'generate': {
        const { id, request, session } = message;
        this.#guard(id, () => {
          if (session !== undefined) sessions.generate(id, session, request);
          else {
            const context = freshContext(model.engine);
            scheduler.add(id, host => new Run(model, request, context, host));
          }
        });
        break;
      }
      case 'taken':
        // Comes often, and changes nothing in the cache.
        scheduler.taken(message.id, message.count);
        return;
      case 'cancel':
        scheduler.cancel(message.id);
        break;
      case 'drop':
        this.#guard(undefined, () => sessions.drop(message.session));
        break;
      case 'stopRecording':
        recordings.stop(message.recording);
        break;
      default:
        this.#guard(message.id, () => this.#answer(message, loaded));
    }
    this.#guard(undefined, () => recordings.record());
  }

  #answer(
    message: Exclude<CallMessage, { type: 'load' }>,
    { model, scheduler, sessions, recordings }: Loaded,
  ): void {
    const { id } = message;
    const probe = (request: PromptRequest, gather: (prompt: Int32Array) => Gatherer) =>
      scheduler.add(id, host => new Probe(model, request, gather, host));
    switch (message.type) {
      case 'memory':
        this.#post({ type: 'answer', id, answer: reportMemory(model) });
        break;
      case 'cacheView':
        this.#postArray(id, Int32Array.from(model.engine.cacheView()));
        break;
      case 'recordCache':
        recordings.start(message.request.recording);
        this.#post({ type: 'answer', id, answer: undefined });
        break;
      case 'takeRecorded':
        this.#postArray(id, recordings.take(message.request.recording));
        break;
      case 'attention': {
        const answer = attentionWeights(model, message.request);
        this.#post({ type: 'answer', id, answer }, [answer.tokens.buffer, answer.weights.buffer]);
        break;
      }
      case 'logits': {
        const { request } = message;
        probe(request, prompt => gatherLogits(model, request.all, prompt));
        break;
      }
      case 'embed': {
        const { request } = message;
        probe(request, () => gatherEmbedding(request));
        break;
      }
      case 'score':
        probe(message.request, prompt => gatherScore(model, prompt));
        break;
      case 'encode': {
        const { text, allowSpecial } = message.request;
        this.#postArray(id, Int32Array.from(model.tokenizer.encode(text, { allowSpecial })));
        break;
      }
      case 'decode': {
        const { ids, skipSpecial } = message.request;
        const answer = model.tokenizer.decode(ids, { skipSpecial });
        this.#post({ type: 'answer', id, answer });
        break;
      }
      case 'ids':
        this.#postArray(id, sessions.ids(message.request.session));
        break;
      case 'truncate':
        sessions.truncate(message.request.session, message.request.size);
        this.#post({ type: 'answer', id, answer: undefined });
        break;
      case 'fork':
        sessions.fork(message.request.session, message.request.fork);
        this.#post({ type: 'answer', id, answer: undefined });
        break;
      case 'save':
        this.#postArray(id, sessions.save(message.request.session));
        break;
      case 'restore':
        sessions.restore(message.request.session, message.request.bytes);
        this.#post({ type: 'answer', id, answer: undefined });
        break;
    }
  }

  readonly #post = (message: WorkerMessage, transfer: ArrayBuffer[] = []) => {
    if (!this.#closed) this.#port.post(message, transfer);
  };

  #postArray(id: number, array: Int32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>): void {
    this.#post({ type: 'answer', id, answer: array }, [array.buffer]);
  }

  readonly #crash = (error: unknown) => {
    this.#post({ type: 'crashed', reason: describeThrown(error) });
    this.close();
  };

  async #load(id: number, request: LoadRequest): Promise<void> {
    try {
      const model = await loadModel(request, this.#environment, {
        progress: progress => this.#post({ type: 'progress', id, progress }),
        warning: warning => this.#post({ type: 'warning', id, warning }),
      });
      void model.died.then(reason => this.#crash(`a thread died: ${reason}`));
      const recordings = new CacheRecordings(model.engine);
      const record = () => this.#guard(undefined, () => recordings.record());
      const scheduler = new Scheduler(model, this.#post, record, this.#crash);
      this.#loaded = { model, scheduler, sessions: new Sessions(model, scheduler), recordings };
      this.#post({ type: 'answer', id, answer: model.info });
    } catch (error) {
      this.#fail(id, error);
    }
  }

  #guard(id: number | undefined, action: () => void): void {
    try {
      action();
    } catch (error) {
      this.#fail(id, error);
    }
  }

  #fail(id: number | undefined, error: unknown): void {
    if (!(error instanceof KvasmError)) this.#crash(error);
    else if (id !== undefined) this.#post({ type: 'failed', id, error: packError(error) });
  }
}

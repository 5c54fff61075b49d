import type { ChatTurn } from '../chat-template.js';

/** Requests and responses in the shapes of OpenAI's API. Parameters that may be null are then as if they were not there. */

/** What requests for a continuation take. */
export interface SharedParams {
  /** The name that `createOpenAI` was given; any other is refused. Default: that name. */
  readonly model?: string | null;
  /** Completions per prompt, each with a seed of its own. Default 1. */
  readonly n?: number | null;
  /** Texts that end a completion; they are no part of it. */
  readonly stop?: string | readonly string[] | null;
  /** Whether `create` gives chunks as they come. Default false. */
  readonly stream?: boolean | null;
  /** Only with `stream`. */
  readonly stream_options?: StreamOptions | null;
  /** 0 is greedy. Default 1. */
  readonly temperature?: number | null;
  /** Default 1, off. */
  readonly top_p?: number | null;
  /** An integer of at least 0; completion number i of a prompt is drawn with `seed + i`. Default random. */
  readonly seed?: number | null;
  /** As `GenerateOptions.frequencyPenalty`. Default 0, off. */
  readonly frequency_penalty?: number | null;
  /** As `GenerateOptions.presencePenalty`. Default 0, off. */
  readonly presence_penalty?: number | null;
  /** Added to the logits of tokens by their ids. Default: none. */
  readonly logit_bias?: Readonly<Record<string, number>> | null;
  /** Not of OpenAI's API: sample among the k likeliest. Default 0, off. */
  readonly top_k?: number | null;
  /** Not of OpenAI's API: as `GenerateOptions.minP`. Default 0, off. */
  readonly min_p?: number | null;
  /** Not of OpenAI's API: as `GenerateOptions.repetitionPenalty`. Default 1, off. */
  readonly repetition_penalty?: number | null;
  /** Has no effect here. */
  readonly user?: string | null;
  /** Has no effect here. */
  readonly safety_identifier?: string | null;
  /** Has no effect here: prompts that begin alike share what was computed in any case. */
  readonly prompt_cache_key?: string | null;
  /** Has no effect here. */
  readonly metadata?: object | null;
}

/** A request for the embeddings of texts. */
export interface EmbeddingParams {
  /** A text, token ids, or several of either. */
  readonly input: string | readonly string[] | readonly number[] | readonly (readonly number[])[];
  /** As of SharedParams. */
  readonly model?: string | null;
  /** Default `float`. */
  readonly encoding_format?: 'float' | 'base64' | null;
  /** The model's own number, config.nEmbd, and no other. */
  readonly dimensions?: number | null;
  /** Has no effect here. */
  readonly user?: string | null;
}

/** One text's embedding. */
export interface Embedding<Vector = number[]> {
  /** What this is. */
  readonly object: 'embedding';
  /** The text's number among the inputs. */
  readonly index: number;
  /** [config.nEmbd]; as `base64`, these 32-bit floats' bytes, little-endian. */
  readonly embedding: Vector;
}

/** The answer to an EmbeddingParams. */
export interface EmbeddingResponse<Vector = number[]> {
  /** What this is. */
  readonly object: 'list';
  /** One for each input, in their order. */
  readonly data: Embedding<Vector>[];
  /** As in the request. */
  readonly model: string;
  /** Tokens of all inputs. */
  readonly usage: {
    /** Tokens of the inputs. */
    readonly prompt_tokens: number;
    /** The same: none is drawn. */
    readonly total_tokens: number;
  };
}

/** What a stream gives beside its chunks. */
export interface StreamOptions {
  /** Whether the last chunk, one without choices, tells the usage. Default false. */
  readonly include_usage?: boolean | null;
}

/** A request for the continuation of a text. */
export interface CompletionParams extends SharedParams {
  /** A text, token ids, or several of either. Default: the end-of-text token, which stands before every text. */
  readonly prompt?:
    | string
    | readonly string[]
    | readonly number[]
    | readonly (readonly number[])[]
    | null;
  /** Default 16. */
  readonly max_tokens?: number | null;
  /** Whether the text begins with the prompt. Default false. */
  readonly echo?: boolean | null;
  /** Tell each token's log-probability, and those of this many likeliest tokens. Default: off. */
  readonly logprobs?: number | null;
}

/** Why a choice ended. */
export type ChoiceFinishReason = 'stop' | 'length';

/** Tokens of all choices. */
export interface Usage {
  /** Of the prompts, each counted once. */
  readonly prompt_tokens: number;
  /** Of all choices. */
  readonly completion_tokens: number;
  /** The sum of the two. */
  readonly total_tokens: number;
  /** What is known of the prompts' tokens. */
  readonly prompt_tokens_details: {
    /** Those whose keys and values were there already. */
    readonly cached_tokens: number;
  };
}

/** What all responses and chunks have. */
export interface ResponseBase {
  /** Unique; the chunks of a stream share it. */
  readonly id: string;
  /** Seconds since 1970. */
  readonly created: number;
  /** The model's name. */
  readonly model: string;
  /** The build that has computed this; a seed gives the same tokens on the same one only. */
  readonly system_fingerprint: string;
}

/** Log-probabilities of a completion's tokens: natural logarithms of the model's own distribution. */
export interface CompletionLogprobs {
  /** The characters that each token completes; joined, they are the text. */
  readonly tokens: string[];
  /** Of each token; at least -9999. Null for the first of a prompt that is echoed, which comes after nothing. */
  readonly token_logprobs: (number | null)[];
  /** For each token the likeliest ones by their text, as many as were asked for. Null as in `token_logprobs`. */
  readonly top_logprobs: (Record<string, number> | null)[];
  /** Where each token begins in the text. */
  readonly text_offset: number[];
}

/** One of the completions. */
export interface CompletionChoice {
  /** Its number: those of the first prompt come first. */
  readonly index: number;
  /** All of it, or in a chunk what is new. */
  readonly text: string;
  /** Null unless asked for. */
  readonly logprobs: CompletionLogprobs | null;
  /** Null in the chunks before the last of a choice. */
  readonly finish_reason: ChoiceFinishReason | null;
}

/** One of the completions, complete. */
export interface FinishedChoice extends CompletionChoice {
  /** Why it ended. */
  readonly finish_reason: ChoiceFinishReason;
}

/** The answer to a CompletionParams. */
export interface Completion extends ResponseBase {
  /** What this is. */
  readonly object: 'text_completion';
  /** By their index. */
  readonly choices: FinishedChoice[];
  /** Over all choices. */
  readonly usage: Usage;
}

/** A piece of the answer to a CompletionParams with `stream`. */
export interface CompletionChunk extends ResponseBase {
  /** What this is. */
  readonly object: 'text_completion';
  /** One; none in the chunk with the usage. */
  readonly choices: CompletionChoice[];
  /** With `include_usage`, null in all chunks but the last. */
  readonly usage?: Usage | null;
}

/** A part of a message. */
export interface ChatTextPart {
  /** Other types than text are refused. */
  readonly type: 'text';
  /** The text. */
  readonly text: string;
}

/** One turn of a conversation. */
export interface ChatMessage {
  /** Who says it. Tools and functions do not occur. */
  readonly role: ChatTurn['role'];
  /** What is said. */
  readonly content: string | readonly ChatTextPart[];
  /** The speaker's name; the plain template writes it in place of the role. */
  readonly name?: string;
}

/** A request for the next turn of a conversation. */
export interface ChatCompletionParams extends SharedParams {
  /** At least one. When the last is the assistant's, it is continued. */
  readonly messages: readonly ChatMessage[];
  /** Default: as many as the context has room for. */
  readonly max_completion_tokens?: number | null;
  /** The former name of `max_completion_tokens`. */
  readonly max_tokens?: number | null;
  /** Whether to tell each token's log-probability. Default false. */
  readonly logprobs?: boolean | null;
  /** With `logprobs`: tell those of this many likeliest tokens, too. Default 0. */
  readonly top_logprobs?: number | null;
}

/** What the assistant says. */
export interface AssistantMessage {
  /** Who says it. */
  readonly role: 'assistant';
  /** What is said. */
  readonly content: string;
  /** The model refuses nothing. */
  readonly refusal: null;
}

/** What is new of what the assistant says. */
export interface AssistantDelta {
  /** In the first chunk of an answer. */
  readonly role?: 'assistant';
  /** More text. */
  readonly content?: string;
}

/** A token with its log-probability. */
export interface TopLogprob {
  /** Its text; of one that was drawn, the characters that it completes. */
  readonly token: string;
  /** The natural logarithm of its probability; at least -9999. */
  readonly logprob: number;
  /** Not told. */
  readonly bytes: null;
}

/** A token of an answer. */
export interface ChatTokenLogprob extends TopLogprob {
  /** The likeliest tokens in its place, as many as were asked for. */
  readonly top_logprobs: TopLogprob[];
}

/** Log-probabilities of an answer's tokens, white space at its beginning included. */
export interface ChatLogprobs {
  /** By token. */
  readonly content: ChatTokenLogprob[];
  /** The model refuses nothing. */
  readonly refusal: null;
}

/** One of the answers. */
export interface ChatChoice {
  /** Its number. */
  readonly index: number;
  /** The answer. */
  readonly message: AssistantMessage;
  /** Null unless asked for. */
  readonly logprobs: ChatLogprobs | null;
  /** Why it ended. */
  readonly finish_reason: ChoiceFinishReason;
}

/** The answer to a ChatCompletionParams. */
export interface ChatCompletion extends ResponseBase {
  /** What this is. */
  readonly object: 'chat.completion';
  /** By their index. */
  readonly choices: ChatChoice[];
  /** Over all choices. */
  readonly usage: Usage;
}

/** What is new of one of the answers. */
export interface ChatChunkChoice {
  /** Its number. */
  readonly index: number;
  /** The first has the role, the last nothing. */
  readonly delta: AssistantDelta;
  /** Null unless asked for. */
  readonly logprobs: ChatLogprobs | null;
  /** Null before the last chunk of an answer. */
  readonly finish_reason: ChoiceFinishReason | null;
}

/** A piece of the answer to a ChatCompletionParams with `stream`. */
export interface ChatCompletionChunk extends ResponseBase {
  /** What this is. */
  readonly object: 'chat.completion.chunk';
  /** One; none in the chunk with the usage. */
  readonly choices: ChatChunkChoice[];
  /** With `include_usage`, null in all chunks but the last. */
  readonly usage?: Usage | null;
}

/** A model in a list of models. */
export interface Model {
  /** Its name. */
  readonly id: string;
  /** What this is. */
  readonly object: 'model';
  /** When the engine was given, in seconds since 1970. */
  readonly created: number;
  /** Who has it: kvasm. */
  readonly owned_by: string;
}

/** All models there are: one. */
export interface ModelList {
  /** What this is. */
  readonly object: 'list';
  /** The models. */
  readonly data: Model[];
}

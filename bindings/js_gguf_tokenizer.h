// The tokenizer that a GGUF file brings, as a JavaScript object.

#ifndef KVASM_BINDINGS_JS_GGUF_TOKENIZER_H_
#define KVASM_BINDINGS_JS_GGUF_TOKENIZER_H_

#include <emscripten/val.h>

#include "formats/gguf_metadata.h"

namespace kvasm {

// A GgufTokenizer of bindings/ts/tokenizer/gguf-tokenizer.ts, with views into the
// metadata.
emscripten::val GgufTokenizerToJs(const GgufMetadata& metadata);

}  // namespace kvasm

#endif  // KVASM_BINDINGS_JS_GGUF_TOKENIZER_H_

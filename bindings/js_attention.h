// Attention weights as a JavaScript object. bindings/ts/wasm-module.ts says what its
// methods mean.

#ifndef KVASM_BINDINGS_JS_ATTENTION_H_
#define KVASM_BINDINGS_JS_ATTENTION_H_

#include <emscripten/val.h>

#include <utility>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "bindings/js_values.h"

namespace kvasm {

class JsAttention {
 public:
  explicit JsAttention(StatusOr<AlignedBuffer<float>> weights)
      : weights_(std::move(weights)) {}

  JsStatus status() const { return ToJs(weights_.status()); }
  emscripten::val Weights() const {
    return emscripten::val(emscripten::typed_memory_view(weights_.value().size(),
                                                         weights_.value().data()));
  }

 private:
  StatusOr<AlignedBuffer<float>> weights_;
};

}  // namespace kvasm

#endif  // KVASM_BINDINGS_JS_ATTENTION_H_

#include "bindings/js_attention.h"

#include <emscripten/bind.h>

EMSCRIPTEN_BINDINGS(kvasm_attention) {
  using kvasm::JsAttention;
  emscripten::class_<JsAttention>("Attention")
      .function("status", &JsAttention::status)
      .function("weights", &JsAttention::Weights);
}
